/**
 * The audit event of a passport that the broker issued or refused, one JSON line each. Contains no credential: no passport,
 * token, certificate or signature.
 * Source: docs/operate/broker.md "Audit events".
 */
export const BROKER_EVENT_NAME = 'proofgate.broker';

export interface BrokerEvent {
  readonly event: typeof BROKER_EVENT_NAME;
  /** RFC 3339, UTC, milliseconds. */
  readonly time: string;
  readonly request_id: string;
  readonly operation: 'passport' | 'proof' | 'profiles';
  readonly outcome: 'issued' | 'refused';
  /** Problem code of a refusal. */
  readonly code?: string | undefined;
  /** Kind of the caller's proof. */
  readonly proof: string;
  readonly remote_address: string;
  readonly audience?: string | undefined;
  readonly issuer: string;
  /** The caller as verified; undefined when the refusal came before that. */
  readonly trust_domain?: string | undefined;
  readonly subject?: string | undefined;
  readonly key_binding?: string | undefined;
  /** Hash as in the signed text: of the certificate, the token or the registered key's thumbprint. */
  readonly credential_sha256?: string | undefined;
  readonly holder_thumbprint?: string | undefined;
  readonly key_id?: string | undefined;
  /** The passport's `jti`, as in the verifier's decision events. */
  readonly passport_id?: string | undefined;
  readonly expires_at?: string | undefined;
}
