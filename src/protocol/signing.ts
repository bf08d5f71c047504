/**
 * The signing half of the protocol: creates passports and proofs. Used by the CLI, brokers and tests.
 * Source: docs/design/protocol.md "Passport", "Transcript", "HTTP Message Signatures", "DPoP".
 */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import type { HeaderLookup } from './credentials.ts';
import { DPOP_PROOF_TYPE } from './dpop-proof.ts';
import { coveredValues, formatSignatureBase, SITE_PROFILE } from './http-signature.ts';
import type { KeyBinding } from './identifiers.ts';
import { PASSPORT_TYPE } from './passport.ts';
import {
  CheckedKey,
  importP256Key,
  type PublicJwk,
  type PublicKey,
  parsePublicJwk,
  type SignatureAlgorithm,
} from './public-key.ts';
import { signMessage } from './signature.ts';
import { serializeByteSequences, serializeString } from './structured-fields.ts';
import { formatTranscript, type SignedHeader, type Transcript } from './transcript.ts';

/** A private key with its public half, which passes the checks of every public key. */
export interface SigningKey {
  readonly publicKey: PublicKey;
  readonly privateKey: KeyObject;
}

/** Thrown for a private key of an unsupported kind. Contains no key material. */
export class SigningKeyError extends Error {
  override readonly name = 'SigningKeyError';
}

/**
 * Parses a private key in PEM (PKCS#8, RFC 5958): Ed25519 or P-256.
 * @throws SigningKeyError for any other key
 */
export function parseSigningKey(pem: string | Uint8Array): SigningKey {
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey({ key: Buffer.from(pem), format: 'pem' });
  } catch {
    throw new SigningKeyError('not an unencrypted private key in PEM');
  }
  return signingKeyOf(privateKey);
}

/** @throws SigningKeyError when the key is neither Ed25519 nor P-256. */
export function signingKeyOf(privateKey: KeyObject): SigningKey {
  const type = privateKey.asymmetricKeyType;
  if (type !== 'ed25519' && type !== 'ec') throw new SigningKeyError('neither an Ed25519 nor a P-256 key');
  const publicKey = publicKeyOf(privateKey);
  if (publicKey === undefined) throw new SigningKeyError('neither an Ed25519 nor a P-256 key');
  return { publicKey, privateKey };
}

/**
 * An Ed25519 point that OpenSSL computes from a private key is always in the prime-order subgroup (RFC 8032 section 5.1.5), so
 * that it needs no check by libsodium, which the Node SDK does not have.
 */
function publicKeyOf(privateKey: KeyObject): PublicKey | undefined {
  const jwk = parsePublicJwk(publicJwkOf(privateKey));
  if (jwk === undefined) return undefined;
  return jwk.kty === 'OKP' ? new CheckedKey(jwk, Buffer.from(jwk.x, 'base64url')) : importP256Key(jwk);
}

/**
 * Generates a key as bytes and imports it. In Node.js 20 a key object straight from the generator shares a lock with
 * the job that created it. If the garbage collector frees that job while the key is exported, the process deadlocks
 * (`KeyGenJob::~KeyGenJob` under `KeyObjectHandle::ExportJWK`).
 */
export function generateSigningKey(algorithm: SignatureAlgorithm): SigningKey {
  const publicKeyEncoding = { type: 'spki', format: 'der' } as const;
  const privateKeyEncoding = { type: 'pkcs8', format: 'der' } as const;
  const { privateKey: key } =
    algorithm === 'Ed25519'
      ? generateKeyPairSync('ed25519', { publicKeyEncoding, privateKeyEncoding })
      : generateKeyPairSync('ec', { namedCurve: 'P-256', publicKeyEncoding, privateKeyEncoding });
  const privateKey = createPrivateKey({ key, ...privateKeyEncoding });
  key.fill(0);
  return signingKeyOf(privateKey);
}

/** Undefined for a curve without a JWK name, such as brainpool. */
function publicJwkOf(privateKey: KeyObject): unknown {
  try {
    return createPublicKey(privateKey).export({ format: 'jwk' });
  } catch {
    return undefined;
  }
}

/** Claims of a new passport; times in seconds since the epoch. */
export interface PassportToSign {
  readonly keyId: string;
  readonly issuer: string;
  readonly subject: string;
  readonly trustDomain: string;
  readonly audience: string;
  readonly issuedAtSeconds: number;
  readonly expiresAtSeconds: number;
  readonly notBeforeSeconds?: number;
  readonly keyBinding: KeyBinding;
  readonly holderJwk: PublicJwk;
  readonly provenance?: { readonly [name: string]: string };
  readonly context?: { readonly [name: string]: string };
  /** Its `jti`; default: 128 random bits. */
  readonly passportId?: string;
}

/** Returns the compact JWS. */
export function signPassport(passport: PassportToSign, key: SigningKey): string {
  return signJws(passportSigningInput(passport, key.publicKey.algorithm), key);
}

