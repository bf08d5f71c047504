/** The tables of docs/reference/conformance.md: how the points differ from the verification core. */
import { type Reason, STATUS_OF_REASON } from '../../src/protocol/reasons.ts';
import { type NamedResults, outcomesOf, type Result } from './results.ts';

/** The core's decision: `allowed`, `malformed` or `reason/detail`. */
export type CoreResults = { readonly [name: string]: string };

/** From what matters least to what matters most; where protocols differ, a case counts as the last. */
const KINDS = ['same', 'repaired', 'parser', 'otherwise', 'more', 'against'] as const;
type Kind = (typeof KINDS)[number];

export function kindOf(core: string, outcome: string): Kind {
  if (core === 'malformed') return outcome === 'allowed' ? 'repaired' : 'same';
  if (outcome === 'allowed') return core === 'allowed' ? 'same' : 'against';
  if (core === 'allowed') return 'more';
  if (/^(\d+|closed|silent)$/.test(outcome)) return 'parser';
  return outcome === `${statusOf(core)} ${core}` ? 'same' : 'otherwise';
}

function statusOf(core: string): number | undefined {
  if (core === 'invalid_request_proof/audience') return 403;
  const [reason = ''] = core.split('/');
  return (STATUS_OF_REASON as { readonly [R in string]?: number })[reason as Reason];
}

export function summaryTable(core: CoreResults, points: readonly NamedResults[]): readonly string[] {
  return [
    '| point | cases | as the core | denied more | denied for another reason or status | refused by its HTTP parser | malformed, forwarded as signed | allowed against the core |',
    '|---|---|---|---|---|---|---|---|',
    ...points.map(({ point, results }) => {
      const kinds = Object.entries(results).map(([name, result]) => caseKind(core[name] ?? '', result));
      const count = (kind: Kind) => kinds.filter((one) => one === kind).length;
      const shownKinds: readonly Kind[] = ['same', 'more', 'otherwise', 'parser', 'repaired', 'against'];
      return `| ${point} | ${kinds.length} | ${shownKinds.map(count).join(' | ')} |`;
    }),
  ];
}

/** By the beginning of the names of their cases; a case of none is one of transcripts. */
const STANDARD_FORMATS = {
  'http-message-signatures, keyed': /^http-message-signatures keyed/,
  'http-message-signatures, with a passport': /^http-message-signatures with a passport/,
  'dpop, with a passport': /^dpop(?: with a passport)?:/,
  'dpop, with an access token': /^dpop with an access token/,
} as const;

/** How many cases of each format a point has, and how many it decides as the core. */
export function formatTable(core: CoreResults, points: readonly NamedResults[]): readonly string[] {
  const standard = Object.values(STANDARD_FORMATS);
  const isTranscript = (name: string) => !standard.some((pattern) => pattern.test(name));
  const rows: readonly (readonly [string, (name: string) => boolean])[] = [
    ['transcript-v1', isTranscript],
    ...Object.entries(STANDARD_FORMATS).map(
      ([format, pattern]) => [format, (name: string) => pattern.test(name)] as const,
    ),
  ];
  const counted = (isOf: (name: string) => boolean, { results }: NamedResults) => {
    const own = Object.entries(results).filter(([name]) => isOf(name));
    const same = own.filter(([name, result]) => caseKind(core[name] ?? '', result) === 'same');
    return `${same.length} of ${own.length}`;
  };
  return [
    `| format | ${points.map(({ point }) => point).join(' | ')} |`,
    `|---|${points.map(() => '---|').join('')}`,
    ...rows.map(([format, isOf]) => `| ${format} | ${points.map((one) => counted(isOf, one)).join(' | ')} |`),
  ];
}

function caseKind(core: string, result: Result): Kind {
  const kinds = new Set(outcomesOf(result).map((outcome) => kindOf(core, outcome)));
  return KINDS.findLast((kind) => kinds.has(kind)) ?? 'same';
}

const NAMES_SHOWN = 4;

/** One row for all cases that the points treat alike. */
export function deniedMoreTable(core: CoreResults, points: readonly NamedResults[]): readonly string[] {
  const rows = new Map<string, string[]>();
  for (const [name, decision] of Object.entries(core)) {
    if (decision !== 'allowed') continue;
    const cells = points.map(({ results }) => cell(results[name]));
    if (cells.every((text) => text === '' || text === 'n/a')) continue;
    const row = cells.join(' | ');
    rows.set(row, [...(rows.get(row) ?? []), name]);
  }
  return [
    `| requests that the core allows | ${points.map(({ point }) => point).join(' | ')} |`,
    `|---|${points.map(() => '---|').join('')}`,
    ...[...rows].map(([cells, names]) => `| ${shown(names)} | ${cells} |`),
  ];
}

/** Empty where the point allows it. */
function cell(result: Result | undefined): string {
  if (result === undefined) return 'n/a';
  const outcomes = outcomesOf(result);
  return outcomes.every((outcome) => outcome === 'allowed') ? '' : outcomes.map(short).join(', ');
}

/** The detail says enough where there is one. */
const short = (outcome: string) => outcome.replace(/ \w+\//, ' ').replace(/ header\..*/, ' header');

function shown(names: readonly string[]): string {
  const listed = names.slice(0, NAMES_SHOWN).map(code);
  const more = names.length - listed.length;
  return more > 0 ? `${listed.join('<br>')}<br>and ${more} more` : listed.join('<br>');
}

const code = (name: string) => name.replaceAll('|', '\\|').replace(/[<>*_`]/g, (one) => `\\${one}`);
