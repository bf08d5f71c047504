/** Random changes of one field of a request with an HTTP message signature or a DPoP proof: none is allowed. */
import { expect, it } from '@jest/globals';
import { decide } from '../../../src/verifier/decision/decide.ts';
import { createPassportCache } from '../../../src/verifier/decision/facts/passport-cache.ts';
import type { RequestFacts } from '../../../src/verifier/decision/facts/request-facts.ts';
import { AUTH_SITE, NOW_SECONDS, ORIGIN } from '../../support/fixtures/bundle-content.ts';
import { headersOfLines, signRequest } from '../../support/fixtures/signed-request.ts';
import {
  compileSite,
  KEY_ID,
  newSiteKeys,
  type RouteId,
  siteContent,
} from '../../support/fixtures/snapshot.ts';
import { signDpop } from '../../support/protocol/dpop-signer.ts';
import { signHttp } from '../../support/protocol/http-signer.ts';
import { Random, TEXT_CHANGES, type TextChange } from '../../support/random.ts';

/** `make soak` makes 100,000. */
const mutations = Number(process.env.PROOFGATE_TEST_MUTATIONS ?? 5000);
const keys = newSiteKeys();
const content = siteContent(keys);
for (const route of content.routes) {
  if (route.passport_header !== undefined) continue;
  route.accepted_proofs = ['transcript-v1', 'http-message-signatures', 'dpop'];
  route.unbound = ['route', 'site', ...(route.signed_headers === undefined ? [] : (['headers'] as const))];
}
const snapshot = await compileSite(content);
const BODY = Buffer.from('{"amount":1}');
const PARTS = ['@method', '@scheme', '@authority', '@path', '@query', 'content-digest', 'content-type'];

const TARGET = '/v1/orders?dry=1&x=%20';

type Fields = Readonly<Record<string, string>>;

async function signedFields(fields: readonly string[] | undefined, passport?: string): Promise<Fields> {
  const authorization = passport === undefined ? {} : { authorization: passport };
  const keyId = passport === undefined ? KEY_ID.billing : keys.billing.publicKey.thumbprint;
  const signed = await signHttp(
    {
      method: 'POST',
      url: `${ORIGIN}${TARGET}`,
      headers: { 'content-type': 'text/plain', ...authorization },
      body: BODY,
    },
    {
      ...{ key: keys.billing, keyId, authSite: AUTH_SITE, createdSeconds: NOW_SECONDS },
      ...(fields === undefined ? {} : { fields }),
      params: ['created', 'expires', 'nonce', 'keyid', 'tag', 'alg'],
    },
  );
  const [scheme = '', authority = ''] = ORIGIN.split('://');
  return { method: 'POST', scheme, authority, target: TARGET, body: BODY.toString('latin1'), ...signed };
}

const NOT_HEADERS = ['method', 'scheme', 'authority', 'target', 'body'];

function factsOf(fields: Fields): RequestFacts {
  const { authority = '', body = '', method = '', scheme = '', target = '' } = fields;
  const lines = Object.entries(fields)
    .filter(([name]) => !NOT_HEADERS.includes(name))
    .map(([name, value]) => ({ name, value }));
  const bytes = Buffer.from(body, 'latin1');
  const head = { method, scheme, authority, target, headers: headersOfLines(lines) };
  return { ...head, body: { kind: 'exact', bytes }, removesProofs: true };
}

function outcomeOf(fields: Fields): string {
  const inputs = { nowSeconds: NOW_SECONDS, realtimeStalenessSeconds: 10, passports: createPassportCache() };
  const verdict = decide(factsOf(fields), snapshot, inputs, {});
  return verdict.kind === 'verified' ? 'allowed' : `${verdict.reason}/${verdict.detail}`;
}

/** The same request to any server (RFC 9110 sections 4.2.3, 5.5 and 11.1). */
function isSame(before: Fields, after: Fields): boolean {
  const normal = (fields: Fields) =>
    Object.entries(fields).map(([name, value]) => {
      if (name === 'authority') return value.toLowerCase();
      if (name === 'authorization')
        return value.trim().replace(/^[a-z]+(?= )/i, (scheme) => scheme.toLowerCase());
      return NOT_HEADERS.includes(name) ? value : value.replace(/^[ \t]+|[ \t]+$/g, '');
    });
  return JSON.stringify(normal(before)) === JSON.stringify(normal(after));
}

function passportOf(route: RouteId): string {
  return signRequest(keys, { caller: 'billing', route }).jws;
}

async function signatureBases(): Promise<readonly Fields[]> {
  return [
    await signedFields(undefined),
    await signedFields(PARTS),
    await signedFields([...PARTS, 'authorization'], `Passport ${passportOf('orders-write')}`),
  ];
}

/** Without query and body, which a DPoP proof does not cover. */
async function dpopBases(): Promise<readonly Fields[]> {
  const target = '/v1/orders/17';
  const token = passportOf('orders-read');
  const [scheme = '', authority = ''] = ORIGIN.split('://');
  const dpop = signDpop({
    ...{ key: keys.billing, method: 'GET', url: `${ORIGIN}${target}`, token },
    issuedAtSeconds: NOW_SECONDS,
  });
  return [{ method: 'GET', scheme, authority, target, body: '', authorization: `DPoP ${token}`, dpop }];
}

it.each([
  ['HTTP message signatures', signatureBases],
  ['DPoP proofs', dpopBases],
])(`${mutations} mutations of %s`, async (_, basesOf) => {
  const bases = await basesOf();
  const seed = Number(process.env.PROOFGATE_TEST_SEED ?? 20_261_128);
  const random = new Random(seed);
  expect(bases.map(outcomeOf)).toEqual(bases.map(() => 'allowed'));
  const denials = new Set<string>();
  for (let n = 0; n < mutations; n++) {
    const base = random.pick(bases);
    const name = random.pick(Object.keys(base));
    const change = random.pick(Object.keys(TEXT_CHANGES) as TextChange[]);
    const mutated = { ...base, [name]: TEXT_CHANGES[change](base[name] ?? '', random) };
    if (isSame(base, mutated)) continue;
    const outcome = outcomeOf(mutated);
    expect({ seed, n, name, change, value: outcome === 'allowed' ? mutated[name] : '' }).toEqual({
      ...{ seed, n, name, change, value: '' },
    });
    denials.add(outcome);
  }
  // Few mutations, as in `make mutation`, are denied in few ways.
  expect(denials.size).toBeGreaterThan(Math.min(10, mutations / 20));
});
