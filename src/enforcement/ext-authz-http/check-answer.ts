/**
 * Turns a Decision into the response to an authorization request. docs/operate/forward-auth.md describes how each proxy
 * uses it.
 */
import { AUTHORIZATION_HEADER, PASSPORT_HEADER, PROOF_FIELDS } from '../../protocol/wire-names.ts';
import type {
  AllowedDecision,
  Decision,
  DeniedDecision,
  ObservedDecision,
} from '../../verifier/decision/decide.ts';
import type { RequestFacts } from '../../verifier/decision/facts/request-facts.ts';
import { type ContextHeaders, identityHeadersOf } from '../../verifier/decision/identity-headers.ts';
import { problemOfDenial } from '../answers/denial-problem.ts';
import {
  decisionHeadersOf,
  keepsAuthorization,
  keptProofLines,
  namesToRemoveFromObserved,
  observedHeadersOf,
  proofChanges,
  usualNamesToRemove,
} from '../answers/upstream-headers.ts';
import type { HttpProfile } from './profiles.ts';

export interface CheckAnswer {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
}

/** Envoy removes this header and the headers that it names before it forwards the request to the API. */
const ENVOY_REMOVE_HEADER = 'x-envoy-auth-headers-to-remove';

export interface AnswerOptions {
  readonly profile: Pick<HttpProfile, 'ownHeaders' | 'removesHeaders' | 'unavailableStatus'>;
  /** The request, of which other proxies forward what the answer has of `Authorization` and the proofs. */
  readonly request: Pick<RequestFacts, 'headers' | 'removesProofs'>;
}

export function answerOf(decision: Decision, options: AnswerOptions): CheckAnswer {
  if (decision.kind === 'denied') return denialAnswer(decision, options.profile);
  const headers =
    decision.kind === 'observed' ? observedHeaders(decision, options) : allowedHeaders(decision, options);
  return { status: 200, headers, body: '' };
}

/** A client's own headers of ours were refused before; the credentials remain. */
function observedHeaders(
  decision: ObservedDecision,
  { profile, request }: AnswerOptions,
): CheckAnswer['headers'] {
  const headers: (readonly [string, string])[] = [
    ['cache-control', 'no-store'],
    ...observedHeadersOf(decision),
  ];
  if (profile.removesHeaders) {
    const names = [...namesToRemoveFromObserved([], decision), ...profile.ownHeaders];
    headers.push([ENVOY_REMOVE_HEADER, names.join(',')]);
  } else headers.push(...copiedBack(request, !decision.removesAuthorization, decision));
  return headers;
}

/** The body keeps the denial's own status. */
export function denialAnswer(
  decision: DeniedDecision,
  { unavailableStatus }: Pick<HttpProfile, 'unavailableStatus'>,
): CheckAnswer {
  const problem = problemOfDenial(decision);
  return problem.status === 503 ? { ...problem, status: unavailableStatus } : problem;
}

function allowedHeaders(
  decision: AllowedDecision,
  { profile, request }: AnswerOptions,
): CheckAnswer['headers'] {
  const headers: (readonly [string, string])[] = [
    ['cache-control', 'no-store'],
    ...identityHeadersOf(decision),
    ...decisionHeadersOf(decision),
  ];
  // Other proxies remove the credentials by their own configuration.
  if (profile.removesHeaders) {
    const { removed, set } = proofChanges(decision);
    // Where Envoy joins lines, a field with signatures of others is ambiguous, so that none is set.
    const proofs = [...removed, ...set.map(([name]) => name)];
    const credentials = [...usualNamesToRemove(decision.route), PASSPORT_HEADER, ...proofs];
    const names = new Set([...credentials, ...profile.ownHeaders]);
    headers.push([ENVOY_REMOVE_HEADER, [...names].join(',')]);
  } else headers.push(...copiedBack(request, keepsAuthorization(decision.route), decision));
  return headers;
}

/** What the proxy forwards of the request's `Authorization` and proofs: only what the answer has. */
function copiedBack(
  { headers, removesProofs }: AnswerOptions['request'],
  hasAuthorization: boolean,
  decision: AllowedDecision | ObservedDecision,
): ContextHeaders {
  const authorization = headers.lookup(AUTHORIZATION_HEADER);
  const copied: (readonly [string, string])[] = [];
  if (hasAuthorization && authorization.kind === 'single') {
    copied.push([AUTHORIZATION_HEADER, authorization.value]);
  }
  if (removesProofs !== true) return copied;
  const kept = keptProofLines(headers.lines(), decision);
  for (const field of PROOF_FIELDS) {
    const values = kept.filter(([name]) => name.toLowerCase() === field).map(([, value]) => value);
    // One line, because nginx hands on one (RFC 9110 section 5.3).
    if (values.length > 0) copied.push([field, values.join(', ')]);
  }
  return copied;
}
