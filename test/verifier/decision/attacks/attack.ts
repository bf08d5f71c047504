/** Attacks on requests: each changes one thing that a proof binds, in one manner. */
import type { BodyState, RequestFacts } from '../../../../src/verifier/decision/facts/request-facts.ts';
import { type HeaderLine, headersOfLines } from '../../../support/fixtures/signed-request.ts';

/** Rows of the table of bindings (docs/design/protocol.md), and what holds for every row. */
export const BINDINGS = [
  'token and key',
  'method, scheme, authority, path',
  'query',
  'body',
  'headers',
  'site',
  'route, audience, issuer, subject',
  'one use',
  'time',
  'format',
  'syntax',
] as const;
export type Binding = (typeof BINDINGS)[number];

/** A request as it arrives. */
export interface Sent {
  readonly method: string;
  readonly scheme: string;
  readonly authority: string;
  readonly target: string;
  readonly lines: readonly HeaderLine[];
  readonly body: BodyState;
}

export interface Attack {
  readonly binding: Binding;
  /** Unique in its format: what is attacked, and how. */
  readonly name: string;
  /** Requests that are allowed, then the attack. */
  readonly make: () => readonly Sent[];
}

export function factsOfSent({ lines, ...sent }: Sent): RequestFacts {
  return { ...sent, headers: headersOfLines(lines), removesProofs: true };
}

export const attack = (binding: Binding, name: string, make: () => Sent): Attack => ({
  binding,
  name,
  make: () => [make()],
});

/** A change of the request, or of one of its lines, after it was signed. */
export type Change = readonly [binding: Binding, name: string, change: (sent: Sent) => Sent];

/** Replaces the value of every line of that name, and fails where that changes nothing: the case would attack nothing. */
export function withValue(name: string, change: (value: string) => string) {
  return (sent: Sent): Sent => {
    const lines = sent.lines.map((line) => (line.name === name ? { name, value: change(line.value) } : line));
    if (JSON.stringify(lines) === JSON.stringify(sent.lines)) throw new Error(`${name} does not change`);
    return { ...sent, lines };
  };
}

export const withoutLine =
  (name: string) =>
  (sent: Sent): Sent => ({ ...sent, lines: sent.lines.filter((line) => line.name !== name) });

export const withLines =
  (...more: readonly HeaderLine[]) =>
  (sent: Sent): Sent => ({ ...sent, lines: [...sent.lines, ...more] });

export const renamed =
  (from: string, to: string) =>
  (sent: Sent): Sent => ({
    ...sent,
    lines: sent.lines.map((line) => (line.name === from ? { name: to, value: line.value } : line)),
  });

export function valueIn({ lines }: Pick<Sent, 'lines'>, name: string): string {
  const found = lines.find((line) => line.name === name);
  if (found === undefined) throw new Error(`no ${name}`);
  return found.value;
}

/** Repeats the line, as a second line. */
export const repeated =
  (name: string) =>
  (sent: Sent): Sent =>
    withLines({ name, value: valueIn(sent, name) })(sent);
