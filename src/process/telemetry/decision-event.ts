/**
 * The audit event of a decision, one JSON line each. Names are stable; its schema is
 * docs/reference/schema/decision-event.schema.json. Contains no credential: no passport, transcript, signature or header value.
 * Source: docs/operate/enforcement.md "Operations".
 */
export const DECISION_EVENT_NAME = 'proofgate.decision';

export interface DecisionEvent {
  readonly event: typeof DECISION_EVENT_NAME;
  /** RFC 3339, UTC, milliseconds. */
  readonly time: string;
  readonly decision_id: string;
  /** `observed`: denied, and passed without identity. */
  readonly outcome: 'allowed' | 'denied' | 'observed';
  readonly reason?: string | undefined;
  readonly detail?: string | undefined;
  /** HTTP status of a denial; of an observed one what it would be. */
  readonly status?: number | undefined;
  readonly auth_site?: string | undefined;
  readonly route_id?: string | undefined;
  /** Undefined when the Check could not be decoded. */
  readonly method?: string | undefined;
  readonly issuer?: string | undefined;
  readonly subject?: string | undefined;
  readonly trust_domain?: string | undefined;
  readonly key_id?: string | undefined;
  readonly key_binding?: string | undefined;
  readonly client_id?: string | undefined;
  /** The passport's own `jti`; never the proof's. */
  readonly passport_id?: string | undefined;
  /** Whether the caller's identity above was verified; false: it is only the request's claim. */
  readonly caller_verified: boolean;
  /** On routes with `accepted_proofs`: the format of the proof, when it can be read. */
  readonly proof_format?: string | undefined;
  /** base64url SHA-256 of the transcript's bytes. */
  readonly transcript_sha256?: string | undefined;
  /** base64url SHA-256 of an HTTP message signature's `@signature-params`, nonce included. */
  readonly signature_params_sha256?: string | undefined;
  /** base64url SHA-256 of a DPoP proof's signing input, `jti` included; the signature has many spellings. */
  readonly dpop_proof_sha256?: string | undefined;
  readonly bundle_revision?: number | undefined;
  readonly bundle_head?: string | undefined;
  /** Present when the request was allowed only because of a break-glass statement. */
  readonly break_glass?: true | undefined;
  /** Position in the route's `allowed_sources`, from 0. */
  readonly matched_rule?: number | undefined;
  /** Of a denial of step 4: names of all attributes of the route that the caller lacks or has with another value, by reason. */
  readonly unmet_attributes?: { readonly [reason: string]: readonly string[] } | undefined;
  /** Trace ID of the request's W3C trace context, when it has one. */
  readonly trace_id?: string | undefined;
  readonly duration_us: number;
}

/**
 * The line that reports missing decisions in an audit trail. Its schema is docs/reference/schema/audit-gap-event.schema.json.
 * Source: docs/operate/enforcement.md "Audit events".
 */

export const AUDIT_GAP_EVENT_NAME = 'proofgate.audit_gap';

export interface AuditGapEvent {
  readonly event: typeof AUDIT_GAP_EVENT_NAME;
  /** When this line was written. RFC 3339, UTC, milliseconds, like the decision event's. */
  readonly time: string;
  /** When the first missing event was lost. */
  readonly since: string;
  /** Number of missing decisions. With `--audit required` all of them were denied. */
  readonly lost: number;
}