/** The ASCII text that the passport's signature covers (RFC 7515 section 5.1). */
export function passportSigningInput(passport: PassportToSign, algorithm: SignatureAlgorithm): string {
  const header = { typ: PASSPORT_TYPE, alg: algorithm, kid: passport.keyId };
  const claims = {
    iss: passport.issuer,
    sub: passport.subject,
    trust_domain: passport.trustDomain,
    aud: passport.audience,
    iat: passport.issuedAtSeconds,
    exp: passport.expiresAtSeconds,
    nbf: passport.notBeforeSeconds,
    key_binding: passport.keyBinding,
    cnf: { jwk: passport.holderJwk },
    jti: passport.passportId ?? newJti(),
    provenance: passport.provenance,
    context: passport.context,
  };
  return `${encodeJson(header)}.${encodeJson(claims)}`;
}

function encodeJson(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

/** 128 random bits as 22 characters of base64url. */
export function newJti(): string {
  return randomBytes(16).toString('base64url');
}

/** The values of `X-Proofgate-Transcript` and `X-Proofgate-Signature`. */
export interface ProofHeaders {
  readonly transcript: string;
  readonly signature: string;
}

export function signTranscript(transcript: Transcript, holder: SigningKey): ProofHeaders {
  // UTF-8, because latin1 would sign U+010A as a line feed. Non-ASCII text must stay visible, so that it is rejected.
  const bytes = Buffer.from(formatTranscript(transcript), 'utf8');
  return {
    transcript: bytes.toString('base64url'),
    signature: signMessage(holder.publicKey.algorithm, holder.privateKey, bytes).toString('base64url'),
  };
}

/** A request that a derived key signs itself (RFC 9421). */
export interface HttpMessageToSign {
  readonly authSite: string;
  /** `key_id` of the derived key. */
  readonly keyId: string;
  readonly method: string;
  readonly scheme: string;
  /** In lower case, without the scheme's default port. */
  readonly authority: string;
  /** Path and query exactly as sent. */
  readonly target: string;
  /** Fields to cover, each sent once, in this order. */
  readonly headers: readonly SignedHeader[];
  readonly jti: string;
  readonly issuedAtSeconds: number;
  readonly expiresAtSeconds: number;
}

/** Values of `Signature-Input` and `Signature`. */
export interface HttpSignatureHeaders {
  readonly signatureInput: string;
  readonly signature: string;
}

export const HTTP_SIGNATURE_LABEL = 'sig';

/** The base is that of the verifier, so that both read a component in the same way. */
export function signHttpMessage(message: HttpMessageToSign, key: SigningKey): HttpSignatureHeaders {
  const { expiresAtSeconds, headers, issuedAtSeconds, jti, keyId } = message;
  const components = ['@method', '@target-uri', ...headers.map(({ name }) => name)];
  const params = [
    `(${components.map(serializeString).join(' ')})`,
    `created=${issuedAtSeconds}`,
    `expires=${expiresAtSeconds}`,
    `nonce=${serializeString(jti)}`,
    `keyid=${serializeString(keyId)}`,
    `tag=${serializeString(SITE_PROFILE.tagOf(message.authSite))}`,
  ].join(';');
  const covered = coveredValues(components, { ...message, headers: { lookup: lookupIn(headers) } });
  if (covered.kind === 'unknown') throw new Error(`${covered.name} has no value to sign`);
  const base = Buffer.from(formatSignatureBase(covered.lines, params), 'utf8');
  const signature = signMessage(key.publicKey.algorithm, key.privateKey, base);
  return {
    signatureInput: `${HTTP_SIGNATURE_LABEL}=${params}`,
    signature: serializeByteSequences([[HTTP_SIGNATURE_LABEL, signature]]),
  };
}

/** A DPoP proof for one request (RFC 9449 section 4.2). */
export interface DpopProofToSign {
  readonly method: string;
  /** Without query and fragment. */
  readonly url: string;
  readonly jti: string;
  readonly issuedAtSeconds: number;
  /** base64url SHA-256 of the token that the request carries. */
  readonly tokenSha256: string;
  /** The server's nonce, if it gave one. */
  readonly nonce: string | undefined;
}

/** Returns the compact JWS. */
export function signDpopProof(proof: DpopProofToSign, key: SigningKey): string {
  const { algorithm, jwk } = key.publicKey;
  const header = { typ: DPOP_PROOF_TYPE, alg: algorithm, jwk };
  const claims = {
    jti: proof.jti,
    htm: proof.method,
    htu: proof.url,
    iat: proof.issuedAtSeconds,
    ath: proof.tokenSha256,
    nonce: proof.nonce,
  };
  return signJws(`${encodeJson(header)}.${encodeJson(claims)}`, key);
}

function signJws(signingInput: string, key: SigningKey): string {
  const signature = signMessage(key.publicKey.algorithm, key.privateKey, Buffer.from(signingInput, 'latin1'));
  return `${signingInput}.${signature.toString('base64url')}`;
}

function lookupIn(headers: readonly SignedHeader[]) {
  return (name: string): HeaderLookup => {
    const found = headers.find((header) => header.name === name);
    return found === undefined ? { kind: 'absent' } : { kind: 'single', value: found.value };
  };
}
