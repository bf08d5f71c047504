/**
 * Why a workload token was refused: stable codes, in the order in which they are looked for. Texts never hold anything of the
 * token. Source: docs/control.md "Sources and tokens".
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
  /** With `issuer_keys_unavailable` only: when it is worth trying again. */
  readonly retryAfterSeconds?: number;
}

export function refuse(code: TokenRefusalCode, detail: string): TokenRefusal {
  return { kind: 'refused', code, detail };
}
