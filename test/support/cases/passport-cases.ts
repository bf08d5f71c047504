/** Malformed passports, each signed by the key that may sign it, and unusual valid ones. */
import { type RequestEdits, type WireRequest, withHeader } from '../fixtures/signed-request.ts';
import { sourcesOf } from '../fixtures/snapshot.ts';
import {
  BILLING,
  BROKER,
  type BundleVariant,
  passportTexts,
  replaced,
  type VectorCase,
} from './vector-case.ts';

const MALFORMED = 'invalid_request_proof/passport_malformed 401';
const SCHEME = 'invalid_request_proof/authorization_scheme 401';

const authorization = (change: (value: string) => string): RequestEdits => ({
  received: (request) => withHeader(request, 'authorization', change),
});
const header = (from: string | RegExp, to: string) =>
  passportTexts(BILLING, (texts) => ({ header: replaced(texts.header, from, to) }));
const claims = (from: string | RegExp, to: string) =>
  passportTexts(BILLING, (texts) => ({ claims: replaced(texts.claims, from, to) }));
const doubled = (request: WireRequest): WireRequest => {
  const line = request.headers.find(({ name }) => name === 'authorization');
  return line === undefined ? request : { ...request, headers: [...request.headers, line] };
};

const AUTHORIZATION: readonly (readonly [string, RequestEdits, string])[] = [
  ['an empty Authorization', authorization(() => ''), SCHEME],
  ['Bearer', authorization((value) => replaced(value, 'Passport', 'Bearer')), SCHEME],
  ['a longer name of the scheme', authorization((value) => replaced(value, 'Passport', 'Passports')), SCHEME],
  ['a tab after the scheme', authorization((value) => replaced(value, ' ', '\t')), SCHEME],
  ['no passport after the scheme', authorization(() => 'Passport'), MALFORMED],
  ['two spaces after the scheme', authorization((value) => replaced(value, ' ', '  ')), MALFORMED],
  ['something after the passport', authorization((value) => `${value} x`), MALFORMED],
  ['Authorization on two lines', { received: doubled }, MALFORMED],
  ['two passports on one line', authorization((value) => `${value}, ${value}`), MALFORMED],
  ['a JWS of two parts', authorization((value) => value.slice(0, value.lastIndexOf('.'))), MALFORMED],
  ['a JWS of four parts', authorization((value) => `${value}.AA`), MALFORMED],
  ['an empty signature', authorization((value) => value.slice(0, value.lastIndexOf('.') + 1)), MALFORMED],
  ['a signature of 63 bytes', authorization((value) => value.slice(0, -2)), MALFORMED],
  ['padding', authorization((value) => `${value}==`), MALFORMED],
  // 64 bytes are 86 characters, of which the last holds four unused bits.
  [
    'unused bits that are not zero',
    authorization((value) => `${value.slice(0, -1)}${value.at(-1) === 'B' ? 'C' : 'B'}`),
    MALFORMED,
  ],
];

