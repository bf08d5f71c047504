/**
 * Error codes of rejected workload tokens, in the order of the checks. Codes are stable; texts never quote the token.
 * Source: docs/control.md "Sources and tokens".
 */
export const TOKEN_REFUSAL_CODES = [
  'token_malformed',
  'token_header',
  'token_algorithm',
  'issuer_keys_unavailable',
  'token_key_unknown',
  'token_signature',
  'token_issuer',
  'token_audience',
  'token_subject',
  'token_expiry_missing',
  'token_expired',
  'token_not_yet_valid',
  'token_lifetime',
  'token_claims',
] as const;
export type TokenRefusalCode = (typeof TOKEN_REFUSAL_CODES)[number];

export interface TokenRefusal {
  readonly kind: 'refused';
  readonly code: TokenRefusalCode;
  readonly detail: string;
  /** Only with `issuer_keys_unavailable`: seconds until a retry makes sense. */
  readonly retryAfterSeconds?: number;
}

export function refuse(code: TokenRefusalCode, detail: string): TokenRefusal {
  return { kind: 'refused', code, detail };
}
