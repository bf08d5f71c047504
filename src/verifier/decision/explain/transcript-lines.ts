/**
 * Compares the signed transcript with the one rebuilt from the request, line by line. `steps/binding.ts` decides on the
 * binding; this shows what it compared.
 * Source: docs/protocol.md "Transcript".
 */
import type { RequestHeaders } from '../../../protocol/credentials.ts';
import { FIXED_LINES, type RebuiltTranscript, type Transcript } from '../../../protocol/transcript.ts';

/** The request's value for a line. */
type RebuiltValue =
  | { readonly kind: 'value'; readonly value: string }
  /**
   * `body_unavailable`: the exact body is unknown. `header_missing`, `header_repeated`: the header does not occur
   * exactly once.
   */
  | { readonly kind: 'unknown'; readonly why: 'body_unavailable' | 'header_missing' | 'header_repeated' };

export interface ComparedLine {
  readonly name: string;
  /** Undefined for a line that the caller did not sign. */
  readonly signed: string | undefined;
  readonly rebuilt: RebuiltValue;
  readonly isEqual: boolean;
}

/** In the transcript's order. Headers that the route requires and the caller did not sign are sorted among the others. */
export function compareTranscripts(
  signed: Transcript,
  rebuilt: RebuiltTranscript,
  headers: RequestHeaders,
): readonly ComparedLine[] {
  const again = new Map(transcriptLines(rebuilt));
  const lines = new Map(transcriptLines(signed));
  const names = [...FIXED_LINES.map(([name]) => name), ...headerLineNames(lines, again)];
  return names.map((name) => {
    const value = again.get(name);
    const known: RebuiltValue =
      value === undefined ? { kind: 'unknown', why: whyUnknown(name, headers) } : { kind: 'value', value };
    return {
      name,
      signed: lines.get(name),
      rebuilt: known,
      isEqual: value !== undefined && lines.get(name) === value,
    };
  });
}

/** Prefix of a signed header's name. */
export const HEADER_LINE = 'header.';

function headerLineNames(...sides: readonly ReadonlyMap<string, unknown>[]): readonly string[] {
  const names = new Set(sides.flatMap((lines) => [...lines.keys()]));
  return [...names].filter((name) => name.startsWith(HEADER_LINE)).sort();
}

function whyUnknown(line: string, headers: RequestHeaders) {
  if (!line.startsWith(HEADER_LINE)) return 'body_unavailable';
  const found = headers.lookup(line.slice(HEADER_LINE.length));
  return found.kind === 'absent' ? 'header_missing' : 'header_repeated';
}

type LineValue = readonly [name: string, value: string | undefined];

/** Every line after the version, in order. */
export function transcriptLines(transcript: Transcript | RebuiltTranscript): readonly LineValue[] {
  return [
    ...FIXED_LINES.map(([name, read]): LineValue => [name, read(transcript)]),
    ...transcript.headers.map(({ name, value }): LineValue => [`${HEADER_LINE}${name}`, value]),
  ];
}
