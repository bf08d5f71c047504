/** Each format of proofs at routes that accept several: the public cases of the standard ones, and what takes routes of its own. */
import { DPOP_CASES, DPOP_NONCE_CASES } from '../../../src/tools/conformance/cases/dpop-cases.ts';
import { HTTP_SIGNATURE_CASES } from '../../../src/tools/conformance/cases/http-signature-cases.ts';
import {
  ALLOWED,
  denied,
  type Expected,
  type PublicCase,
  type WireMessage,
} from '../../../src/tools/conformance/wire/conformance-case.ts';
import {
  type HeaderLine,
  headerValues,
  type WireRequest,
} from '../../../src/tools/conformance/wire/exchange.ts';
import type { ConformanceCase } from '../../support/points/conformance-case.ts';
import { attestedCaller, type Caller, derivedKeyCaller } from '../../support/site/callers.ts';
import {
  signDpop,
  signedRequest,
  signHttp,
  withHeader,
  withMoreHeaders,
} from '../../support/site/signed-request.ts';
import { newHolder, nowSeconds, type Site } from '../../support/site/site.ts';
import { accessToken, STANDARD_ROUTES } from '../../support/site/standard-routes.ts';
import { subjectAt } from '../../support/site/subject.ts';

const { bearer, forwarded, loose, nonced, read, write } = STANDARD_ROUTES;
const READ = { route: read, target: '/v1/standard/4711', isOfRoute: /^\/v1\/standard\/[^/]+$/ };
const NONCED = { route: nonced, target: '/v1/nonced/4711', isOfRoute: /^\/v1\/nonced\/[^/]+$/ };
const BODY = Buffer.from('{"item":1}');
const OTHERS: readonly HeaderLine[] = [
  ['signature-input', 'cdn=("@authority");created=1'],
  ['signature', 'cdn=:AAAA:'],
];

const billing = (site: Site) => derivedKeyCaller(site);

function one(
  name: string,
  expected: Expected,
  make: (site: Site) => WireMessage | readonly WireMessage[],
): ConformanceCase {
  return { name, expected, make, state: 'standard_proofs' };
}

/** A caller of the authorization server, with its access token. */
function tokenCaller(
  site: Site,
  claims: object = {},
  header: object = {},
): { caller: Caller; token: string } {
  const holder = newHolder(site.secrets);
  const token = accessToken(holder.publicKey.thumbprint, claims, header);
  return { caller: { ...billing(site), holder }, token };
}

type Sign = (site: Site, changes?: Changes) => WireRequest;

interface Changes {
  readonly otherHeaders?: readonly HeaderLine[];
}

/** A good request of each format, for the route that accepts all. */
const FORMATS: { readonly [format: string]: Sign } = {
  'transcript-v1': (site, changes) => signedRequest(site, { caller: billing(site), route: read, ...changes }),
  'http-message-signatures keyed': (site, changes) =>
    signHttp(site, { caller: billing(site), route: read, ...changes }),
  'http-message-signatures with a passport': (site, changes) =>
    signHttp(site, { caller: attestedCaller(site), route: read, hasPassport: true, ...changes }),
  'dpop with a passport': (site, changes) =>
    signDpop(site, { caller: attestedCaller(site), route: read, ...changes }),
  'dpop with an access token': (site, changes) =>
    signDpop(site, { ...tokenCaller(site), route: read, ...changes }),
};

const AMBIGUOUS = denied('invalid_request_proof', 'proof_ambiguous');
const linesOf = (request: WireRequest, ...names: readonly string[]) =>
  names.flatMap((name) =>
    headerValues(request.headers ?? [], name).map((value): HeaderLine => [name, value]),
  );

const ADDED_PROOFS: { readonly [what: string]: (site: Site) => readonly HeaderLine[] } = {
  'a transcript': (site) =>
    linesOf(
      signedRequest(site, { caller: billing(site), route: read }),
      'x-proofgate-transcript',
      'x-proofgate-signature',
    ),
  'an HTTP message signature': (site) =>
    linesOf(signHttp(site, { caller: billing(site), route: read }), 'signature-input', 'signature'),
  'a DPoP proof': (site) => linesOf(signDpop(site, { caller: billing(site), route: read }), 'dpop'),
};

const isOf = (format: string, added: string) =>
  (format.startsWith('transcript') && added.includes('transcript')) ||
  (format.startsWith('http') && added.includes('signature')) ||
  (format.startsWith('dpop') && added.includes('DPoP'));

const EACH_FORMAT: readonly ConformanceCase[] = Object.entries(FORMATS).flatMap(([format, sign]) => [
  one(`${format}: allowed`, ALLOWED, (site) => sign(site)),
  one(`${format}: allowed, beside X-Proofgate-Proof of the caller`, ALLOWED, (site) =>
    sign(site, {
      otherHeaders: [['x-proofgate-proof', format.startsWith('dpop') ? 'transcript-v1' : 'dpop']],
    }),
  ),
  one(`${format}: allowed, beside signatures of others`, ALLOWED, (site) =>
    format.startsWith('http')
      ? OTHERS.reduce((request, [name, member]) => {
          const [own = ''] = headerValues(request.headers ?? [], name);
          return withHeader(request, name, `${member}, ${own}`);
        }, sign(site))
      : sign(site, { otherHeaders: OTHERS }),
  ),
  one(`${format}: a second time`, denied('jti_replay'), (site) => {
    const request = sign(site);
    return [request, request];
  }),
  one(`${format}: another route`, denied('bundle_route_missing', 'no_match'), (site) => ({
    ...sign(site),
    target: '/v1/standard/4711/x',
  })),
  one(
    `${format}: another method of the route's path`,
    denied('bundle_route_missing', 'no_match'),
    (site) => ({
      ...sign(site),
      method: 'PUT',
    }),
  ),
  ...Object.entries(ADDED_PROOFS)
    .filter(([added]) => !isOf(format, added))
    .map(([added, lines]) =>
      one(`${format}: beside ${added}`, AMBIGUOUS, (site) => withMoreHeaders(sign(site), lines(site))),
    ),
]);

