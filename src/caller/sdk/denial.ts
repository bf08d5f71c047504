/** Reads a verifier's denial from a response. Source: docs/design/protocol.md, below the decision table. */

import { ObjectReader, textThat } from '../../protocol/object-reader.ts';
import { parseStrictJson } from '../../protocol/strict-json.ts';
import { REASON_HEADER } from '../../protocol/wire-names.ts';
import { clockAheadSeconds, clockText } from '../sign/clock-difference.ts';

/** A verifier denied the request. The message also names a repeated proof or a wrong clock, which the code does not. */
export class RequestDenied extends Error {
  override readonly name = 'RequestDenied';
  /** HTTP status. */
  readonly status: number;
  /** Stable code, such as `request_binding_mismatch`. */
  readonly reason: string;
  /** Stable code, such as `content-sha256`; undefined for a reason without details. */
  readonly detail: string | undefined;
  /** Identifies the decision in the operator's audit trail. */
  readonly decisionId: string | undefined;
  /**
   * Seconds that this clock is ahead of the server's, negative when it is behind; undefined when the clock is not the
   * cause.
   */
  readonly clockAheadSeconds: number | undefined;

  constructor(
    status: number,
    reason: string,
    { clockAheadSeconds, decisionId, detail }: Partial<Problem> & { readonly clockAheadSeconds?: number },
  ) {
    const code = `${reason}${detail === undefined ? '' : `/${detail}`}`;
    const clock = clockAheadSeconds === undefined ? '' : `; ${clockText(clockAheadSeconds)}`;
    super(`the verifier denied the request: ${code}${reason === 'jti_replay' ? REPEATED : ''}${clock}`);
    this.clockAheadSeconds = clockAheadSeconds;
    this.status = status;
    this.reason = reason;
    this.detail = detail;
    this.decisionId = decisionId;
  }
}

/** The SDK signs each request anew, so it did not send this proof twice. */
const REPEATED =
  '; something on the way repeated this request, and an earlier copy may have been executed: ask the API before you send it again';

interface Problem {
  readonly detail: string | undefined;
  readonly decisionId: string | undefined;
}

/** Undefined for a response that is not a denial. The body of the response can still be read. */
export async function denialOf(response: Response): Promise<RequestDenied | undefined> {
  const reason = response.headers.get(REASON_HEADER);
  if (response.ok || reason === null || !CODE.test(reason)) return undefined;
  const isProblem = response.headers.get('content-type')?.startsWith('application/problem+json') === true;
  const problem = isProblem && !response.bodyUsed ? await problemOf(response.clone()) : {};
  const seconds = reason === 'invalid_request_proof' ? clockAheadOf(response) : undefined;
  return new RequestDenied(response.status, reason, {
    ...problem,
    ...(seconds !== undefined && { clockAheadSeconds: seconds }),
  });
}

const SENT_MS = new WeakMap<Response, number>();

/** Records when the request of a response was sent. Without that time, a denial cannot report that this clock is ahead. */
export function noteSent(response: Response, sentMs: number): void {
  SENT_MS.set(response, sentMs);
}

function clockAheadOf(response: Response): number | undefined {
  const sentMs = SENT_MS.get(response) ?? Number.NEGATIVE_INFINITY;
  return clockAheadSeconds(response.headers.get('date'), sentMs, Date.now());
}

const CODE = /^[a-z0-9_.-]{1,128}$/;
const isCode = textThat((text) => CODE.test(text));

async function problemOf(response: Response): Promise<Partial<Problem>> {
  try {
    const invalid = (place: string, problem: string) => new Error(`${place} ${problem}`);
    const problem = new ObjectReader(parseStrictJson(await response.text()), '', invalid);
    return {
      detail: problem.optional('detail', isCode, 'a code'),
      decisionId: problem.optional('decision_id', isCode, 'an identifier'),
    };
  } catch {
    return {};
  }
}
