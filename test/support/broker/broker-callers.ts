/** Callers of a broker: make each proof, with ways to change one thing of what is signed or sent. */
import { constants, createPublicKey, type KeyObject, sign } from 'node:crypto';
import type { CallerProof } from '../../../src/broker/broker-contract.ts';
import {
  type BrokerStatement,
  brokerText,
  credentialSha256,
  jwtSvidAudience,
} from '../../../src/protocol/broker-text.ts';
import { signMessage } from '../../../src/protocol/signature.ts';
import type { SigningKey } from '../../../src/protocol/signing.ts';
import type { IssuedSvid, SpiffeAuthority } from '../fakes/spiffe-authority.ts';
import { AUDIENCE, BROKER_URL, NOW_MS } from './broker-fixture.ts';

export type SignedForm = Extract<CallerProof, { kind: 'signed_form' }>;
export type JwtSvidProof = Extract<CallerProof, { kind: 'jwt_svid' }>;
export type SoftwareKeyProof = Extract<CallerProof, { kind: 'software_key' }>;

/** Replaces lines of the text that is signed. */
export type TextEdits = Partial<BrokerStatement>;

function textOf(
  challenge: string,
  credential: Uint8Array | string,
  holder: SigningKey,
  edits: TextEdits,
): Buffer {
  return brokerText({
    operation: 'passport',
    brokerUrl: BROKER_URL,
    challenge,
    credentialSha256: credentialSha256(credential),
    holderThumbprint: holder.publicKey.thumbprint,
    audience: AUDIENCE,
    ...edits,
  });
}

export function signedForm(
  challenge: string,
  svid: IssuedSvid,
  holder: SigningKey,
  edits: TextEdits = {},
): SignedForm {
  const text = textOf(challenge, svid.chainDer[0] ?? '', holder, edits);
  return {
    kind: 'signed_form',
    challenge,
    certificates: svid.chainDer.map((der) => der.toString('base64')),
    holder_jwk: holder.publicKey.jwk,
    svid_signature: signWithSvid(svid.privateKey, text).toString('base64url'),
    holder_signature: signHolder(holder, text),
  };
}

export async function jwtSvidProof(
  challenge: string,
  authority: SpiffeAuthority,
  spiffeId: string,
  holder: SigningKey,
  edits: TextEdits & {
    readonly tokenAudience?: string | readonly string[];
    readonly claims?: Readonly<Record<string, unknown>>;
    readonly header?: Readonly<Record<string, unknown>>;
    /** Instead of a new token. */
    readonly token?: string;
  } = {},
): Promise<JwtSvidProof> {
  const { tokenAudience, claims, header, token: given, ...textEdits } = edits;
  const nowSeconds = NOW_MS / 1000;
  const token =
    given ??
    (await authority.issueJwtSvid(
      spiffeId,
      tokenAudience ?? jwtSvidAudience(BROKER_URL, holder.publicKey.thumbprint),
      { iat: nowSeconds, exp: nowSeconds + 240, ...claims },
      header,
    ));
  const holderSignature = signHolder(holder, textOf(challenge, token, holder, textEdits));
  return {
    kind: 'jwt_svid',
    challenge,
    token,
    holder_jwk: holder.publicKey.jwk,
    holder_signature: holderSignature,
  };
}

/** @param fresh another holder key that the registered one vouches for */
export function softwareKeyProof(
  challenge: string,
  registered: SigningKey,
  fresh?: SigningKey,
  edits: TextEdits = {},
): SoftwareKeyProof {
  const text = textOf(challenge, registered.publicKey.thumbprint, fresh ?? registered, edits);
  return {
    kind: 'software_key',
    challenge,
    registered_jwk: registered.publicKey.jwk,
    registered_signature: signHolder(registered, text),
    ...(fresh && { holder_jwk: fresh.publicKey.jwk, holder_signature: signHolder(fresh, text) }),
  };
}

export function signHolder({ publicKey, privateKey }: SigningKey, text: Uint8Array): string {
  return signMessage(publicKey.algorithm, privateKey, text).toString('base64url');
}

/** ES256, ES384, Ed25519 or PS256, by the key. */
export function signWithSvid(key: KeyObject, text: Uint8Array): Buffer {
  if (key.asymmetricKeyType === 'ed25519') return sign(null, text, key);
  if (key.asymmetricKeyType === 'rsa') {
    return sign('sha256', text, { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 });
  }
  const curve = createPublicKey(key).asymmetricKeyDetails?.namedCurve;
  return sign(curve === 'secp384r1' ? 'sha384' : 'sha256', text, { key, dsaEncoding: 'ieee-p1363' });
}

export function softwareKeysYaml(key: SigningKey, subject = 'ci:deploy', more = ''): string {
  return `keys:\n  - thumbprint: ${key.publicKey.thumbprint}\n    subject: ${subject}\n    trust_domain: shop.example\n${more}`;
}
