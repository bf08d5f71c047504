/** The output of the demo. */
import type { Case, Expectation } from './cases.ts';
import type { EnrollmentPlane } from './enrollment-plane.ts';
import type { Gateway } from './request-plane.ts';
import type { StepResult } from './run-case.ts';

/** Where it is printed. */
export interface Screen {
  readonly colored: boolean;
  /** Whether ✓ and ✗ can be shown. */
  readonly unicode: boolean;
  /** Undefined when it is no terminal: lines are then as long as they are. */
  readonly columns: number | undefined;
}

export function screenOf(stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv): Screen {
  const locale = env.LC_ALL || env.LC_CTYPE || env.LANG || '';
  return {
    // https://no-color.org: set and not empty.
    colored: stream.isTTY === true && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb',
    unicode: /utf-?8/i.test(locale),
    columns: stream.isTTY === true ? stream.columns : undefined,
  };
}

export const title =
  "Proofgate demo: a workload's token becomes a key, and real HTTP requests pass a real Envoy, or do not";

export function partLines(plane: EnrollmentPlane, gateway: Gateway, brokerUrl: string): readonly string[] {
  const { issuer, controlUrl, controlVersion } = plane;
  const { envoy, upstream, origin } = gateway;
  const rows = [
    ['issuer', 'signs service-account tokens as a cluster does', issuer.issuer],
    ['control', `proofgate control ${controlVersion} with its embedded database`, controlUrl],
    ['broker', 'proofgate broker, for SPIFFE workloads', brokerUrl],
    ['gateway', `Envoy ${envoy.version} with envoy/envoy.yaml`, origin],
    ['upstream', 'answers with what it received', `http://${upstream.host}:${upstream.port}`],
  ];
  return rows.map(([name = '', what = '', url = '']) => `  ${name.padEnd(10)}${what.padEnd(54)}${url}`);
}

/** The one file that is written by hand. */
export function siteLines(yaml: string): readonly string[] {
  const lines = yaml.trimEnd().split('\n');
  return ['site.yaml, all that is written by hand:', ...lines.map((line) => `  | ${line}`)];
}

/** One step of the onboarding: the command and its result. */
export function stepLine(what: string, cameBack: string): string {
  return `  ${what.padEnd(24)}${cameBack}`;
}

/** The meaning of `*`, and what is not real. */
export const tableNotes: readonly string[] = [
  "* signed with a profile file that claims the route: the caller's enrollment gave it no profile to sign this with",
  'SVIDs are those of a throw-away X.509 authority, which stands for SPIRE: building SPIRE takes minutes.',
];

const green = '\u001b[32m';
const red = '\u001b[31m';
const reset = '\u001b[39m';
const gap = '  ';
/** The last column's longest text: `profile_not_found, then 403 source_subject_mismatch/not_granted`. */
const cameBackWidth = 64;

/** One line a case and for each remark; three where the terminal is too narrow for it. */
export class Table {
  readonly #screen: Screen;
  readonly #widths: { readonly name: number; readonly sent: number; readonly expected: number };

  constructor(cases: readonly Case[], screen: Screen) {
    this.#screen = screen;
    const widest = (texts: readonly string[]) => Math.max(...texts.map((text) => text.length));
    this.#widths = {
      name: widest(cases.map(({ name }) => name)),
      sent: widest(cases.map(({ sent }) => sent)),
      expected: widest(cases.map(expectedText)),
    };
  }

  get heading(): string | undefined {
    if (this.#isNarrow) return undefined;
    return this.#row(' '.repeat(this.#mark(true).length), {
      name: '  outcome',
      sent: 'sent',
      expected: 'expected',
      cameBack: 'came back',
    });
  }

  line(shown: Case, results: readonly StepResult[]): string {
    const mark = this.#mark(hasPassed(results));
    const cells = {
      name: `${shown.number ?? '+'} ${shown.name}`,
      sent: shown.sent,
      expected: expectedText(shown),
      cameBack: results.map(({ cameBack }) => cameBack).join(', then '),
    };
    const colored = this.#screen.colored ? `${hasPassed(results) ? green : red}${mark}${reset}` : mark;
    const indent = ' '.repeat(mark.length + 3);
    const remarks = results
      .flatMap(({ remark }) => (remark === undefined ? [] : `\n${indent}${remark}`))
      .join('');
    if (!this.#isNarrow) return `${this.#row(colored, cells)}${remarks}`;
    const { name, sent, expected, cameBack } = cells;
    return `${colored} ${name}: ${sent}\n${indent}expected ${expected}\n${indent}got ${cameBack}${remarks}`;
  }

  #row(mark: string, cells: { readonly [N in 'name' | 'sent' | 'expected' | 'cameBack']: string }): string {
    const { name, sent, expected } = this.#widths;
    const columns = [
      cells.name.padEnd(name + 2),
      cells.sent.padEnd(sent),
      cells.expected.padEnd(expected),
      cells.cameBack,
    ];
    return `${mark} ${columns.join(gap)}`;
  }

  #mark(passed: boolean): string {
    if (this.#screen.unicode) return passed ? '✓' : '✗';
    return passed ? 'ok  ' : 'FAIL';
  }

  get #isNarrow(): boolean {
    const { columns } = this.#screen;
    const { name, sent, expected } = this.#widths;
    const needed = this.#mark(true).length + 3 + name + sent + expected + 3 * gap.length + cameBackWidth;
    return columns !== undefined && columns < needed;
  }
}

export function hasPassed(results: readonly StepResult[]): boolean {
  return results.every(({ fault }) => fault === undefined);
}

function expectedText({ steps }: Case): string {
  return steps.map(({ expected }) => describeExpectation(expected)).join(', then ');
}

function describeExpectation(expected: Expectation): string {
  switch (expected.kind) {
    case 'allowed':
      return 'allowed';
    case 'denied':
      return `denied: ${expected.why}`;
    case 'not_sent':
      return 'not signed';
  }
}
