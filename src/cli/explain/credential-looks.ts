/**
 * Heuristics for texts that look like credentials. Only `--show-values` uses them: no list of names is complete, so the
 * default redaction does not depend on it.
 */

const NAME = new RegExp(
  [
    '^(?:auth|bearer|code|dpop|hash|hmac|jws|jwt|key|nonce|otp|pass|pin|pwd|sid|sig|state|ticket)$',
    'access[-_]?key|api[-_]?key|functions-key|subscription-key',
    'assertion|authorization|cookie|credential|oidc|passphrase|passw|pwd|saml|secret|session|signature|token|verifier',
    '(?:^|[^a-z])(?:auth|code|jwt|key|otp|pin|sig)(?:$|[^a-z])',
  ].join('|'),
  'i',
);

/** Names of headers and query parameters. */
export function isCredentialName(name: string): boolean {
  return NAME.test(decoded(name));
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** An authentication scheme with a value; a JWS or similar; a long text without words. */
const VALUE = new RegExp(
  [
    '(?:basic|bearer|digest|dpop|negotiate|passport|token)(?: |%20|\\+)',
    '[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]*',
    '[A-Za-z0-9_+/=-]{48,}',
  ].join('|'),
  'i',
);

/** @param own the credentials of the request itself */
export function looksLikeCredential(value: string, own: readonly string[]): boolean {
  return VALUE.test(value) || own.some((credential) => credential !== '' && value.includes(credential));
}
