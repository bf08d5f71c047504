/** What the demo prints. */
import type { Case, Expectation } from './cases.ts';
import type { StepResult } from './run-case.ts';
import type { World } from './world.ts';

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
  'Proofgate demo: real HTTP requests through a real Envoy, each checked by the ext_authz sidecar';

export function headerLines(world: World): readonly string[] {
  const { envoy, upstream, verifierVersion, adminUrl, origin } = world;
  const rows = [
    ['gateway', `Envoy ${envoy.version} with envoy/envoy.yaml`, origin],
    ['sidecar', `proofgate verifier ${verifierVersion}, asked over a socket file`, `${adminUrl}/readyz`],
    ['upstream', 'answers with what it received', `http://${upstream.host}:${upstream.port}`],
    ['callers', 'billing may read and write orders; reporting may only read them', ''],
  ];
  return rows.map(([name = '', what = '', url = '']) =>
    `  ${name.padEnd(10)}${url === '' ? what : what.padEnd(54)}${url}`.trimEnd(),
  );
}

const green = '\u001b[32m';
const red = '\u001b[31m';
const reset = '\u001b[39m';
const gap = '  ';
/** The last column's longest text: `200, then 403 source_subject_mismatch/not_granted`. */
const cameBackWidth = 50;

/** One line a case; three where the terminal is too narrow for it. */
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
    if (!this.#isNarrow) return this.#row(colored, cells);
    const indent = ' '.repeat(mark.length + 3);
    const { name, sent, expected, cameBack } = cells;
    return `${colored} ${name}: ${sent}\n${indent}expected ${expected}\n${indent}got ${cameBack}`;
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
  return expected.kind === 'allowed' ? 'allowed' : `denied: ${expected.why}`;
}
