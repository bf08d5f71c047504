/** Reads the denial of a verifier from a response. Source: docs/design/protocol.md, under the decision table. */

import { ObjectReader, textThat } from '../../protocol/object-reader.ts';
import { parseStrictJson } from '../../protocol/strict-json.ts';
import { REASON_HEADER } from '../../protocol/wire-names.ts';
import { clockAheadSeconds, clockText } from '../sign/clock-difference.ts';

/** A verifier denied the request. Its message says what the code alone does not: a repeated proof, and a wrong clock. */
export class RequestDenied extends Error {
  override readonly name = 'RequestDenied';
  /** HTTP status. */
  readonly status: number;
  /** Stable, such as `request_binding_mismatch`. */
  readonly reason: string;
  /** Stable, such as `content-sha256`; undefined where the reason has none. */
  readonly detail: string | undefined;
  /** For the operator, who finds the decision in the audit trail by it. */
  readonly decisionId: string | undefined;
  /** Seconds that this clock is ahead of the server's, negative when it is behind; undefined where it is not the matter. */
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

/** Undefined for a response that is no denial. The body of the response can still be read. */
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

/** Notes when the request of a response was sent. Without it, a denial cannot say that this clock is ahead. */
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
