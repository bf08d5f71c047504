/** Requests with HTTP message signatures that a gateway must not change, and proofs that it must deny. */
import { newJti } from '../../../protocol/signing.ts';
import {
  CONTENT_DIGEST_HEADER,
  HTTP_SIGNATURE_HEADER,
  HTTP_SIGNATURE_INPUT_HEADER,
} from '../../../protocol/wire-names.ts';
import {
  denied,
  type Expected,
  type PublicCase,
  type PublicNeed,
  type Subject,
} from '../wire/conformance-case.ts';
import { sha256DigestOf } from '../wire/content-digest-line.ts';
import { headerValues, type WireRequest } from '../wire/exchange.ts';
import type { HttpChanges } from '../wire/sign-standard-request.ts';
import { nowSeconds, withHeader, withMoreHeaders } from '../wire/sign-wire-request.ts';
import { otherPath, otherQuery } from './other-target.ts';

/** Signed by the caller's own key alone, or by its holder key with a passport that the signature covers. */
export type SignatureKind = 'keyed' | 'with a passport';

type Sign = (subject: Subject, changes?: HttpChanges) => WireRequest;

interface Fault {
  readonly what: string;
  readonly expected: Expected;
  readonly needs?: PublicNeed;
  readonly challenges?: readonly string[];
  readonly make: (subject: Subject, sign: Sign) => WireRequest;
}

const MALFORMED = denied('invalid_request_proof', 'proof_malformed');
const SIGNATURE = denied('invalid_request_proof', 'proof_signature');
const EXTRA = 'x-covered';
const COVERED = { signedHeaders: [{ name: EXTRA, value: 'as signed' }] };
const BODY = Buffer.from('{"item":1}');
const OTHER_BODY = Buffer.from('{"item":2}');

const editInput = (request: WireRequest, from: string | RegExp, to: string): WireRequest =>
  withHeader(
    request,
    HTTP_SIGNATURE_INPUT_HEADER,
    lineOf(request, HTTP_SIGNATURE_INPUT_HEADER).replace(from, to),
  );

function lineOf(request: WireRequest, name: string): string {
  const [value] = headerValues(request.headers ?? [], name);
  if (value === undefined) throw new Error(`the request has no ${name}`);
  return value;
}

/** Sent as the subject's request, but signed for another one. */
const signedFor = (what: string, message: NonNullable<HttpChanges['message']>): Fault => ({
  what: `signed for ${what}`,
  expected: SIGNATURE,
  make: (subject, sign) => sign(subject, { message }),
});

const changedInput = (what: string, from: RegExp, to: () => string): Fault => ({
  what: `${what} changed`,
  expected: SIGNATURE,
  make: (subject, sign) => editInput(sign(subject), from, to()),
});

const timed = (
  what: string,
  detail: 'proof_ttl' | 'proof_expired' | 'proof_not_yet_valid',
  from: number,
  to: number,
): Fault => ({
  what,
  expected: denied('invalid_request_proof', detail),
  make: (subject, sign) =>
    sign(subject, {
      message: { issuedAtSeconds: nowSeconds() + from, expiresAtSeconds: nowSeconds() + to },
    }),
});

const moved = (what: string, expected: Expected, move: (request: WireRequest) => WireRequest): Fault => ({
  what,
  expected,
  make: (subject, sign) => move(sign(subject, COVERED)),
});

const FIELDS = [HTTP_SIGNATURE_INPUT_HEADER, HTTP_SIGNATURE_HEADER];

