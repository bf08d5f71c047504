/**
 * The text that a caller signs for a broker. SVID key, registered key and holder key each sign the same bytes.
 * Source: docs/operate/broker.md "Signed text".
 */
import { hash } from 'node:crypto';

/** What the caller asks for. */
export type BrokerOperation = 'passport' | 'profiles' | 'proof';

export interface BrokerStatement {
  readonly operation: BrokerOperation;
  /** `--public-url` of the broker, exactly as configured at the caller, without a trailing slash. */
  readonly brokerUrl: string;
  /** The challenge as received from the broker. */
  readonly challenge: string;
  /** base64url SHA-256 of the credential: see {@link credentialSha256}. */
  readonly credentialSha256: string;
  /** RFC 7638 thumbprint of the key that the passport will name. */
  readonly holderThumbprint: string;
  /** `-` for {@link BrokerOperation} `profiles`. */
  readonly audience: string;
}

/** The bytes to sign. The label makes the signature useless in every other protocol. */
export function brokerText(statement: BrokerStatement): Buffer {
  const lines = [
    'proofgate-broker-v1',
    `operation=${statement.operation}`,
    `broker-url=${statement.brokerUrl}`,
    `challenge=${statement.challenge}`,
    `credential-sha256=${statement.credentialSha256}`,
    `holder-thumbprint=${statement.holderThumbprint}`,
    `audience=${statement.audience}`,
  ];
  // No value can contain a line feed: all are URLs, identifiers or base64url.
  return Buffer.from(lines.map((line) => `${line}\n`).join(''), 'utf8');
}

/**
 * @param credential the leaf certificate in DER, the JWT-SVID as text, or the RFC 7638 thumbprint of the registered key as text
 */
export function credentialSha256(credential: Uint8Array | string): string {
  return hash('sha256', credential, 'base64url');
}

/** The only audience of a JWT-SVID that a broker accepts. It limits the token to one holder key at one broker. */
export function jwtSvidAudience(brokerUrl: string, holderThumbprint: string): string {
  return `${brokerUrl}#jkt=${holderThumbprint}`;
}