const HEADERS: readonly (readonly [string, RequestEdits])[] = [
  ['typ JWT', header('proofgate-passport+jwt', 'JWT')],
  ['typ in capitals', header('proofgate-passport+jwt', 'PROOFGATE-PASSPORT+JWT')],
  ['alg none', header('"Ed25519"', '"none"')],
  ['alg EdDSA', header('"Ed25519"', '"EdDSA"')],
  ['alg HS256', header('"Ed25519"', '"HS256"')],
  ['crit', header('}', ',"crit":["exp"]}')],
  ['a key in the header', header('}', ',"jwk":{}}')],
  ['no kid', header(/,"kid":"[^"]*"/, '')],
  ['an empty kid', header(/"kid":"[^"]*"/, '"kid":""')],
  ['a kid of 129 characters', header(/"kid":"[^"]*"/, `"kid":"${'k'.repeat(129)}"`)],
  ['a kid that is a number', header(/"kid":"[^"]*"/, '"kid":1')],
  ['kid twice', header('}', ',"kid":"dk_billing"}')],
  ['a header that is an array', header(/^.*$/, '["Ed25519"]')],
  ['a header that is no JSON', header('}', '')],
  ['a byte order mark', header('{', '\xef\xbb\xbf{')],
];

const REQUIRED = ['iss', 'sub', 'trust_domain', 'aud', 'iat', 'exp', 'key_binding', 'cnf', 'jti'];

const CLAIMS: readonly (readonly [string, RequestEdits])[] = [
  ...REQUIRED.map((name) => [`no ${name}`, withoutClaim(name)] as const),
  ['a claim that nobody knows', claims('{', '{"scope":"all",')],
  ['sub twice', claims('{', '{"sub":"client:billing",')],
  ['sub twice, once escaped', claims('{', '{"s\\u0075b":"client:billing",')],
  ['aud as an array', claims(/"aud":("[^"]*")/, '"aud":[$1]')],
  ['exp as a string', claims(/"exp":(\d+)/, '"exp":"$1"')],
  ['exp with a fraction', claims(/"exp":(\d+)/, '"exp":$1.5')],
  ['exp beyond 2^53 - 1', claims(/"exp":(\d+)/, '"exp":9007199254740992')],
  ['iat 0', claims(/"iat":(\d+)/, '"iat":0')],
  ['a negative iat', claims(/"iat":(\d+)/, '"iat":-1')],
  ['nbf null', claims('{', '{"nbf":null,')],
  ['a class that nobody knows', claims('"software"', '"hardware"')],
  ['cnf with another member', claims('"cnf":{', '"cnf":{"kid":"x",')],
  [
    'cnf by thumbprint',
    claims(/"cnf":\{"jwk":\{[^}]*\}\}/, '"cnf":{"jkt":"FtIu-VbGrfe_KB6CH7GNwODB72MNxj_ml11dEvO-7kk"}'),
  ],
  ['a holder key with kid', claims('"kty":"OKP"', '"kty":"OKP","kid":"x"')],
  ['a holder key with its private half', claims('"kty":"OKP"', `"kty":"OKP","d":"${'A'.repeat(43)}"`)],
  ['a holder key of another curve', claims('"crv":"Ed25519"', '"crv":"X25519"')],
  ['a holder key of 31 bytes', claims(/"x":"[^"]*"/, `"x":"${'A'.repeat(42)}"`)],
  ['a holder key with padding', claims(/"x":"([^"]*)"/, '"x":"$1="')],
  ['a subject of 513 characters', claims(/"sub":"[^"]*"/, `"sub":"${'s'.repeat(513)}"`)],
  ['an empty subject', claims(/"sub":"[^"]*"/, '"sub":""')],
  ['a subject with a space', claims(/"sub":"[^"]*"/, '"sub":"client billing"')],
  ['a subject beyond ASCII', claims(/"sub":"[^"]*"/, '"sub":"caf\xc3\xa9"')],
  ['a subject beyond ASCII, escaped', claims(/"sub":"[^"]*"/, '"sub":"caf\\u00e9"')],
  ['provenance with a number', claims(/"zone":"[^"]*"/, '"zone":1')],
  ['provenance as an array', claims(/"provenance":\{[^}]*\}/, '"provenance":[]')],
  ['context with an empty value', claims(/"team":"[^"]*"/, '"team":""')],
  ['33 entries of context', claims(/"context":\{[^}]*\}/, `"context":{${entries(33)}}`)],
  [
    'more than 8,192 characters',
    claims(/"context":\{[^}]*\}/, `"context":{${entries(32, 'v'.repeat(300))}}`),
  ],
  ['something after the claims', claims(/$/, '{}')],
];

function withoutClaim(name: string): RequestEdits {
  return passportTexts(BILLING, (texts) => {
    const { [name]: _, ...others }: { [claim: string]: unknown } = JSON.parse(texts.claims);
    return { claims: JSON.stringify(others) };
  });
}

function entries(count: number, value = 'v'): string {
  return Array.from({ length: count }, (_, index) => `"n${index}":"${value}"`).join(',');
}

const WELL_FORMED: readonly VectorCase[] = [
  {
    name: 'passport: white space in its JSON',
    plan: BILLING,
    edits: passportTexts(BILLING, (texts) => ({
      claims: JSON.stringify(JSON.parse(texts.claims), undefined, '\t'),
    })),
    outcome: 'allowed',
  },
  {
    name: 'passport: members in another order',
    plan: BILLING,
    edits: passportTexts(BILLING, (texts) => ({
      claims: JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(texts.claims)).reverse())),
    })),
    outcome: 'allowed',
  },
  {
    name: 'passport: a string with needless escapes',
    plan: BILLING,
    edits: claims('"software"', '"s\\u006fftware"'),
    outcome: 'allowed',
  },
  {
    name: 'passport: 32 entries of context, by a broker',
    plan: { caller: 'broker', route: 'orders-read' },
    edits: brokerContext(),
    outcome: 'allowed',
  },
];

function brokerContext(): RequestEdits {
  return passportTexts({ caller: 'broker', route: 'orders-read' }, (texts) => ({
    claims: replaced(texts.claims, /"context":\{[^}]*\}/, `"context":{${entries(32)}}`),
  }));
}

const saying = (sub: string): RequestEdits => ({ claims: (draft) => void Object.assign(draft, { sub }) });

/** Subjects of the broker, most of them with the prefix that the route admits. */
const SUBJECTS: readonly VectorCase[] = [
  ...[
    ...['ns/prod/../dev', 'ns/prod/.', 'ns/prod/', 'ns/prod//x', 'ns/prod/%2e%2e', 'ns/prod/a%2fb'],
    ...['ns/prod/a?x#y', 'ns/prod/a?x', 'ns/prod/a#y', 'ns/prod/a,b', 'ns/prod/a:b', 'ns/prod/a\\b'],
  ].map((path) => `spiffe://shop.example/${path}`),
  'spiffe://shop.example',
  'spiffe://shop.example/',
  'SPIFFE://shop.example/ns/prod/x',
  'spiffe:shop.example/ns/prod/x',
  'spiffe://user@shop.example/ns/prod/x',
  'spiffe://shop.example:443/ns/prod/x',
  'spiffe://Shop.example/ns/prod/x',
].map((sub) => ({
  name: `passport: no canonical SPIFFE ID, ${sub}`,
  plan: BROKER,
  edits: saying(sub),
  outcome: MALFORMED,
}));

const ODD_SUBJECT = 'spiffe://shop.example/ns/prod//billing';

/** Sites may have such rules from earlier versions: the bundle still loads. */
const ODD_RULES: BundleVariant = {
  name: 'site, with rules and a client that are no canonical SPIFFE IDs',
  change: (content) => {
    const rules = sourcesOf(content, 'orders-read');
    const [broker] = rules.filter(({ subject_prefix: prefix }) => prefix?.startsWith('spiffe:'));
    const [billing] = content.clients ?? [];
    if (broker === undefined || billing === undefined) throw new Error('nothing to change');
    const { subject_prefix: _, ...rule } = broker;
    rules.splice(
      0,
      rules.length,
      { ...rule, subject_prefix: 'spiffe://shop.example/ns/prod/../' },
      { ...rule, subject_prefix: 'spiffe://shop.example//' },
      { ...rule, subject_exact: 'spiffe://shop.example/ns/prod/a,b' },
      { ...rule, subject_exact: ODD_SUBJECT, issuer: billing.issuer, required_key_binding: 'software' },
    );
    billing.subject = ODD_SUBJECT;
  },
};
const RULES: readonly VectorCase[] = [
  {
    name: 'rule: no canonical SPIFFE ID, matches no caller',
    bundle: ODD_RULES,
    plan: BROKER,
    outcome: 'source_subject_mismatch 403',
  },
  {
    name: 'rule: no canonical SPIFFE ID, nor does it match who says the same',
    bundle: ODD_RULES,
    plan: BROKER,
    edits: saying('spiffe://shop.example/ns/prod/a,b'),
    outcome: MALFORMED,
  },
  {
    name: 'rule: no canonical SPIFFE ID, nor does it match a client of that subject',
    bundle: ODD_RULES,
    plan: BILLING,
    outcome: 'source_subject_mismatch 403',
  },
  {
    name: 'rule: no canonical SPIFFE ID, and the rest of its bundle is good',
    bundle: ODD_RULES,
    plan: { caller: 'broker', route: 'orders-write' },
    outcome: 'allowed',
  },
];

export const PASSPORT_CASES: readonly VectorCase[] = [
  ...AUTHORIZATION.map(([name, edits, outcome]) => ({
    name: `authorization: ${name}`,
    plan: BILLING,
    edits,
    outcome,
  })),
  ...[...HEADERS, ...CLAIMS].map(([name, edits]) => ({
    name: `passport: ${name}`,
    plan: BILLING,
    edits,
    outcome: MALFORMED,
  })),
  ...WELL_FORMED,
  ...SUBJECTS,
  ...RULES,
];
