/** Command lines within sentences and tables, and those of the chart's notes, are ones that their programs take. */
import { describe, expect, it } from '@jest/globals';
import { describeChart, notesOf, VALUE_FILES } from '../../helm/chart.ts';
import { PROGRAMS, whyNotAsked } from './programs.ts';
import { commandsBelow, faultOfLine, GROUPS } from './proofgate.ts';
import { allSpans, placeOf, type Span, spansIn } from './spans.ts';
import { commandsIn } from './words.ts';

/** Of other programs than these nothing is said so far; one more is named in programs.ts first. */
const USUAL =
  /^(?:docker|podman|buildah|istioctl|egctl|argocd|flux|kind|k3d|minikube|kustomize|oras|crane|skopeo|cosign|node|npx|npm|yarn|pnpm|go|git|python3?|pip|psql|pg_dump|pg_restore|redis-cli|redis-server|systemctl|curl|wget|openssl|ssh|jq|yq|apt-get)$/;

/** What begins like a command of ours and is none: what the log says. */
const NO_COMMAND = /^bundle (?:carried on|updated|loaded|refused:|rejected:)$/;

const OPERAND_OR_FLAG = /(?:^|\s)\[?(?:[A-Z][A-Z_]+\b|--?[a-z])/;

/** The program that a text is a command line of, and its words; undefined when it is none. */
function lineOf(words: readonly string[]): readonly [program: string, words: readonly string[]] | undefined {
  const [first = '', ...rest] = words;
  if (Object.hasOwn(PROGRAMS, first) || (rest.length > 0 && USUAL.test(first))) return [first, rest];
  if (NO_COMMAND.test(words.join(' '))) return undefined;
  if (GROUPS.includes(first) && /^[a-z]/.test(rest[0] ?? '')) return ['proofgate', words];
  if (!OPERAND_OR_FLAG.test(rest.join(' '))) return undefined;
  if (commandsBelow('').includes(first)) return ['proofgate', words];
  return commandsBelow('ctl').includes(first) ? ['proofgate', ['ctl', ...words]] : undefined;
}

interface Line {
  readonly place: string;
  readonly program: string;
  readonly words: readonly string[];
}

function linesIn(span: Span): readonly Line[] {
  return commandsIn(span.text).flatMap((words) => {
    const [program, rest] = lineOf(words) ?? [];
    return program === undefined || rest === undefined
      ? []
      : [{ place: placeOf(span), program, words: rest }];
  });
}

async function faultOf({ program, words }: Line): Promise<string | undefined> {
  const check = PROGRAMS[program];
  if (check === undefined) return `programs.ts does not say what ${program} is held against`;
  return typeof check === 'function' ? check(words) : undefined;
}

const lines = allSpans().flatMap(linesIn);
const asked = lines.filter(({ program }) => whyNotAsked(program) === undefined);

describe('documents and files to copy from', () => {
  it('have command lines of ours, of make, helm and kubectl', () => {
    expect(lines.length).toBeGreaterThan(150);
    const programs = lines.map(({ program }) => program);
    expect(programs).toEqual(expect.arrayContaining(['proofgate', 'make', 'npm', 'helm', 'kubectl']));
  });

  it.each([...new Map(asked.map((line) => [line.place, line])).keys()])('%s', async (place) => {
    const faults = await Promise.all(asked.filter((line) => line.place === place).map(faultOf));
    expect(faults.filter((fault) => fault !== undefined)).toEqual([]);
  });

  for (const why of new Set(lines.flatMap(({ program }) => whyNotAsked(program) ?? [])))
    it.skip(why, () => {});
});

/** Each with one fault. */
const BROKEN = [
  'proofgate bundle freshn',
  'proofgate bundle freshen --evry 3s',
  'bundle diff OLD',
  'bundle diff OLD NEW MORE',
  'ctl aprove',
  'revoke KEY --because TEXT',
  'status --keys FILE',
  'make bnech',
  'make bench PART=check',
  'make bench PARTS="check denial"',
  'make fuzz TARGETS="path bundel"',
  'npm run --silent jst -- test/docs',
  'npm run --silent jest -- test/nowhere',
  'npm install --package-lock-onyl',
  'openssl pkey -pubuot',
  'cosign verify',
];
const BROKEN_WITH_TOOLS = [
  'helm instal NAME CHART',
  'helm install NAME CHART --vlaues FILE',
  'helm install NAME CHART --set verifier.replica=2',
  'helm uninstall --namespace N',
  'kubectl rollout restrt',
  'kubectl rollout status --watch',
  'kubectl get --raw',
  'kubectl delete pod x --namspace y',
  'egctl config envoy-proxies all',
  'ssh -L 8250 a',
  'pg_dump --fromat=custom',
];

it.each(BROKEN)('`%s` would be noticed', async (text) => {
  const faults = await Promise.all(spansIn('', `\`${text}\``).flatMap(linesIn).map(faultOf));
  expect(faults).toEqual([expect.any(String)]);
});

it('a `proofgate` that stands alone is no fault', async () => {
  expect(await faultOfLine([])).toBeUndefined();
});

/** `  kubectl …`, or `Try it: helm …`. */
function linesOfNotes(file: string): readonly Span[] {
  return notesOf({ file })
    .split('\n')
    .flatMap((text, index) => {
      const [, command] = /(?:^\s*|: )((?:kubectl|helm|proofgate) .+)$/.exec(text) ?? [];
      return command === undefined ? [] : [{ file: `NOTES of ${file}`, line: index + 1, text: command }];
    });
}

describeChart("the chart's notes, and what only helm and kubectl know", () => {
  const all = VALUE_FILES.flatMap((file) => [
    ...linesOfNotes(file),
    ...spansIn(`NOTES of ${file}`, notesOf({ file })),
  ]);
  const ofNotes = [...new Map(all.flatMap(linesIn).map((line) => [line.words.join(' '), line])).values()];
  const here = ofNotes.filter(({ program }) => whyNotAsked(program) === undefined);

  it('have some', () => {
    expect(ofNotes.map(({ program }) => program)).toEqual(
      expect.arrayContaining(['kubectl', 'helm', 'proofgate']),
    );
  });

  it.each(here.map((line) => [line.place, line] as const))('%s', async (_place, line) => {
    expect(await faultOf(line)).toBeUndefined();
  });

  const tools = BROKEN_WITH_TOOLS.filter((text) => whyNotAsked(text.split(' ')[0] ?? '') === undefined);
  it.each(tools)('`%s` would be noticed', async (text) => {
    const faults = await Promise.all(spansIn('', `\`${text}\``).flatMap(linesIn).map(faultOf));
    expect(faults).toEqual([expect.any(String)]);
  });
});