const FAULTS: readonly Fault[] = [
  signedFor('another method', { method: 'DELETE' }),
  signedFor('another authority', { authority: 'other.example' }),
  signedFor('another scheme', { scheme: 'ftp' }),
  {
    what: 'another path',
    expected: SIGNATURE,
    make: (subject, sign) => sign(subject, { message: { target: otherPath(subject) } }),
  },
  {
    what: 'another query',
    expected: SIGNATURE,
    make: (subject, sign) => ({ ...sign(subject), target: otherQuery(subject) }),
  },
  {
    what: 'a body that is not covered',
    expected: denied('request_binding_mismatch', 'component.content-digest'),
    make: (subject, sign) => ({ ...sign(subject), body: BODY, framing: 'length' }),
  },
  moved('a covered header changed', SIGNATURE, (request) => withHeader(request, EXTRA, 'changed')),
  moved('a covered header removed', denied('request_binding_mismatch', `header.${EXTRA}`), (request) =>
    withHeader(request, EXTRA),
  ),
  moved(
    'a covered header on a second line',
    denied('request_binding_mismatch', `header.${EXTRA}`),
    (request) => withMoreHeaders(request, [[EXTRA, 'as signed']]),
  ),
  moved('a covered header with more white space inside', SIGNATURE, (request) =>
    withHeader(request, EXTRA, 'as  signed'),
  ),
  moved('a covered header in other capitals', SIGNATURE, (request) =>
    withHeader(request, EXTRA, 'As signed'),
  ),
  changedInput('created', /created=\d+/, () => `created=${nowSeconds() - 1}`),
  changedInput('expires', /expires=\d+/, () => `expires=${nowSeconds() + 90}`),
  changedInput('nonce', /nonce="[^"]+"/, () => `nonce="${newJti()}"`),
  changedInput('the list of components', / "@target-uri"/, () => ' "@path" "@scheme" "@authority" "@query"'),
  {
    what: 'the signature of another request',
    expected: SIGNATURE,
    make: (subject, sign) =>
      withHeader(sign(subject), HTTP_SIGNATURE_HEADER, lineOf(sign(subject), HTTP_SIGNATURE_HEADER)),
  },
  moved('no Signature', MALFORMED, (request) => withHeader(request, HTTP_SIGNATURE_HEADER)),
  moved('an empty Signature', MALFORMED, (request) => withHeader(request, HTTP_SIGNATURE_HEADER, '')),
  moved('Signature under a name with _ behind it', MALFORMED, (request) =>
    withHeader(
      withHeader(request, HTTP_SIGNATURE_HEADER),
      'signature_',
      lineOf(request, HTTP_SIGNATURE_HEADER),
    ),
  ),
  moved('a label of another member', MALFORMED, (request) =>
    withHeader(
      request,
      HTTP_SIGNATURE_HEADER,
      lineOf(request, HTTP_SIGNATURE_HEADER).replace(/^sig=/, 'other='),
    ),
  ),
  ...FIELDS.map((name) =>
    moved(`${name} on two lines`, MALFORMED, (request) =>
      withMoreHeaders(request, [[name, lineOf(request, name)]]),
    ),
  ),
  ...FIELDS.map((name) =>
    moved(`${name} with its member twice on one line`, MALFORMED, (request) =>
      withHeader(request, name, `${lineOf(request, name)}, ${lineOf(request, name)}`),
    ),
  ),
  moved('a second signature with our tag', MALFORMED, (request) => {
    const twice = FIELDS.map((name) => [name, lineOf(request, name)] as const);
    return twice.reduce(
      (sent, [name, value]) => withHeader(sent, name, `${value}, ${value.replace(/^sig=/, 'other=')}`),
      request,
    );
  }),
  {
    what: 'keyid of no key',
    expected: SIGNATURE,
    make: (subject, sign) => sign(subject, { message: { keyId: 'dk_unknown' } }),
  },
  timed('good for more than five minutes', 'proof_ttl', 0, 301),
  timed('created later', 'proof_not_yet_valid', 600, 660),
  timed('expired', 'proof_expired', -600, -400),
  {
    what: 'another body',
    expected: denied('request_binding_mismatch', 'content-digest'),
    needs: 'write_route',
    make: (subject, sign) => ({ ...sign(subject, { body: BODY }), body: OTHER_BODY }),
  },
  {
    what: 'another body with its digest',
    expected: SIGNATURE,
    needs: 'write_route',
    make: (subject, sign) => {
      const signed = withHeader(
        sign(subject, { body: BODY }),
        CONTENT_DIGEST_HEADER,
        sha256DigestOf(OTHER_BODY),
      );
      return { ...signed, body: OTHER_BODY };
    },
  },
  {
    what: 'no body in place of one',
    expected: denied('request_binding_mismatch', 'content-digest'),
    needs: 'write_route',
    make: (subject, sign) => ({ ...sign(subject, { body: BODY }), body: '' }),
  },
];

const ONLY: { readonly [K in SignatureKind]: readonly Fault[] } = {
  keyed: [
    {
      what: 'no signature at all',
      expected: denied('invalid_request_proof', 'authorization_missing'),
      challenges: ['accept-signature'],
      make: (subject, sign) => FIELDS.reduce((request, name) => withHeader(request, name), sign(subject)),
    },
  ],
  'with a passport': [
    {
      what: 'a passport that is not covered',
      expected: denied('request_binding_mismatch', 'component.authorization'),
      make: (subject, sign) => sign(subject, { message: { headers: [] } }),
    },
    {
      what: 'no signature at all',
      expected: denied('invalid_request_proof', 'proof_missing'),
      challenges: ['accept-signature'],
      make: (subject, sign) => FIELDS.reduce((request, name) => withHeader(request, name), sign(subject)),
    },
  ],
};

export function httpSignatureCases(kind: SignatureKind): readonly PublicCase[] {
  const hasPassport = kind === 'with a passport';
  return [...FAULTS, ...ONLY[kind]].map(({ expected, make, needs, what, ...more }) => {
    // Only a key of the bundle can be unknown; a passport names its own.
    const isKeyUnknown = what === 'keyid of no key' && !hasPassport;
    return {
      name: `http-message-signatures ${kind}: ${what}`,
      expected: isKeyUnknown ? denied('invalid_request_proof', 'key_unknown') : expected,
      ...(needs === undefined ? (hasPassport ? {} : { needs: 'own_passport' as const }) : { needs }),
      ...more,
      make: (subject) =>
        make(subject, (to, changes) =>
          needs === 'write_route'
            ? to.signHttpWrite({ ...changes, hasPassport })
            : to.signHttp({ ...changes, hasPassport }),
        ),
    };
  });
}

export const HTTP_SIGNATURE_CASES: readonly PublicCase[] = [
  ...httpSignatureCases('keyed'),
  ...httpSignatureCases('with a passport'),
];
