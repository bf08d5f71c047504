/** Requests with DPoP proofs that a gateway must not change, and proofs that it must deny. */
import { generateSigningKey } from '../../../protocol/signing.ts';
import {
  AUTHORIZATION_HEADER,
  DPOP_HEADER,
  DPOP_NONCE_HEADER,
  DPOP_SCHEME,
} from '../../../protocol/wire-names.ts';
import { denied, type Expected, type PublicCase, type Subject } from '../wire/conformance-case.ts';
import { headerValues, type WireRequest } from '../wire/exchange.ts';
import type { DpopChanges } from '../wire/sign-standard-request.ts';
import { nowSeconds, withHeader, withMoreHeaders } from '../wire/sign-wire-request.ts';
import { otherPath } from './other-target.ts';

const MALFORMED = denied('invalid_request_proof', 'proof_malformed');
const SCHEME = denied('invalid_request_proof', 'authorization_scheme');
const TOKEN_MALFORMED = denied('invalid_request_proof', 'passport_malformed');

type Fault = Omit<PublicCase, 'name'> & { readonly what: string };

const signed = (
  what: string,
  expected: Expected,
  proof: (subject: Subject) => NonNullable<DpopChanges['proof']>,
): Fault => ({ what, expected, make: (subject) => subject.signDpop({ proof: proof(subject) }) });

const moved = (what: string, expected: Expected, move: (request: WireRequest) => WireRequest): Fault => ({
  what,
  expected,
  make: (subject) => move(subject.signDpop()),
});

function lineOf(request: WireRequest, name: string): string {
  const [value] = headerValues(request.headers ?? [], name);
  if (value === undefined) throw new Error(`the request has no ${name}`);
  return value;
}

const tokenOf = (request: WireRequest) => lineOf(request, AUTHORIZATION_HEADER).slice(DPOP_SCHEME.length + 1);

const withProof = (request: WireRequest, change: (jws: string) => string) =>
  withHeader(request, DPOP_HEADER, change(lineOf(request, DPOP_HEADER)));

/** The proof with another header, which its signature does not cover. */
const withJoseHeader =
  (change: (members: Readonly<Record<string, unknown>>) => object) => (request: WireRequest) =>
    withProof(request, (jws) => {
      const [header = '', ...others] = jws.split('.');
      const members = JSON.parse(Buffer.from(header, 'base64url').toString());
      return [Buffer.from(JSON.stringify(change(members))).toString('base64url'), ...others].join('.');
    });

const atUrl = (subject: Subject, { authority = subject.authority, scheme = subject.scheme, path = '' }) => ({
  url: `${scheme}://${authority}${path === '' ? (subject.target.split('?')[0] ?? '') : path}`,
});

const binding = (detail: 'method' | 'scheme' | 'authority' | 'target' | 'ath') =>
  denied('request_binding_mismatch', detail);

const TARGETS: readonly Fault[] = [
  signed('htm of another method', binding('method'), () => ({ method: 'DELETE' })),
  signed('htm in other capitals', binding('method'), ({ method }) => ({ method: method.toLowerCase() })),
  signed('htu of another path', binding('target'), (subject) =>
    atUrl(subject, { path: otherPath({ target: subject.target.split('?')[0] ?? '' }) }),
  ),
  signed('htu of another authority', binding('authority'), (subject) =>
    atUrl(subject, { authority: 'other.example' }),
  ),
  signed('htu of another scheme', binding('scheme'), (subject) =>
    atUrl(subject, { scheme: subject.scheme === 'http' ? 'https' : 'http' }),
  ),
  signed('htu with a query', MALFORMED, (subject) => {
    const { url } = atUrl(subject, {});
    return { url: `${url}?a=1` };
  }),
  signed('ath of another token', binding('ath'), () => ({ tokenSha256: 'A'.repeat(43) })),
  signed('a short jti', MALFORMED, () => ({ jti: 'short' })),
  signed('an old iat', denied('invalid_request_proof', 'proof_expired'), () => ({
    issuedAtSeconds: nowSeconds() - 600,
  })),
  signed('an iat to come', denied('invalid_request_proof', 'proof_not_yet_valid'), () => ({
    issuedAtSeconds: nowSeconds() + 600,
  })),
];

const stranger = () => generateSigningKey('Ed25519').publicKey.jwk;

