/**
 * Findings of the linter, with stable codes that commands print and tests assert.
 * Source: docs/design/bundle.md "What lint looks for".
 */

export type FindingCode =
  | 'body_unbound'
  | 'dpop_unbound'
  | 'oauth_revocation'
  | 'route_shadowed'
  | 'method_shadowed'
  | 'forward_authorization'
  | 'issuer_speaks_for_anyone'
  | 'freshness_class_unknown'
  | 'staleness_long'
  | 'staleness_of_realtime'
  | 'signed_header_rewritten'
  | 'grpc_body_bound'
  | 'lifetime_long'
  | 'origin_not_https'
  | 'subject_not_canonical'
  | 'method_not_upper_case'
  | 'source_unreachable'
  | 'route_unreachable'
  | 'issuer_unused'
  | 'grant_unused'
  | 'client_identity_shared'
  | 'block_unreachable'
  | 'route_observed'
  | 'unmatched_observed'
  | 'observation_over';

export interface Finding {
  readonly code: FindingCode;
  /** `warning`: something does not work, or is weaker than it looks. `notice`: for information. */
  readonly severity: 'warning' | 'notice';
  /** JSON Pointer into the content. */
  readonly path: string;
  readonly text: string;
}

export function warning(code: FindingCode, path: string, text: string): Finding {
  return { code, severity: 'warning', path, text };
}

export function notice(code: FindingCode, path: string, text: string): Finding {
  return { code, severity: 'notice', path, text };
}