const BODIES: readonly ConformanceCase[] = [
  one('transcript-v1: allowed with a body', ALLOWED, (site) =>
    signedRequest(site, { caller: billing(site), route: write, body: BODY }),
  ),
  ...[false, true].map((hasPassport) =>
    one(
      `http-message-signatures ${hasPassport ? 'with a passport' : 'keyed'}: allowed with a body`,
      ALLOWED,
      (site) => signHttp(site, { caller: billing(site), route: write, body: BODY, hasPassport }),
    ),
  ),
  one('dpop with a passport: allowed with a query and a body', ALLOWED, (site) =>
    signDpop(site, { caller: billing(site), route: loose, target: '/v1/loose?dry=1', body: BODY }),
  ),
  one('dpop with an access token: allowed with a query and a body', ALLOWED, (site) =>
    signDpop(site, { ...tokenCaller(site), route: loose, target: '/v1/loose?dry=1', body: BODY }),
  ),
  one('dpop: a body that it does not bind', denied('request_binding_mismatch', 'body'), (site) =>
    signDpop(site, { caller: billing(site), route: write, body: BODY }),
  ),
  one('dpop: a query that it does not bind', denied('request_binding_mismatch', 'query'), (site) =>
    signDpop(site, { caller: billing(site), route: read, target: '/v1/standard/4711?all=1' }),
  ),
];

const APPLICATION: readonly HeaderLine[] = [['authorization', 'Bearer of-the-application']];
const OWN_HEADER: readonly ConformanceCase[] = [false, true].map((hasPassport) =>
  one(
    `http-message-signatures ${hasPassport ? 'with a passport' : 'keyed'}: allowed beside the application's Authorization`,
    ALLOWED,
    (site) =>
      signHttp(site, { caller: billing(site), route: bearer, hasPassport, otherHeaders: APPLICATION }),
  ),
);
const FORWARDED: readonly ConformanceCase[] = [
  one('http-message-signatures with a passport: allowed where it is forwarded', ALLOWED, (site) =>
    signHttp(site, { caller: billing(site), route: forwarded, hasPassport: true }),
  ),
  one('dpop with a passport: allowed where it is forwarded', ALLOWED, (site) =>
    signDpop(site, { caller: billing(site), route: forwarded }),
  ),
];

const PROOF = 'invalid_request_proof';
const tokenFault = (what: string, expected: Expected, claims: object, header: object = {}) =>
  one(`dpop with an access token: ${what}`, expected, (site) =>
    signDpop(site, { ...tokenCaller(site, claims, header), route: read }),
  );

const ACCESS_TOKENS: readonly ConformanceCase[] = [
  one('dpop with an access token: as a bearer', denied(PROOF, 'authorization_scheme'), (site) => {
    const { caller, token } = tokenCaller(site);
    const request = signDpop(site, { caller, token, route: loose });
    return withHeader(request, 'authorization', `Bearer ${token}`);
  }),
  one('dpop with an access token: as a passport', denied(PROOF, 'proof_ambiguous'), (site) => {
    const { caller, token } = tokenCaller(site);
    return withHeader(signDpop(site, { caller, token, route: read }), 'authorization', `Passport ${token}`);
  }),
  one('dpop with an access token: the proof of another key', denied(PROOF, 'proof_key'), (site) =>
    signDpop(site, { caller: billing(site), token: tokenCaller(site).token, route: read }),
  ),
  one(
    'dpop with an access token: the proof for a passport',
    denied('request_binding_mismatch', 'ath'),
    (site) => {
      const { caller, token } = tokenCaller(site);
      const proof = { tokenSha256: 'A'.repeat(43) };
      return signDpop(site, { caller, token, route: read, proof });
    },
  ),
  tokenFault('bound to no key', denied(PROOF, 'passport_malformed'), { cnf: undefined }),
  tokenFault('of an unknown issuer', denied(PROOF, 'key_unknown'), { iss: 'https://other.example' }),
  tokenFault('for another audience', denied(PROOF, 'audience'), { aud: 'account' }),
  tokenFault('expired', denied(PROOF, 'passport_expired'), {
    iat: nowSeconds() - 900,
    exp: nowSeconds() - 700,
  }),
  tokenFault('an ID token', denied(PROOF, 'claims_not_allowed'), {}, { typ: 'JWT' }),
  tokenFault('an address of keys', denied(PROOF, 'passport_malformed'), {}, { jku: 'https://other.example' }),
];

const atRead =
  (at: Parameters<typeof subjectAt>[1]) =>
  ({ challenges, expected, make, name, protocols }: PublicCase): ConformanceCase => ({
    ...one(name, expected, (site) => make(subjectAt(site, at, write))),
    ...(challenges && { challenges }),
    ...(protocols && { protocols }),
  });

export const STANDARD_CASES: readonly ConformanceCase[] = [
  ...EACH_FORMAT,
  ...BODIES,
  ...OWN_HEADER,
  ...FORWARDED,
  ...ACCESS_TOKENS,
  ...[...HTTP_SIGNATURE_CASES, ...DPOP_CASES].map(atRead(READ)),
  ...DPOP_NONCE_CASES.map(atRead(NONCED)),
];
