/**
 * Makes `dpop.json` by the rules of docs/design/protocol.md and RFC 9449, step by step, with the passports of `signing.json`; the
 * tests compare it with `src/protocol/`.
 */
import { createHash } from 'node:crypto';
import { signSameEachTime } from '../../support/fixtures/deterministic.ts';
import { ALL_TEST_KEYS } from '../../support/fixtures/test-keys.ts';
import type { DpopVector, SigningVector } from './format.ts';
import { signingVectors } from './signing-vectors.ts';

/** A nonce of each character that one may have, but for letters and digits. */
const MARKS = "!#$%&'()*+,-./:;<=>?@[]^_`{|}~";

/** Nonces by the name of the signing vector whose passport and request these are. */
const NONCES: ReadonlyMap<string, string> = new Map([
  [
    'P-256 on both sides; an empty body that is bound; IPv6 with a port, over http',
    'eyJ7S_zG.eyJH0-Z.HX4w-7v',
  ],
  ['GET with a body: its hash', MARKS],
  ['a body that is not text', 'n'.repeat(256)],
]);

export function dpopVectors(): readonly DpopVector[] {
  return signingVectors()
    .filter(({ route }) => route.passport_header === undefined)
    .map(dpopVector);
}

function dpopVector({
  auth_site,
  holder_key,
  issued_at,
  jti,
  name,
  passport,
  request,
}: SigningVector): DpopVector {
  const key = ALL_TEST_KEYS.get(holder_key);
  if (key === undefined) throw new Error(`no key ${holder_key}`);
  const nonce = NONCES.get(name);
  const { authority, method, scheme, target } = request;
  const [path = ''] = target.split('?');
  const origin = `${scheme}://${authority.toLowerCase().replace(scheme === 'https' ? /:443$/ : /:80$/, '')}`;
  const ath = createHash('sha256').update(passport.jws).digest('base64url');
  const proof_header = JSON.stringify({
    typ: 'dpop+jwt',
    alg: key.publicKey.algorithm,
    jwk: key.publicKey.jwk,
  });
  const proof_claims = JSON.stringify({
    jti,
    htm: method,
    htu: `${origin}${path}`,
    iat: issued_at,
    ath,
    nonce,
  });
  const input = [proof_header, proof_claims].map((text) => Buffer.from(text).toString('base64url')).join('.');
  const signature = signSameEachTime(key, Buffer.from(input)).toString('base64url');
  return {
    ...{ name, holder_key, auth_site, passport: passport.jws, request, jti, issued_at },
    ...(nonce !== undefined && { nonce }),
    ...{ proof_header, proof_claims },
    headers: { Authorization: `DPoP ${passport.jws}`, DPoP: `${input}.${signature}` },
  };
}
