/**
 * Proves a caller's identity to a broker. Each prover has the holder key that the passport will name, because key and
 * proof belong together. Provers sign only the text of `src/protocol/broker-text.ts`, never bytes that another party
 * chose.
 * Source: docs/operate/broker.md "Proofs".
 */
import { constants, type KeyObject, sign } from 'node:crypto';
import {
  type BrokerStatement,
  brokerText,
  credentialSha256,
  jwtSvidAudience,
} from '../../protocol/broker-text.ts';
import { signMessage } from '../../protocol/signature.ts';
import {
  generateSigningKey,
  type SigningKey,
  SigningKeyError,
  signingKeyOf,
} from '../../protocol/signing.ts';
import type { ClientCertificate } from '../service/service-http.ts';
import type { CallerProof } from '../service/wire-types.ts';
import { BrokerError } from './broker-error.ts';

/** Inputs of a proof: the broker, its challenge and the request. */
export type ProofOccasion = Pick<BrokerStatement, 'operation' | 'brokerUrl' | 'challenge' | 'audience'>;

export interface CallerProver {
  /** The key for the passport's `cnf`. */
  readonly holderKey: SigningKey;
  readonly proof:
    | { readonly kind: 'connection'; readonly clientCertificate: ClientCertificate }
    | { readonly kind: 'challenge'; readonly prove: (occasion: ProofOccasion) => Promise<CallerProof> };
}

/** An X.509-SVID with its key, from the Workload API. */
export interface CallerSvid {
  readonly spiffeId: string;
  /** Leaf first; at least one. */
  readonly chainDer: readonly Uint8Array[];
  readonly privateKey: KeyObject;
  readonly notAfterMs: number;
}

/** Proves with a key that is registered at the broker. It is also the holder key. */
export function softwareKeyProver(key: SigningKey): CallerProver {
  const { jwk, thumbprint } = key.publicKey;
  return {
    holderKey: key,
    proof: {
      kind: 'challenge',
      prove: async (occasion) => ({
        kind: 'software_key',
        challenge: occasion.challenge,
        registered_jwk: { ...jwk },
        registered_signature: signWith(key, textOf(occasion, thumbprint, thumbprint)),
      }),
    },
  };
}

/** The SVID's key as a holder key, which TLS client authentication requires; undefined when verifiers do not support it. */
export function holderKeyOf({ privateKey }: CallerSvid): SigningKey | undefined {
  try {
    return signingKeyOf(privateKey);
  } catch (error) {
    if (error instanceof SigningKeyError) return undefined;
    throw error;
  }
}

/** @param holderKey the SVID's own key, from {@link holderKeyOf} */
export function mtlsProver(svid: CallerSvid, holderKey: SigningKey): CallerProver {
  return {
    holderKey,
    proof: {
      kind: 'connection',
      clientCertificate: {
        chainPem: svid.chainDer.map(pemOf).join(''),
        keyPem: svid.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      },
    },
  };
}

/** The SVID's key and the holder key sign the same text, so neither a proxy nor another broker can use the signatures. */
export function signedFormProver(svid: CallerSvid, holderKey: SigningKey): CallerProver {
  const { jwk, thumbprint } = holderKey.publicKey;
  const [leaf = new Uint8Array()] = svid.chainDer;
  return {
    holderKey,
    proof: {
      kind: 'challenge',
      prove: async (occasion) => {
        const text = textOf(occasion, leaf, thumbprint);
        return {
          kind: 'signed_form',
          challenge: occasion.challenge,
          certificates: svid.chainDer.map((der) => Buffer.from(der).toString('base64')),
          holder_jwk: { ...jwk },
          svid_signature: signWithSvidKey(svid.privateKey, text),
          holder_signature: signWith(holderKey, text),
        };
      },
    },
  };
}

/** @param fetchToken gets a JWT-SVID for exactly this audience */
export function jwtSvidProver(
  fetchToken: (audience: string) => Promise<string>,
  holderKey: SigningKey,
): CallerProver {
  const { jwk, thumbprint } = holderKey.publicKey;
  return {
    holderKey,
    proof: {
      kind: 'challenge',
      prove: async (occasion) => {
        const token = await fetchToken(jwtSvidAudience(occasion.brokerUrl, thumbprint));
        return {
          kind: 'jwt_svid',
          challenge: occasion.challenge,
          token,
          holder_jwk: { ...jwk },
          holder_signature: signWith(holderKey, textOf(occasion, token, thumbprint)),
        };
      },
    },
  };
}

/** A holder key that is kept only in memory. Verifiers check Ed25519 faster than P-256. */
export function newHolderKey(): SigningKey {
  return generateSigningKey('Ed25519');
}

function textOf(occasion: ProofOccasion, credential: Uint8Array | string, holderThumbprint: string): Buffer {
  return brokerText({ ...occasion, credentialSha256: credentialSha256(credential), holderThumbprint });
}

function signWith(key: SigningKey, text: Buffer): string {
  return signMessage(key.publicKey.algorithm, key.privateKey, text).toString('base64url');
}

/** ES256 and ES384 as in RFC 7518 section 3.4, PS256 as in section 3.5. @throws BrokerError `svid_key_unsupported` */
function signWithSvidKey(key: KeyObject, text: Buffer): string {
  const signature = signatureOf(key, text);
  if (signature !== undefined) return signature.toString('base64url');
  throw new BrokerError(
    'refused',
    'svid_key_unsupported',
    'the X.509-SVID has a key that brokers do not accept: P-256, P-384, Ed25519 or RSA',
  );
}

function signatureOf(key: KeyObject, text: Buffer): Buffer | undefined {
  const { asymmetricKeyDetails, asymmetricKeyType } = key;
  switch (asymmetricKeyType) {
    case 'ed25519':
      return sign(null, text, key);
    case 'rsa': {
      const padding = constants.RSA_PKCS1_PSS_PADDING;
      return sign('sha256', text, { key, padding, saltLength: constants.RSA_PSS_SALTLEN_DIGEST });
    }
    case 'ec': {
      const digest = EC_DIGESTS.get(asymmetricKeyDetails?.namedCurve ?? '');
      return digest === undefined ? undefined : sign(digest, text, { key, dsaEncoding: 'ieee-p1363' });
    }
    default:
      return undefined;
  }
}

const EC_DIGESTS: ReadonlyMap<string, string> = new Map([
  ['prime256v1', 'sha256'],
  ['secp384r1', 'sha384'],
]);

export function pemOf(der: Uint8Array): string {
  const lines = Buffer.from(der)
    .toString('base64')
    .replace(/(.{64})(?=.)/g, '$1\n');
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}
