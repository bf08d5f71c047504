/** Keys, profiles and requests that the client tests share. */

import {
  RequestSigner,
  type RequestToSign,
  type SignedRequest,
} from '../../../src/caller/sign/request-signer.ts';
import { ClientError, type ClientErrorCode } from '../../../src/protocol/client-error.ts';
import type { ProofFormat } from '../../../src/protocol/proof-format.ts';
import { generateSigningKey, type SigningKey } from '../../../src/protocol/signing.ts';
import type { SigningProfiles } from '../../../src/protocol/signing-profile.ts';
import { parseSigningProfiles } from '../../../src/protocol/signing-profile-file.ts';
import type { RequestFacts } from '../../../src/verifier/decision/facts/request-facts.ts';

export const NOW_SECONDS = 1_800_000_000;

export function newEd25519Key(): SigningKey {
  return generateSigningKey('Ed25519');
}

export function newP256Key(): SigningKey {
  return generateSigningKey('ES256');
}

/** Content of a profile file, with the given members replaced. */
export function profileDocument(members: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    auth_site: 'shop-eu-1',
    key_id: 'dk_test',
    issuer: 'https://control.shop.example/sites/shop-eu-1',
    trust_domain: 'shop.example',
    subject: 'client:billing',
    key_binding: 'software',
    profiles: [routeDocument()],
    ...members,
  };
}

export function routeDocument(members: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    route_id: 'orders',
    method: 'GET',
    path_template: '/v1/orders/{order_id}',
    audience: 'https://api.shop.example',
    origins: ['https://api.shop.example'],
    ...members,
  };
}

export function profilesOf(...routes: readonly Readonly<Record<string, unknown>>[]): SigningProfiles {
  return parseSigningProfiles(JSON.stringify(profileDocument({ profiles: routes })), 'profile.json');
}

/** The caller of one request, and its clock. */
export interface Signer {
  readonly profiles: SigningProfiles;
  readonly holderKey: SigningKey;
  /** Undefined when the holder key signs its own passport. */
  readonly brokerPassport: string | undefined;
  /** Lifetime of the proof and of a self-signed passport. */
  readonly ttlSeconds: number;
  readonly nowSeconds: number;
  readonly expiresAtMs?: number | undefined;
}

/** Signs with a new signer. @throws ClientError for a failure */
export function signRequest(
  request: RequestToSign,
  signer: Signer,
  proof: ProofFormat = 'transcript-v1',
): SignedRequest {
  const { brokerPassport, expiresAtMs, holderKey: key, nowSeconds, profiles, ttlSeconds } = signer;
  const audiences = profiles.profiles.map(({ audience }) => audience);
  const passports =
    brokerPassport === undefined
      ? undefined
      : new Map(audiences.map((audience) => [audience, brokerPassport]));
  const requestSigner = new RequestSigner({
    proof,
    ...{ nowMs: () => nowSeconds * 1000, proofTtlSeconds: ttlSeconds, passportTtlSeconds: ttlSeconds },
  });
  requestSigner.replaceIdentity({ key, files: [profiles], passports, expiresAtMs });
  const signed = requestSigner.sign(request);
  if (signed.kind === 'signed') return signed;
  throw new ClientError(signed.code as ClientErrorCode, signed.message);
}

export function signerOf(members: Partial<Signer> = {}): Signer {
  return {
    profiles: profilesOf(routeDocument()),
    holderKey: newEd25519Key(),
    brokerPassport: undefined,
    ttlSeconds: 60,
    nowSeconds: NOW_SECONDS,
    ...members,
  };
}

export function requestOf(members: Partial<RequestToSign> = {}): RequestToSign {
  return {
    method: 'GET',
    url: 'https://api.shop.example/v1/orders/7',
    body: undefined,
    headers: [],
    ...members,
  };
}

/** The values of a request that is signed with transcript-v1. */
export function credentialsOf({ headers }: SignedRequest) {
  const [passport, transcript, signature] = headers.reveal().map(({ value }) => value);
  return {
    passport: (passport ?? '').replace('Passport ', ''),
    transcript: transcript ?? '',
    signature: signature ?? '',
  };
}

/** The code of the error that `act` throws. */
export function codeOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : `no code: ${error}`;
  }
  return 'nothing thrown';
}

/** The request as an enforcement point sees it. */
export function factsOf(
  request: RequestToSign,
  { url, method, headers: credentials }: SignedRequest,
): RequestFacts {
  const headers = [...request.headers, ...credentials.reveal()];
  return {
    method,
    scheme: url.scheme,
    authority: url.authority,
    target: url.target,
    headers: {
      lookup: (name) => {
        const found = headers.filter((header) => header.name.toLowerCase() === name);
        if (found.length > 1) return { kind: 'ambiguous' };
        return found[0] === undefined ? { kind: 'absent' } : { kind: 'single', value: found[0].value };
      },
      values: (name) =>
        headers.flatMap((header) => (header.name.toLowerCase() === name ? [header.value] : [])),
      names: () => headers.map(({ name }) => name),
      lines: () => headers.map(({ name, value }) => [name, value]),
    },
    body: request.body instanceof Uint8Array ? { kind: 'exact', bytes: request.body } : { kind: 'none' },
  };
}
