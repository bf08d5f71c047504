/**
 * What an allowed request carries to the upstream, and what it may not carry there.
 * Source: docs/protocol.md "What upstream receives".
 */
import {
  AUTHORIZATION_HEADER,
  CONTEXT_HEADERS,
  REQUEST_REWRITING_HEADERS,
  SIGNATURE_HEADER,
  TRANSCRIPT_HEADER,
} from '../protocol/wire-names.ts';
import type { AllowedDecision } from '../verifier/decision/decision.ts';

/** Each overwrites whatever came in under its name. */
export type ContextHeaders = readonly (readonly [name: string, value: string])[];

/** Context headers that depend on caller, route and bundle alone. */
export function identityHeadersOf({ caller, route, snapshot }: AllowedDecision): ContextHeaders {
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
  return headers;
}

/** Context headers of this one request. */
export function decisionHeadersOf({ decisionId }: AllowedDecision): ContextHeaders {
  return [[CONTEXT_HEADERS.decisionId, decisionId]];
}

/** The credentials, which every request that gets here carries. */
export function usualNamesToRemove(forwardAuthorization: boolean): readonly string[] {
  const proof = [TRANSCRIPT_HEADER, SIGNATURE_HEADER];
  return forwardAuthorization ? proof : [AUTHORIZATION_HEADER, ...proof];
}

const REWRITING: ReadonlySet<string> = new Set(REQUEST_REWRITING_HEADERS);
const REWRITING_LENGTHS: ReadonlySet<number> = new Set(REQUEST_REWRITING_HEADERS.map((name) => name.length));
const ALWAYS_SET: ReadonlySet<string> = new Set(
  Object.values(CONTEXT_HEADERS).filter((name) => name !== CONTEXT_HEADERS.clientId),
);
/** Upstreams behind CGI-like interfaces read `_`, `.` and others as `-`. */
const VENDOR_SPELLING = /^x[^a-z0-9]proofgate(?:[^a-z0-9]|$)/;

/**
 * Further inbound names that must not reach the upstream: our prefix in every spelling, and what makes
 * upstreams serve another request. Never a name that is set: Envoy would remove that too.
 * @param inbound the request's header names as they stand in it
 */
export function otherNamesToRemove(
  inbound: readonly string[],
  { caller }: AllowedDecision,
): readonly string[] {
  // Nearly every request has none: no list is made for those.
  let names: string[] | undefined;
  for (const name of inbound) {
    if (!mustGo(name)) continue;
    // Envoy removes without regard to case, so names that are set are compared in the same way.
    const lower = name.toLowerCase();
    if (ALWAYS_SET.has(lower)) continue;
    if (lower === CONTEXT_HEADERS.clientId && caller.derivedKey !== undefined) continue;
    names ??= [];
    names.push(name);
  }
  return names ?? NONE;
}

const NONE: readonly string[] = [];

function mustGo(name: string): boolean {
  const first = name.charCodeAt(0);
  // Most headers do not begin with x: the patterns are for those that do.
  if (first !== 0x78 && first !== 0x58) return false;
  if (name === TRANSCRIPT_HEADER || name === SIGNATURE_HEADER) return false;
  const lower = name.toLowerCase();
  if (lower.startsWith('proofgate', 2)) return VENDOR_SPELLING.test(lower);
  return REWRITING_LENGTHS.has(lower.length) && REWRITING.has(lower.replace(/[^a-z0-9]/g, '-'));
}
