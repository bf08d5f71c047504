/** Makes DPoP proofs, correct ones or with any change of header, claims or bytes. */
import { DPOP_PROOF_TYPE } from '../../../src/protocol/dpop-proof.ts';
import { passportSha256 } from '../../../src/protocol/passport.ts';
import { signMessage } from '../../../src/protocol/signature.ts';
import { newJti, type SigningKey } from '../../../src/protocol/signing.ts';

export interface DpopPlan {
  readonly key: SigningKey;
  readonly method: string;
  /** Without query. */
  readonly url: string;
  readonly token: string;
  readonly issuedAtSeconds: number;
  /** In place of the usual members; undefined removes one. */
  readonly header?: Readonly<Record<string, unknown>>;
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Signs in place of the key; the header names the key as before. */
  readonly signer?: SigningKey;
}

export function signDpop({
  claims,
  header,
  issuedAtSeconds,
  key,
  method,
  signer = key,
  token,
  url,
}: DpopPlan): string {
  const { algorithm, jwk } = key.publicKey;
  const parts = [
    { typ: DPOP_PROOF_TYPE, alg: algorithm, jwk, ...header },
    {
      jti: newJti(),
      htm: method,
      htu: url,
      iat: issuedAtSeconds,
      ath: passportSha256(token),
      ...claims,
    },
  ];
  const input = parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  const signature = signMessage(signer.publicKey.algorithm, signer.privateKey, Buffer.from(input));
  return `${input}.${signature.toString('base64url')}`;
}
