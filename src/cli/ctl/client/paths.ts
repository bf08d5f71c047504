/** Paths of Control's API, with percent-encoded names. */

export function sitePath(siteId: string): string {
  return `/v1/sites/${encodeURIComponent(siteId)}`;
}

export function blockedSubjectsPath(siteId: string): string {
  return `${sitePath(siteId)}/blocked-subjects`;
}

export function blockedCallersPath(siteId: string): string {
  return `${sitePath(siteId)}/blocked-callers`;
}

export function brokerPath(siteId: string, issuer: string, trustDomain: string): string {
  return `${issuerPath(siteId, issuer)}/${encodeURIComponent(trustDomain)}`;
}

/** Names the only broker of an issuer, as Control up to 0.3.0 does. */
export function issuerPath(siteId: string, issuer: string): string {
  return `${sitePath(siteId)}/brokers/${encodeURIComponent(issuer)}`;
}

/** The path of a change, with what the audit trail says of why. */
export function withReason(path: string, reason: string | undefined): string {
  if (reason === undefined) return path;
  return `${path}${path.includes('?') ? '&' : '?'}${new URLSearchParams({ reason })}`;
}

export function revisionPath(sourceId: string, revision: number): string {
  return `/v1/sources/${encodeURIComponent(sourceId)}/revisions/${revision}`;
}
