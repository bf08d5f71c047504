/** Compares the answers that a caller received with the requests that it signed, over HTTP/2 stream by stream. */
import type { DecisionEvent } from '../../../src/process/telemetry/decision-event.ts';
import type { FrameText } from '../../support/hostile/cases.ts';
import type { Answers } from '../../support/hostile/http1-attack.ts';
import type { Success } from '../../support/hostile/judge.ts';
import type { Template } from '../../support/hostile/template.ts';

/** What one caller signed, and what it was answered. */
export interface Exchange {
  readonly name: string;
  readonly template: Pick<Template, 'signed'>;
  readonly answers: Answers;
  /** Of an HTTP/2 case. */
  readonly frames?: readonly FrameText[];
}

/** Name of the exchanges that must have exactly one answer. */
export const VICTIM = 'an innocent caller';

/** In the echo of an upstream, or in the answer of a handler behind middleware. */
const ANSWERED_DECISION = /(?:"x-proofgate-decision-id","|\bhandled )([0-9a-f-]{36})\b/gi;

/** Answers to requests that this caller did not sign, or not on this stream. */
export function misdeliveries(
  { answers, frames, name, template }: Exchange,
  allowed: readonly DecisionEvent[],
): readonly Success[] {
  const received = [...answers.byStream].flatMap(([stream, bytes]) =>
    [...bytes.toString('latin1').matchAll(ANSWERED_DECISION)].map(([, id]) => ({ id, stream })),
  );
  const foreign = received.filter(({ id, stream }) => {
    const event = allowed.find(({ decision_id }) => decision_id === id);
    const index = template.signed.findIndex(
      ({ transcriptSha256 }) => transcriptSha256 === event?.transcript_sha256,
    );
    if (event === undefined || index < 0) return true;
    return frames !== undefined && stream !== 0 && !streamsWithProof(frames, index + 1).includes(stream);
  });
  const success = (what: string): Success => ({ kind: 'answer', caseName: name, what });
  return [
    ...foreign.map(({ id, stream }) => success(`stream ${stream} received the answer to decision ${id}`)),
    ...(name === VICTIM && received.length !== 1
      ? [success(`received ${received.length} answers instead of one`)]
      : []),
  ];
}

function streamsWithProof(frames: readonly FrameText[], number: number): readonly number[] {
  const markers = number === 1 ? ['{proof}', '{proof.1}'] : [`{proof.${number}}`];
  return frames.flatMap((frame) =>
    // A block without lines repeats those of another stream through HPACK's table.
    frame.kind === 'headers' &&
    (frame.lines.length === 0 || frame.lines.some(([name]) => markers.includes(name)))
      ? [(frame.stream ?? 1) & 0x7fffffff]
      : [],
  );
}
