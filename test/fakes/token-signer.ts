/** Signs compact JWS with node:crypto, correctly or in any wrong way that a test wants. */
import { constants, createHmac, generateKeyPairSync, hash, type KeyObject, sign } from 'node:crypto';

export type SigningAlgorithm = 'RS256' | 'PS256' | 'ES256' | 'Ed25519';

export interface IssuerSigner {
  readonly kid: string;
  readonly algorithm: SigningAlgorithm;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  /** The public key as an issuer publishes it. */
  readonly jwk: { readonly [member: string]: unknown };
}

/** A new key, named as clusters name theirs: by the hash of its public half. */
export function makeSigner(algorithm: SigningAlgorithm, rsaBits = 2048): IssuerSigner {
  const { publicKey, privateKey } = makeKeyPair(algorithm, rsaBits);
  const kid = hash('sha256', publicKey.export({ type: 'spki', format: 'der' }), 'base64url');
  const jwk = { use: 'sig', kid, alg: algorithm, ...publicKey.export({ format: 'jwk' }) };
  return { kid, algorithm, privateKey, publicKey, jwk };
}

function makeKeyPair(algorithm: SigningAlgorithm, rsaBits: number) {
  switch (algorithm) {
    case 'ES256':
      return generateKeyPairSync('ec', { namedCurve: 'P-256' });
    case 'Ed25519':
      return generateKeyPairSync('ed25519');
    default:
      return generateKeyPairSync('rsa', { modulusLength: rsaBits });
  }
}

/** Signs with the signer's algorithm, whatever the header says. A text is used unchanged, so that it may be invalid JSON. */
export function signCompact(header: object | string, payload: object | string, signer: IssuerSigner): string {
  const input = signingInput(header, payload);
  return `${input}.${signBytes(Buffer.from(input), signer).toString('base64url')}`;
}

export function signingInput(header: object | string, payload: object | string): string {
  const encode = (part: object | string) =>
    Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url');
  return `${encode(header)}.${encode(payload)}`;
}

/** The old attack: the public key's text as the secret of a symmetric signature. */
export function signHmac(header: object, payload: object, secret: string | Buffer): string {
  const input = signingInput(header, payload);
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
}

function signBytes(bytes: Buffer, { algorithm, privateKey }: IssuerSigner): Buffer {
  switch (algorithm) {
    case 'RS256':
      return sign('sha256', bytes, privateKey);
    case 'PS256':
      return sign('sha256', bytes, {
        key: privateKey,
        padding: constants.RSA_PKCS1_PSS_PADDING,
        saltLength: 32,
      });
    case 'ES256':
      return sign('sha256', bytes, { key: privateKey, dsaEncoding: 'ieee-p1363' });
    case 'Ed25519':
      return sign(null, bytes, privateKey);
  }
}
