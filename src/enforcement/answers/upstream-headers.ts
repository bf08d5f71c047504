/**
 * Headers that an allowed request carries to the upstream, and headers that are removed from it.
 * Source: docs/design/protocol.md "What upstream receives".
 */

import type { Route } from '../../bundle/compile/snapshot.ts';
import {
  AUTHORIZATION_HEADER,
  CONTEXT_HEADERS,
  DPOP_HEADER,
  HTTP_SIGNATURE_FIELDS,
  HTTP_SIGNATURE_HEADER,
  HTTP_SIGNATURE_INPUT_HEADER,
  hasVendorLetters,
  lettersOf,
  OBSERVED_HEADER,
  PASSPORT_HEADER,
  PROOF_FIELDS,
  PROOF_HEADER,
  REQUEST_REWRITING_HEADERS,
  SIGNATURE_HEADER,
  TRANSCRIPT_HEADER,
} from '../../protocol/wire-names.ts';
import type { AllowedDecision, ObservedDecision } from '../../verifier/decision/decide.ts';
import type { ContextHeaders } from '../../verifier/decision/identity-headers.ts';

/** Context headers that differ for each request. */
export function decisionHeadersOf({ decisionId }: AllowedDecision): ContextHeaders {
  return [[CONTEXT_HEADERS.decisionId, decisionId]];
}

/** The only headers of ours on a request that passes without identity. */
export function observedHeadersOf({ decisionId }: ObservedDecision): ContextHeaders {
  return [
    [OBSERVED_HEADER, 'denied'],
    [CONTEXT_HEADERS.decisionId, decisionId],
  ];
}

const NONE: readonly string[] = [];

const SET_ON_OBSERVED: ReadonlySet<string> = new Set([OBSERVED_HEADER, CONTEXT_HEADERS.decisionId]);
const NEVER_ON_OBSERVED: readonly string[] = [
  TRANSCRIPT_HEADER,
  SIGNATURE_HEADER,
  PASSPORT_HEADER,
  ...Object.values(CONTEXT_HEADERS).filter((name) => !SET_ON_OBSERVED.has(name)),
];

/**
 * Names to remove from a request that passes without identity: all of ours in every spelling, headers that rewrite requests, and
 * `Authorization` where it may hold a passport. Never a name that is set, because Envoy would remove that too.
 * @param inbound the request's header names as received
 */
export function namesToRemoveFromObserved(
  inbound: readonly string[],
  { removesAuthorization, unusedProofs }: ObservedDecision,
): readonly string[] {
  const reserved = inbound.filter((name) => isReservedName(name) && !SET_ON_OBSERVED.has(name.toLowerCase()));
  const authorization = removesAuthorization ? [AUTHORIZATION_HEADER] : [];
  return [...new Set([...NEVER_ON_OBSERVED, ...authorization, ...unusedProofs, ...reserved])];
}

type CredentialRoute = Pick<Route, 'forwardAuthorization' | 'passportHeader'>;

/** Names of the credentials, which every allowed request of the route carries. */
export function usualNamesToRemove({
  forwardAuthorization,
  passportHeader,
}: CredentialRoute): readonly string[] {
  const proof = [TRANSCRIPT_HEADER, SIGNATURE_HEADER];
  return forwardAuthorization ? proof : [passportHeader, ...proof];
}

/** Whether the upstream receives the caller's `Authorization`, which is the passport or belongs to the application. */
export function keepsAuthorization(route: CredentialRoute): boolean {
  return !usualNamesToRemove(route).includes(AUTHORIZATION_HEADER);
}

const REWRITING: ReadonlySet<string> = new Set(REQUEST_REWRITING_HEADERS.map(lettersOf));
const ALWAYS_SET: ReadonlySet<string> = new Set(
  Object.values(CONTEXT_HEADERS).filter((name) => name !== CONTEXT_HEADERS.clientId),
);
/** Reserved names begin with x, or with punctuation. */
const OTHER_FIRST = /^[a-wyz0-9]/i;

/**
 * Further inbound names to remove: our prefix in every spelling, and headers that make upstreams serve another request.
 * Never a name that is set, because Envoy would remove that too.
 * @param inbound the request's header names as received
 */
export function otherNamesToRemove(
  inbound: readonly string[],
  { caller, route }: AllowedDecision,
): readonly string[] {
  // Nearly every request has none, so the list is allocated lazily.
  let names: string[] | undefined;
  for (const name of inbound) {
    if (!isReservedName(name)) continue;
    // Envoy removes headers without regard to case, so the comparison with names that are set ignores it too.
    const lower = name.toLowerCase();
    if (ALWAYS_SET.has(lower)) continue;
    if (lower === PASSPORT_HEADER && route.passportHeader === PASSPORT_HEADER) continue;
    if (lower === PROOF_HEADER && route.acceptedProofs !== undefined) continue;
    if (lower === CONTEXT_HEADERS.clientId && caller.derivedKey !== undefined) continue;
    names ??= [];
    names.push(name);
  }
  return names ?? NONE;
}

/**
 * Removes a DPoP proof; removes the verified signature from `Signature` and `Signature-Input`, and keeps the signatures of others.
 * Each of the two is either set or removed.
 */
export function proofChanges({ otherSignatures, proofFormat }: AllowedDecision): {
  readonly set: ContextHeaders;
  readonly removed: readonly string[];
} {
  if (proofFormat === 'dpop') return WITHOUT_DPOP;
  if (proofFormat !== 'http-message-signatures') return NO_CHANGES;
  if (otherSignatures === undefined) return { set: [], removed: HTTP_SIGNATURE_FIELDS };
  const { input, signature } = otherSignatures;
  const fields: ContextHeaders = [
    [HTTP_SIGNATURE_INPUT_HEADER, input],
    [HTTP_SIGNATURE_HEADER, signature],
  ];
  return {
    set: fields.filter(([, value]) => value !== ''),
    removed: fields.filter(([, value]) => value === '').map(([name]) => name),
  };
}

/**
 * Lines of {@link PROOF_FIELDS} that the upstream receives of a request that passes: without those that hold a proof for the site.
 * @param lines the request's lines as received
 */
export function keptProofLines(
  lines: ContextHeaders,
  decision: AllowedDecision | ObservedDecision,
): ContextHeaders {
  const { removed, set } =
    decision.kind === 'allowed' ? proofChanges(decision) : { set: [], removed: decision.unusedProofs };
  const gone = new Set([...removed, ...set.map(([name]) => name)]);
  const kept = lines.filter(([name]) => {
    const lower = name.toLowerCase();
    return PROOF_FIELDS.includes(lower) && !gone.has(lower);
  });
  return [...kept, ...set];
}

const NO_CHANGES = { set: [], removed: NONE };
const WITHOUT_DPOP = { set: [], removed: [DPOP_HEADER] };

/**
 * Whether a client's header of this name must not reach the upstream: our prefix in any spelling, except the proof, and
 * headers that rewrite requests.
 */
export function isReservedName(name: string): boolean {
  if (OTHER_FIRST.test(name) || name === TRANSCRIPT_HEADER || name === SIGNATURE_HEADER) return false;
  const letters = lettersOf(name.toLowerCase());
  return hasVendorLetters(letters) || REWRITING.has(letters);
}

/** Whether no server behind an enforcement point may see the header: a proof, our prefix, or one that rewrites requests. */
export function isWithheldFromUpstream(lowerName: string): boolean {
  return lowerName === TRANSCRIPT_HEADER || lowerName === SIGNATURE_HEADER || isReservedName(lowerName);
}
