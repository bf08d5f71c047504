/**
 * Encodes a Decision as the bytes of a CheckResponse. Responses that differ only in the decision's ID are encoded once:
 * those to one passport on one route, and denials for the same reason.
 */
import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { RequestHeaders } from '../../protocol/credentials.ts';
import type { AllowedDecision, Decision, DeniedDecision } from '../../verifier/decision/decision.ts';
import { otherNamesToRemove } from '../upstream-headers.ts';
import { allowedResponse, deniedResponse } from './check-response.ts';
import type { CheckResponse } from './messages.ts';

export type ResponseEncoder = (decision: Decision, inbound: RequestHeaders) => Buffer;

/** The library's serializers. */
export interface ResponseSerializers {
  readonly checkResponse: (response: CheckResponse) => Buffer;
}

/** Maximum size of the cached responses, each a few hundred bytes, or some thousands where identifiers are long. */
const MAX_KEPT_BYTES = 8 * 1024 * 1024;
const KEPT_ALLOWANCE_BYTES = 256;

/** An encoded response without the decision's ID. */
interface KeptAnswer {
  readonly bytes: Buffer;
  readonly decisionIdAt: readonly number[];
}

export function createResponseEncoder({ checkResponse }: ResponseSerializers): ResponseEncoder {
  const kept = new LRUCache<string, KeptAnswer>({
    maxSize: MAX_KEPT_BYTES,
    sizeCalculation: ({ bytes }, name) => bytes.byteLength + name.length + KEPT_ALLOWANCE_BYTES,
  });
  // Placeholder of the ID's length. It is random, so no other part of a response can equal it.
  const place = randomUUID();

  function keep(name: string, bytes: Buffer): KeptAnswer {
    const answer = { bytes, decisionIdAt: placesOf(place, bytes) };
    kept.set(name, answer);
    return answer;
  }

  function encodeAllowed(decision: AllowedDecision, inbound: RequestHeaders): Buffer {
    const { decisionId, passportSha256, route, snapshot } = decision;
    const namesToRemove = otherNamesToRemove(inbound.names(), decision);
    if (namesToRemove.length > 0 || decisionId.length !== place.length) {
      return checkResponse(allowedResponse(decision, namesToRemove));
    }
    const name = `${snapshot.head}\n${passportSha256}\n${route.routeId}`;
    const answer =
      kept.get(name) ?? keep(name, checkResponse(allowedResponse({ ...decision, decisionId: place }, [])));
    return withId(answer, decisionId);
  }

  function encodeDenied(decision: DeniedDecision): Buffer {
    const { decisionId, denial, routeId } = decision;
    if (decisionId.length !== place.length) return checkResponse(deniedResponse(decision));
    const name = `${denial.reason}\n${denial.detail ?? ''}\n${routeId ?? ''}`;
    const answer =
      kept.get(name) ?? keep(name, checkResponse(deniedResponse({ ...decision, decisionId: place })));
    return withId(answer, decisionId);
  }

  return (decision, inbound) =>
    decision.kind === 'denied' ? encodeDenied(decision) : encodeAllowed(decision, inbound);
}

function placesOf(text: string, bytes: Buffer): readonly number[] {
  const places: number[] = [];
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) places.push(at);
  return places;
}

function withId({ bytes, decisionIdAt }: KeptAnswer, decisionId: string): Buffer {
  const answer = Buffer.from(bytes);
  for (const at of decisionIdAt) answer.write(decisionId, at, 'latin1');
  return answer;
}
