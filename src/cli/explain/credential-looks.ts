/**
 * What looks like a credential, for `--show-values` alone. No list of bad names is complete, which is why nothing rests on
 * this one but what somebody asked to see.
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

/** Of a header or a parameter of the query. */
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

/** An authentication scheme and something after it; a JWS or the like; what has no words in it for long. */
const VALUE = new RegExp(
  [
    '(?:basic|bearer|digest|dpop|negotiate|passport|token)(?: |%20|\\+)',
    '[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]*',
    '[A-Za-z0-9_+/=-]{48,}',
  ].join('|'),
  'i',
);

/** @param own what the request itself was authenticated with */
export function looksLikeCredential(value: string, own: readonly string[]): boolean {
  return VALUE.test(value) || own.some((credential) => credential !== '' && value.includes(credential));
}
