/**
 * Fuzzes DPoP proofs and access tokens: a compact JWS as it is (`j…`), or header and claims on two lines: of a proof (`c…`), which
 * the holder of a passport signs and sends with one request, or of an access token (`t…`), which is read alone. Whatever holders
 * sign, the request is allowed only where the proof is of it.
 */
import { isDeepStrictEqual } from 'node:util';
import { parseAccessToken } from '../../../src/protocol/access-token.ts';
import { MAX_DPOP_PROOF_BYTES, parseDpopProof } from '../../../src/protocol/dpop-proof.ts';
import { passportSha256 } from '../../../src/protocol/passport.ts';
import { signMessage } from '../../../src/protocol/signature.ts';
import { factsOfWire } from '../../support/fixtures/signed-request.ts';
import { OTHER_TEST_KEYS, TEST_SITE_KEYS } from '../../support/fixtures/test-keys.ts';
import { NOW_SECONDS, openSite, SITE_ALLOWED, SITE_CONTENT } from '../site.ts';
import { type FuzzTarget, mustHold } from '../target.ts';

const AS_IT_STANDS = 0x6a;
const OF_TOKEN = 0x74;
const holder = TEST_SITE_KEYS.billing;
const base = SITE_ALLOWED.find(({ name }) => name === 'table, a derived key: nothing wrong');
const authorization = base?.request.headers.find(([name]) => name.toLowerCase() === 'authorization');
const passport = authorization?.[1].replace(/^passport /i, '') ?? '';
const REQUEST = { method: 'GET', scheme: 'https', authority: 'api.shop.example', target: '/v1/orders/17' };
const URL_OF_REQUEST = 'https://api.shop.example/v1/orders/17';

const decide = await openSite({
  ...SITE_CONTENT,
  routes: SITE_CONTENT.routes.map((route) =>
    route.route_id === 'orders-read'
      ? { ...route, accepted_proofs: ['dpop'], unbound: ['route', 'site'] }
      : route,
  ),
});

function run(input: Buffer): void {
  const text = input.toString('latin1', 1);
  if (input[0] === AS_IT_STANDS) return void checkParsed(text);
  const jws = jwsOf(text);
  if (input[0] === OF_TOKEN) return void checkToken(jws);
  checkParsed(jws);
  if (isAllowed(jws)) mustHold(isOfRequest(jws), 'only a proof of this very request is allowed');
}

