/** Headers that identify the caller to the upstream. Source: docs/design/protocol.md "What upstream receives". */
import { CONTEXT_HEADERS, PROOF_HEADER } from '../../protocol/wire-names.ts';
import type { Verified } from './decide.ts';

/** Each overwrites an inbound header of the same name. */
export type ContextHeaders = readonly (readonly [name: string, value: string])[];

/** Context headers that depend only on caller, route and bundle. */
export function identityHeadersOf({
  caller,
  proofFormat,
  route,
  snapshot,
}: Pick<Verified, 'caller' | 'proofFormat' | 'route' | 'snapshot'>): ContextHeaders {
  const headers: [string, string][] = [
    [CONTEXT_HEADERS.subject, caller.subject],
    [CONTEXT_HEADERS.issuer, caller.issuer],
    [CONTEXT_HEADERS.trustDomain, caller.trustDomain],
    [CONTEXT_HEADERS.keyId, caller.keyId],
    [CONTEXT_HEADERS.keyBinding, caller.keyBinding],
    [CONTEXT_HEADERS.routeId, route.routeId],
    [CONTEXT_HEADERS.authSite, snapshot.authSite],
    [CONTEXT_HEADERS.bundleRevision, String(snapshot.revision)],
  ];
  if (caller.derivedKey !== undefined) {
    headers.push([CONTEXT_HEADERS.clientId, caller.derivedKey.client.clientId]);
  }
  if (route.acceptedProofs !== undefined) headers.push([PROOF_HEADER, proofFormat]);
  return headers;
}