const HEADERS: readonly Fault[] = [
  moved('no proof', denied('invalid_request_proof', 'proof_missing'), (request) =>
    withHeader(request, DPOP_HEADER),
  ),
  moved('an empty proof', MALFORMED, (request) => withHeader(request, DPOP_HEADER, '')),
  moved('the proof on two lines', MALFORMED, (request) =>
    withMoreHeaders(request, [[DPOP_HEADER, lineOf(request, DPOP_HEADER)]]),
  ),
  moved('the proof twice on one line', MALFORMED, (request) => withProof(request, (jws) => `${jws}, ${jws}`)),
  {
    what: 'the proof of another request',
    expected: binding('ath'),
    needs: 'own_passport',
    make: (subject) =>
      withProof(subject.signDpop(), () =>
        lineOf(subject.signDpop({ passport: { issuedAtSeconds: nowSeconds() - 2 } }), DPOP_HEADER),
      ),
  },
  moved('the token as the proof', MALFORMED, (request) => withProof(request, () => tokenOf(request))),
  moved('the proof as the token', TOKEN_MALFORMED, (request) =>
    withHeader(request, AUTHORIZATION_HEADER, `${DPOP_SCHEME} ${lineOf(request, DPOP_HEADER)}`),
  ),
  moved('a signature of zeros', denied('invalid_request_proof', 'proof_signature'), (request) =>
    withProof(request, (jws) => jws.replace(/[^.]+$/, 'A'.repeat(86))),
  ),
  moved('no signature', MALFORMED, (request) => withProof(request, (jws) => jws.replace(/[^.]+$/, ''))),
  moved(
    'another jwk',
    denied('invalid_request_proof', 'proof_key'),
    withJoseHeader((members) => ({
      ...members,
      alg: 'Ed25519',
      jwk: stranger(),
    })),
  ),
  moved(
    'an address of keys',
    MALFORMED,
    withJoseHeader((members) => ({ ...members, jku: 'https://other.example' })),
  ),
  moved(
    'no algorithm',
    MALFORMED,
    withJoseHeader((members) => ({ ...members, alg: 'none' })),
  ),
  moved(
    'the type of another token',
    MALFORMED,
    withJoseHeader((members) => ({ ...members, typ: 'JWT' })),
  ),
];

const TOKENS: readonly Fault[] = [
  {
    ...moved('no token', denied('invalid_request_proof', 'authorization_missing'), (request) =>
      withHeader(request, AUTHORIZATION_HEADER),
    ),
    challenges: ['www-authenticate'],
  },
  moved('the token as a bearer', SCHEME, (request) =>
    withHeader(request, AUTHORIZATION_HEADER, `Bearer ${tokenOf(request)}`),
  ),
  moved('the token without its scheme', SCHEME, (request) =>
    withHeader(request, AUTHORIZATION_HEADER, tokenOf(request)),
  ),
  moved('the scheme alone', TOKEN_MALFORMED, (request) =>
    withHeader(request, AUTHORIZATION_HEADER, DPOP_SCHEME),
  ),
  moved('two tokens', TOKEN_MALFORMED, (request) =>
    withMoreHeaders(request, [[AUTHORIZATION_HEADER, `${DPOP_SCHEME} ${tokenOf(request)}`]]),
  ),
  moved('a bearer beside the token', TOKEN_MALFORMED, (request) =>
    withMoreHeaders(request, [[AUTHORIZATION_HEADER, 'Bearer 1']]),
  ),
  moved('a bearer before the token on one line', TOKEN_MALFORMED, (request) =>
    withHeader(request, AUTHORIZATION_HEADER, `Bearer 1, ${lineOf(request, AUTHORIZATION_HEADER)}`),
  ),
];

const NONCE_CASE: Fault = {
  ...signed('no nonce', denied('invalid_request_proof', 'dpop_nonce'), () => ({ nonce: undefined })),
  needs: 'dpop_nonce',
  challenges: ['www-authenticate', DPOP_NONCE_HEADER],
};

const named = ({ what, ...fault }: Fault): PublicCase => ({ name: `dpop: ${what}`, ...fault });

export const DPOP_CASES: readonly PublicCase[] = [...TARGETS, ...HEADERS, ...TOKENS].map(named);

/** For routes that require a nonce. */
export const DPOP_NONCE_CASES: readonly PublicCase[] = [named(NONCE_CASE)];