function checkParsed(jws: string): void {
  const proof = parseDpopProof(jws);
  if (proof === undefined) return;
  mustHold(jws.length <= MAX_DPOP_PROOF_BYTES, 'a proof has at most 4 KiB');
  const spelt = `${proof.signingInput.toString('latin1')}.${proof.signature.toString('base64url')}`;
  mustHold(spelt === jws, 'a proof is spelt in one way');
  const { header, claims } = partsOf(jws);
  mustHold(isDeepStrictEqual(Object.keys(header).sort(), ['alg', 'jwk', 'typ']), 'the header is closed');
  mustHold(!('d' in Object(header.jwk)), 'no private key');
  mustHold(claims.htm === proof.method && claims.jti === proof.jti, 'what was read is what is there');
  mustHold(claims.iat === proof.issuedAtSeconds && claims.ath === proof.tokenSha256, 'so are time and hash');
  mustHold(!/[?#]/.test(String(claims.htu)), 'neither query nor fragment');
}

function checkToken(jws: string): void {
  const token = parseAccessToken(jws);
  if (token === undefined) return;
  const { claims, header } = partsOf(jws);
  mustHold(isDeepStrictEqual(token.claims, claims), 'what was read is all that the token says');
  mustHold(claims.iss === token.issuer && header.kid === token.keyId, 'issuer and key');
  mustHold(isDeepStrictEqual(claims.cnf, { jkt: token.holderThumbprint }), 'it is bound to one key alone');
  mustHold(!['crit', 'jku', 'x5u', 'jwk', 'b64'].some((name) => Object.hasOwn(header, name)), 'no other key');
}

type Members = Readonly<Record<string, unknown>>;

function partsOf(jws: string): { readonly header: Members; readonly claims: Members } {
  const [header = '', claims = ''] = jws.split('.').map((part) => Buffer.from(part, 'base64url').toString());
  return { header: JSON.parse(header), claims: JSON.parse(claims) };
}

function jwsOf(text: string): string {
  const [header = '', ...claims] = text.split('\n');
  const input = [header, claims.join('\n')]
    .map((part) => Buffer.from(part, 'latin1').toString('base64url'))
    .join('.');
  const signature = signMessage(holder.publicKey.algorithm, holder.privateKey, Buffer.from(input));
  return `${input}.${signature.toString('base64url')}`;
}

function isAllowed(dpop: string): boolean {
  const headers = [
    { name: 'authorization', value: `DPoP ${passport}` },
    { name: 'dpop', value: dpop },
  ];
  const facts = factsOfWire({ ...REQUEST, headers, body: { kind: 'none' } });
  return decide({ ...facts, removesProofs: true }).kind === 'allowed';
}

/** docs/design/protocol.md "DPoP", once more. */
function isOfRequest(jws: string): boolean {
  const { claims, header } = partsOf(jws);
  const skewSeconds = SITE_CONTENT.skew_seconds ?? 5;
  const ageSeconds = NOW_SECONDS - Number(claims.iat);
  const htu = String(claims.htu).replace(
    /^https:\/\/api\.shop\.example(?::443)?(?=\/)/i,
    'https://api.shop.example',
  );
  return (
    header.typ === 'dpop+jwt' &&
    (header.alg === 'Ed25519' || header.alg === 'EdDSA') &&
    Object(header.jwk).x === holder.publicKey.jwk.x &&
    claims.htm === 'GET' &&
    htu === URL_OF_REQUEST &&
    claims.ath === passportSha256(passport) &&
    /^[A-Za-z0-9._~-]{16,128}$/.test(String(claims.jti)) &&
    ageSeconds >= -skewSeconds &&
    ageSeconds < 60 + skewSeconds
  );
}

const HEADER = JSON.stringify({ typ: 'dpop+jwt', alg: 'Ed25519', jwk: holder.publicKey.jwk });
const CLAIMS = JSON.stringify({
  jti: 'A'.repeat(22),
  htm: 'GET',
  htu: URL_OF_REQUEST,
  iat: NOW_SECONDS,
  ath: passportSha256(passport),
});
const TOKEN = [
  JSON.stringify({ typ: 'at+jwt', alg: 'RS256', kid: 'k1' }),
  JSON.stringify({
    ...{ iss: 'https://login.shop.example', aud: ['https://api.shop.example'], iat: NOW_SECONDS },
    ...{ exp: NOW_SECONDS + 300, sub: 'a', scope: 'a b', cnf: { jkt: holder.publicKey.thumbprint } },
  }),
].join('\n');
const seed = `${HEADER}\n${CLAIMS}`;
const ES256_HEADER = JSON.stringify({
  ...{ typ: 'dpop+jwt', alg: 'ES256' },
  jwk: { ...OTHER_TEST_KEYS.holderEc.publicKey.jwk, use: 'sig', key_ops: ['verify'] },
});
const SEEDS = [
  `c${seed}`,
  `j${jwsOf(seed)}`,
  `t${TOKEN}`,
  `c${seed.replace('"Ed25519",', '"EdDSA",')}`,
  `c${seed.replace('"iat"', '"nonce":"abc","iat"')}`,
  `c${ES256_HEADER}\n${CLAIMS}`,
  `t${TOKEN.replace('at+jwt', 'JWT').replace('RS256', 'Ed25519')}`,
];
mustHold(isAllowed(jwsOf(seed)), 'the first seed is allowed');

export const dpopTarget: FuzzTarget = {
  name: 'dpop',
  seeds: SEEDS.map((text) => Buffer.from(text, 'latin1')),
  dictionary: [
    ...['typ', 'alg', 'jwk', 'kid', 'jku', 'x5u', 'crit', 'b64', 'kty', 'crv', 'x', 'y', 'd', 'use', 'ext'],
    ...['jti', 'htm', 'htu', 'iat', 'ath', 'nonce', 'exp', 'nbf', 'iss', 'aud', 'cnf', 'jkt', 'scope'],
    ...['dpop+jwt', 'at+jwt', 'JWT', 'EdDSA', 'ES256', 'none', 'OKP', 'EC', 'P-256', 'GET', 'POST'],
    ...[
      'https://',
      ':443',
      '/../',
      '%2e',
      '?',
      '#',
      '@',
      '":',
      ',"',
      '{"',
      '"}',
      '\\u0061',
      '__proto__',
      '1e3',
    ],
    holder.publicKey.jwk.x,
  ],
  maxBytes: 8300,
  maxStepsPerByte: 60,
  run,
};
