/** Reads the denial of a verifier from a response. Source: docs/protocol.md, under the decision table. */

import { ObjectReader, textThat } from '../client/object-reader.ts';
import { parseStrictJson } from '../protocol/strict-json.ts';
import { REASON_HEADER } from '../protocol/wire-names.ts';

/** A verifier denied the request. */
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

  constructor(status: number, reason: string, problem: Partial<Problem>) {
    const { decisionId, detail } = problem;
    super(`the verifier denied the request: ${reason}${detail === undefined ? '' : `/${detail}`}`);
    this.status = status;
    this.reason = reason;
    this.detail = detail;
    this.decisionId = decisionId;
  }
}

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
  return new RequestDenied(response.status, reason, problem);
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
