/**
 * Turns a Decision into the response to an authorization request. docs/operate/forward-auth.md describes how each proxy
 * uses it.
 */
import type { HeaderLookup } from '../../protocol/credentials.ts';
import { AUTHORIZATION_HEADER, PASSPORT_HEADER } from '../../protocol/wire-names.ts';
import type {
  AllowedDecision,
  Decision,
  DeniedDecision,
  ObservedDecision,
} from '../../verifier/decision/decide.ts';
import { identityHeadersOf } from '../../verifier/decision/identity-headers.ts';
import { problemOfDenial } from '../answers/denial-problem.ts';
import {
  decisionHeadersOf,
  keepsAuthorization,
  namesToRemoveFromObserved,
  observedHeadersOf,
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
  /** The request's `Authorization`, which the other proxies copy back for a route that keeps it. */
  readonly authorization: HeaderLookup;
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
  { authorization, profile }: AnswerOptions,
): CheckAnswer['headers'] {
  const headers: (readonly [string, string])[] = [
    ['cache-control', 'no-store'],
    ...observedHeadersOf(decision),
  ];
  if (profile.removesHeaders) {
    const names = [...namesToRemoveFromObserved([], decision), ...profile.ownHeaders];
    headers.push([ENVOY_REMOVE_HEADER, names.join(',')]);
  } else if (!decision.removesAuthorization && authorization.kind === 'single') {
    headers.push([AUTHORIZATION_HEADER, authorization.value]);
  }
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
  { authorization, profile }: AnswerOptions,
): CheckAnswer['headers'] {
  const headers: (readonly [string, string])[] = [
    ['cache-control', 'no-store'],
    ...identityHeadersOf(decision),
    ...decisionHeadersOf(decision),
  ];
  // Other proxies remove the credentials by their own configuration.
  if (profile.removesHeaders) {
    const names = new Set([...usualNamesToRemove(decision.route), PASSPORT_HEADER, ...profile.ownHeaders]);
    headers.push([ENVOY_REMOVE_HEADER, [...names].join(',')]);
  } else if (keepsAuthorization(decision.route) && authorization.kind === 'single') {
    headers.push([AUTHORIZATION_HEADER, authorization.value]);
  }
  return headers;
}
