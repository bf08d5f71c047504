/** Tokens with a valid signature whose claims violate the policy or the source. */
import { good, NOW_SECONDS, type TokenCase, withClaims } from './token-case.ts';

const SUBJECT = 'system:serviceaccount:prod:billing';
/** Cyrillic а and і, full-width colons, a soft hyphen: strings that look the same to a person. */
const LOOK_ALIKES = [
  'system:serviceaccount:prod:Billing',
  'System:serviceaccount:prod:billing',
  'system:serviceaccount:prod:billing ',
  ' system:serviceaccount:prod:billing',
  'system:serviceaccount:prod:billing\n',
  'system:serviceaccount:prod:billing\u0000',
  'system:serviceaccount:prod:billing-2',
  'system:serviceaccount:prod:billin',
  'system:serviceaccount:prod:*',
  'system:serviceaccount:prod',
  'system:serviceaccount:prod:',
  'system:serviceaccount:prod:billing:x',
  'system:serviceaccount::billing',
  'system:serviceaccount:prod-2:billing',
  'system:serviceaccount:dev:billing',
  'system:serviceaccounts:prod:billing',
  'system:serviceaccount:prod/billing',
  'system:serviceaccount:prod:b\u0456lling',
  'system:serviceaccount:prod:billing\u200b',
  'system\uff1aserviceaccount:prod:billing',
  'system:serviceaccount:prod:bill\u00ading',
  'system:serviceaccount:prod:%62illing',
  'billing',
  '',
  'https://kubernetes.default.svc/system:serviceaccount:prod:billing',
];

const IDENTITIES: readonly TokenCase[] = [
  withClaims('no issuer', 'token_issuer', { iss: undefined }),
  withClaims('another issuer', 'token_issuer', { iss: 'https://other.example' }),
  withClaims('an issuer that is a list', 'token_issuer', { iss: ['https://other.example'] }),
  withClaims('an issuer that is null', 'token_issuer', { iss: null }),
  withClaims('the issuer of an old secret token', 'token_issuer', { iss: 'kubernetes/serviceaccount' }),
  {
    what: 'an issuer with a slash more',
    code: 'token_issuer',
    make: (w) => good(w, { claims: { iss: `${w.issuer.issuer}/` } }),
  },
  {
    what: 'an issuer in capitals',
    code: 'token_issuer',
    make: (w) => good(w, { claims: { iss: w.issuer.issuer.toUpperCase() } }),
  },
  {
    what: 'a list of the one issuer',
    code: 'token_issuer',
    make: (w) => good(w, { claims: { iss: [w.issuer.issuer] } }),
  },
  withClaims('no audience', 'token_audience', { aud: undefined }),
  withClaims('another audience', 'token_audience', { aud: ['another'] }),
  withClaims('the audience of the cluster itself', 'token_audience', {
    aud: ['https://kubernetes.default.svc'],
  }),
  withClaims('an empty list', 'token_audience', { aud: [] }),
  withClaims('a second audience', 'token_audience', { aud: ['proofgate-shop', 'another'] }),
  withClaims('a second audience in front', 'token_audience', { aud: ['another', 'proofgate-shop'] }),
  withClaims('the audience twice', 'token_audience', { aud: ['proofgate-shop', 'proofgate-shop'] }),
  withClaims('the audience and an empty one', 'token_audience', { aud: ['proofgate-shop', ''] }),
  withClaims('the audience in a list in a list', 'token_audience', { aud: [['proofgate-shop']] }),
  withClaims('the audience as an object', 'token_audience', { aud: { 0: 'proofgate-shop', length: 1 } }),
  withClaims('audiences in one text', 'token_audience', { aud: 'proofgate-shop another' }),
  withClaims('the audience in capitals', 'token_audience', { aud: ['PROOFGATE-SHOP'] }),
  withClaims('the audience with a space', 'token_audience', { aud: ['proofgate-shop '] }),
  withClaims('the audience and more', 'token_audience', { aud: ['proofgate-shop-2'] }),
  withClaims('a number as audience', 'token_audience', { aud: 1 }),
  withClaims('null as audience', 'token_audience', { aud: null }),
  withClaims('no subject', 'token_subject', { sub: undefined }),
  withClaims('a subject that is a list', 'token_subject', { sub: [SUBJECT] }),
  withClaims('a subject that is null', 'token_subject', { sub: null }),
  ...LOOK_ALIKES.map((sub) => withClaims(`the look-alike ${JSON.stringify(sub)}`, 'token_subject', { sub })),
];

const DAYS_2 = 172_800;
const TIMES: readonly TokenCase[] = [
  withClaims('no exp', 'token_expiry_missing', { exp: undefined }),
  withClaims('an exp that is null', 'token_claims', { exp: null }),
  withClaims('an exp that is a text', 'token_claims', { exp: String(NOW_SECONDS + 60) }),
  withClaims('an exp with a fraction', 'token_claims', { exp: NOW_SECONDS + 0.5 }),
  withClaims('an exp below zero', 'token_claims', { exp: -1 }),
  withClaims('an exp of more than 2^53', 'token_claims', { exp: 2 ** 60 }),
  withClaims('an exp of now', 'token_expired', { exp: NOW_SECONDS }),
  withClaims('an exp a second ago', 'token_expired', {
    exp: NOW_SECONDS - 1,
    iat: NOW_SECONDS - 100,
    nbf: NOW_SECONDS - 100,
  }),
  withClaims('an exp of zero', 'token_expired', { exp: 0 }),
  withClaims('an nbf ahead', 'token_not_yet_valid', { nbf: NOW_SECONDS + 31 }),
  withClaims('an nbf that is a text', 'token_claims', { nbf: '1' }),
  withClaims('an nbf that is null', 'token_claims', { nbf: null }),
  withClaims('an iat ahead', 'token_not_yet_valid', { iat: NOW_SECONDS + 31 }),
  withClaims('an iat that is a text', 'token_claims', { iat: 'now' }),
  withClaims('an iat that is true', 'token_claims', { iat: true }),
  withClaims('an end before its beginning', 'token_claims', { exp: NOW_SECONDS + 1, iat: NOW_SECONDS + 1 }),
  withClaims('an end before its nbf', 'token_claims', { exp: NOW_SECONDS + 1, nbf: NOW_SECONDS + 20 }),
  withClaims('a life of more than two days', 'token_lifetime', { exp: NOW_SECONDS + DAYS_2 + 1 }),
  withClaims('a long life without iat', 'token_lifetime', { iat: undefined, exp: NOW_SECONDS + DAYS_2 + 1 }),
  withClaims('a life of a year, nearly over', 'token_lifetime', {
    iat: NOW_SECONDS - 31_000_000,
    exp: NOW_SECONDS + 60,
  }),
  withClaims('another namespace in the cluster’s claims', 'token_claims', {
    'kubernetes.io': { namespace: 'dev' },
  }),
  withClaims('another account in the cluster’s claims', 'token_claims', {
    'kubernetes.io': { namespace: 'prod', serviceaccount: { name: 'root' } },
  }),
];

export const REFUSED_CLAIMS: readonly TokenCase[] = [...IDENTITIES, ...TIMES];
