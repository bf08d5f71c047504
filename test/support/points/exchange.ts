/** Sends a case to a point and describes the result in a few words. */

import type { DecisionEvent } from '../../../src/process/telemetry/decision-event.ts';
import type { WireMessage } from '../../../src/tools/conformance/wire/conformance-case.ts';
import {
  type HeaderLine,
  headerValues,
  NoResponse,
  type WireAddress,
  type WireResponse,
} from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client, sendBytes } from '../../../src/tools/conformance/wire/http1.ts';
import { http2Client, sendLines } from '../../../src/tools/conformance/wire/http2.ts';
import type { UpstreamRequest } from '../harness/upstream.ts';
import type { Protocol } from '../site/gateway.ts';
import { waitFor } from '../wait.ts';
import type { EnforcementPoint } from './enforcement-point.ts';

export interface Exchange {
  /** `allowed`, or why not: `403 jti_replay`, `400` from the HTTP parser, `closed` without an answer, `silent`; `refused` where it depends on timing which of these. */
  readonly outcome: string;
  readonly arrived: readonly UpstreamRequest[];
  /** Headers of the answer; none without an answer. */
  readonly answered: readonly HeaderLine[];
}

export async function exchange(
  point: EnforcementPoint,
  protocol: Protocol,
  message: WireMessage,
): Promise<Exchange> {
  const before = (await point.decisions()).length;
  point.upstream.clear();
  const address = protocol === 'HTTP/2' ? (point.http2Address ?? point.address) : point.address;
  const answer = await sendMessage(address, protocol, message);
  await recorded(point, answer);
  const arrived = [...point.upstream.requests];
  const decisions = (await point.decisions()).slice(before);
  const answered = answer instanceof NoResponse ? [] : answer.headers;
  if (arrived.length > 0) return { outcome: 'allowed', arrived, answered };
  const outcome = refusal(answer, decisions.at(-1));
  // A server that closes before it has read all bytes resets the connection, and its 400 may get lost on the way.
  const dependsOnTiming =
    'bytes' in message
      ? message.isCutOff === true || /^(?:400|closed)$/.test(outcome)
      : protocol === 'HTTP/2' && point.resetsTrailers === true && hasTrailers(message);
  return { outcome: dependsOnTiming ? 'refused' : outcome, arrived, answered };
}

/** The event of a decision may be written after its answer: it must not count for the next case. */
async function recorded(point: EnforcementPoint, answer: WireResponse | NoResponse): Promise<void> {
  if (answer instanceof NoResponse) return;
  const [id] = headerValues(answer.headers, 'x-proofgate-decision-id');
  // The audit log may be what is unavailable.
  if (id === undefined || headerValues(answer.headers, 'x-proofgate-reason')[0] === 'verifier_unavailable')
    return;
  await waitFor(`decision ${id}`, async () =>
    (await point.decisions()).some(({ decision_id }) => decision_id === id),
  );
}

function hasTrailers(message: Exclude<WireMessage, { readonly bytes: unknown }>): boolean {
  return ('lines' in message ? message.request : message).trailers !== undefined;
}

export async function sendMessage(
  address: WireAddress,
  protocol: Protocol,
  message: WireMessage,
): Promise<WireResponse | NoResponse> {
  try {
    return await send(address, protocol, message);
  } catch (error) {
    if (error instanceof NoResponse) return error;
    throw error;
  }
}

function send(address: WireAddress, protocol: Protocol, message: WireMessage): Promise<WireResponse> {
  if ('bytes' in message) return sendBytes(address, message.bytes, 'GET', SILENCE_MS, message.isCutOff);
  if ('lines' in message) return sendLines(address, message.request, message.lines);
  return (protocol === 'HTTP/1.1' ? http1Client(address) : http2Client(address)).send(message);
}

/** How long a server may wait for more bytes. */
const SILENCE_MS = 5_000;

/** The recorded decision says more than the answer at points that lose the body of a denial. */
function refusal(answer: WireResponse | NoResponse, decision: DecisionEvent | undefined): string {
  if (answer instanceof NoResponse) return answer.kind === 'timeout' ? 'silent' : 'closed';
  const { headers, status } = answer;
  if (decision?.outcome === 'allowed') return `${status} after the verifier allowed it`;
  const told = headerValues(headers, 'x-proofgate-reason')[0];
  const named = decision?.reason ?? told;
  if (told !== named) return `${status} ${told ?? 'without a reason'}, decided ${named}`;
  const detail = decision === undefined ? detailOf(answer) : decision.detail;
  if (named === undefined) return String(status);
  return `${status} ${detail === undefined ? named : `${named}/${detail}`}`;
}

/** The detail from the answer, if nothing can be recorded. */
function detailOf(answer: WireResponse): string | undefined {
  if (!answer.body.includes('urn:proofgate:denial:')) return undefined;
  const problem: { readonly detail?: string } = JSON.parse(answer.body.toString('utf8'));
  return problem.detail;
}
