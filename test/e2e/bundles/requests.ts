/** Requests to the site of generations, each with what its answer reveals about the revision that decided it. */
import { passportSha256 } from '../../../src/protocol/passport.ts';
import { newJti, type SigningKey, signPassport, signTranscript } from '../../../src/protocol/signing.ts';
import { AUTH_SITE, ORIGIN, TRUST_DOMAIN } from '../../support/fixtures/bundle-content.ts';
import { rawCheckRequest } from '../../support/fixtures/check-request.ts';
import { encodeCheckRequest } from '../../support/harness/check-client.ts';
import { type CallerKeys, type Generation, ISSUER, nowSeconds, type Turn, turnOf } from './generations.ts';

export const REQUEST_KINDS = ['paired', 'client_odd', 'client_even', 'key_odd', 'key_even'] as const;
export type RequestKind = (typeof REQUEST_KINDS)[number];

interface Caller {
  readonly keyId: string;
  readonly client: string;
  readonly routeId: 'paired' | 'turn';
  readonly key: (keys: CallerKeys) => SigningKey;
  /** `passes`, or the reason of its denial. */
  readonly expected: (generation: Generation) => string;
}

const byClient = (turn: Turn): Caller => ({
  keyId: `dk_${turn}`,
  client: turn,
  routeId: 'turn',
  key: (keys) => keys[turn],
  expected: ({ generation }) => (turnOf(generation) === turn ? 'passes' : 'source_subject_mismatch'),
});

const byKey = (turn: Turn): Caller => ({
  keyId: 'dk_turn',
  client: 'pair',
  routeId: 'paired',
  key: (keys) => keys[turn],
  expected: ({ turnKey }) => (turnKey === turn ? 'passes' : 'invalid_request_proof'),
});

const CALLERS: { readonly [K in RequestKind]: Caller } = {
  paired: {
    keyId: 'dk_pair',
    client: 'pair',
    routeId: 'paired',
    key: (keys) => keys.pair,
    expected: () => 'passes',
  },
  client_odd: byClient('odd'),
  client_even: byClient('even'),
  key_odd: byKey('odd'),
  key_even: byKey('even'),
};

export function expectedOutcome(kind: RequestKind, generation: Generation): string {
  return CALLERS[kind].expected(generation);
}

const PASSPORT_SECONDS = 300;
const RENEW_SECONDS = 60;

/** Signs passports once a minute, and each request anew. */
export class RequestSigner {
  readonly #keys: CallerKeys;
  readonly #passports = new Map<RequestKind, { readonly jws: string; readonly issuedAtSeconds: number }>();

  constructor(keys: CallerKeys) {
    this.#keys = keys;
  }

  /** An encoded CheckRequest. */
  request(kind: RequestKind): Buffer {
    const { client, keyId, key, routeId } = CALLERS[kind];
    const signer = key(this.#keys);
    const passport = this.#passport(kind);
    const issuedAtSeconds = nowSeconds();
    const bound = {
      method: 'GET',
      scheme: 'https',
      authority: 'api.shop.example',
      target: `/v1/${routeId}`,
    } as const;
    const proof = signTranscript(
      {
        ...bound,
        ...identityOf(client),
        authSite: AUTH_SITE,
        keyId,
        passportSha256: passportSha256(passport),
        routeId,
        jti: newJti(),
        issuedAtSeconds,
        expiresAtSeconds: issuedAtSeconds + 60,
        contentSha256: '-',
        headers: [],
      },
      signer,
    );
    const headers = [
      { name: 'authorization', value: `Passport ${passport}` },
      { name: 'x-proofgate-transcript', value: proof.transcript },
      { name: 'x-proofgate-signature', value: proof.signature },
    ];
    return encodeCheckRequest(rawCheckRequest({ ...bound, headers, body: { kind: 'none' } }));
  }

  #passport(kind: RequestKind): string {
    const issuedAtSeconds = nowSeconds();
    const known = this.#passports.get(kind);
    if (known !== undefined && issuedAtSeconds < known.issuedAtSeconds + RENEW_SECONDS) return known.jws;
    const { client, keyId, key } = CALLERS[kind];
    const signer = key(this.#keys);
    const claims = {
      ...identityOf(client),
      keyId,
      trustDomain: TRUST_DOMAIN,
      issuedAtSeconds,
      expiresAtSeconds: issuedAtSeconds + PASSPORT_SECONDS,
      keyBinding: 'software',
      holderJwk: signer.publicKey.jwk,
    } as const;
    const jws = signPassport(claims, signer);
    this.#passports.set(kind, { jws, issuedAtSeconds });
    return jws;
  }
}

const identityOf = (client: string) => ({ issuer: ISSUER, subject: `client:${client}`, audience: ORIGIN });
