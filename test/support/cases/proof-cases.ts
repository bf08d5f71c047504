/** Malformed proofs, each signed by the right key, and invalid signatures. */

import { withBitChanged, withLargerS, withOtherS } from '../fixtures/signature-spellings.ts';
import { type RequestEdits, withHeader, withoutHeader } from '../fixtures/signed-request.ts';
import { BILLING, replaced, type VectorCase } from './vector-case.ts';

const MALFORMED = 'invalid_request_proof/proof_malformed 401';
const MISSING = 'invalid_request_proof/proof_missing 401';
const TRANSCRIPT = 'x-proofgate-transcript';
const SIGNATURE = 'x-proofgate-signature';

const value = (name: string, change: (text: string) => string): RequestEdits => ({
  received: (request) => withHeader(request, name, change),
});
const missing = (...names: readonly string[]): RequestEdits => ({
  received: (request) => names.reduce(withoutHeader, request),
});
const twice = (name: string): RequestEdits => ({
  received: (request) => ({
    ...request,
    headers: [...request.headers, ...request.headers.filter((line) => line.name === name)],
  }),
});
const otherLastCharacter = (text: string) => `${text.slice(0, -1)}${text.at(-1) === 'B' ? 'C' : 'B'}`;

const HEADERS: readonly (readonly [string, RequestEdits, string])[] = [
  ['no transcript', missing(TRANSCRIPT), MISSING],
  ['no signature', missing(SIGNATURE), MISSING],
  ['neither', missing(TRANSCRIPT, SIGNATURE), MISSING],
  ['the transcript on two lines', twice(TRANSCRIPT), MALFORMED],
  ['the signature on two lines', twice(SIGNATURE), MALFORMED],
  ['two signatures on one line', value(SIGNATURE, (text) => `${text},${text}`), MALFORMED],
  ['an empty transcript', value(TRANSCRIPT, () => ''), MALFORMED],
  ['an empty signature', value(SIGNATURE, () => ''), MALFORMED],
  [
    'a transcript with padding',
    value(TRANSCRIPT, (text) => text.padEnd(Math.ceil((text.length + 1) / 4) * 4, '=')),
    MALFORMED,
  ],
  ['a signature with padding', value(SIGNATURE, (text) => `${text}==`), MALFORMED],
  [
    'a transcript with a space in it',
    value(TRANSCRIPT, (text) => `${text.slice(0, 8)} ${text.slice(8)}`),
    MALFORMED,
  ],
  [
    'a transcript in the other alphabet',
    value(TRANSCRIPT, (text) => `${text.slice(0, 8)}+/${text.slice(10)}`),
    MALFORMED,
  ],
  ['a transcript that is not encoded', value(TRANSCRIPT, () => 'transcript-v1'), MALFORMED],
  ['unused bits of the signature that are not zero', value(SIGNATURE, otherLastCharacter), MALFORMED],
  [
    'a signature of 63 bytes',
    value(SIGNATURE, (text) => Buffer.from(text, 'base64url').subarray(0, 63).toString('base64url')),
    MALFORMED,
  ],
  [
    'a signature of 65 bytes',
    value(SIGNATURE, (text) =>
      Buffer.concat([Buffer.from(text, 'base64url'), Buffer.of(0)]).toString('base64url'),
    ),
    MALFORMED,
  ],
  ['a signature header of 129 characters', value(SIGNATURE, () => 'A'.repeat(129)), MALFORMED],
  ['a transcript header of 8,193 characters', value(TRANSCRIPT, () => 'A'.repeat(8193)), MALFORMED],
];

const text = (from: string | RegExp, to: string): RequestEdits => ({
  transcriptText: (transcript) => replaced(transcript, from, to),
});

const TEXTS: readonly (readonly [string, RequestEdits])[] = [
  ['another version', text('transcript-v1', 'transcript-v2')],
  ['CR LF', text(/\n/g, '\r\n')],
  ['no LF at the end', text(/\n$/, '')],
  ['an empty line at the end', text(/$/, '\n')],
  ['an empty line in the middle', text('\nissuer=', '\n\nissuer=')],
  ['a byte order mark', text(/^/, '\xef\xbb\xbf')],
  ['no line of the audience', text(/audience=.*\n/, '')],
  ['two lines changed over', text(/(issuer=.*\n)(subject=.*\n)/, '$2$1')],
  ['a line twice', text(/(issuer=.*\n)/, '$1$1')],
  ['a line that nobody knows', text(/$/, 'nonce=1\n')],
  ['a name in capitals', text('issuer=', 'Issuer=')],
  ['a colon for the equals sign', text('issuer=', 'issuer:')],
  ['a space before a value', text('issuer=', 'issuer= ')],
  ['a space after a value', text(/(issuer=.*)\n/, '$1 \n')],
  ['an empty value', text(/issuer=.*\n/, 'issuer=\n')],
  ['a tab in a value', text(/target=.*\n/, 'target=/v1/orders/1\t7\n')],
  ['a byte beyond ASCII', text(/target=.*\n/, 'target=/v1/orders/\xe9\n')],
  ['NUL', text(/target=.*\n/, 'target=/v1/orders/\0\n')],
  ['an issuer of 513 characters', text(/issuer=.*\n/, `issuer=${'i'.repeat(513)}\n`)],
  ['a space in the issuer', text(/issuer=.*\n/, 'issuer=https://control shop\n')],
  ['a key ID of 129 characters', text(/key-id=.*\n/, `key-id=${'k'.repeat(129)}\n`)],
  ['a hash of 31 bytes', text(/passport-sha256=.*\n/, `passport-sha256=${'A'.repeat(42)}\n`)],
  ['a hash in hexadecimal', text(/passport-sha256=.*\n/, `passport-sha256=${'0'.repeat(64)}\n`)],
  ['a hash with padding', text(/(passport-sha256=.*)\n/, '$1=\n')],
  ['a method that is no token', text('method=GET', 'method=G ET')],
  ['a scheme that is neither', text('scheme=https', 'scheme=HTTPS')],
  ['a target that is a URL', text('target=', 'target=https://api.shop.example')],
  ['a jti of 21 characters', text(/jti=.*\n/, `jti=${'j'.repeat(21)}\n`)],
  ['a jti of 129 characters', text(/jti=.*\n/, `jti=${'j'.repeat(129)}\n`)],
  ['a jti in the other alphabet', text(/jti=.*\n/, `jti=${'j'.repeat(21)}+\n`)],
  ['a time with a zero in front', text('issued-at=', 'issued-at=0')],
  ['a time with a sign', text('issued-at=', 'issued-at=+')],
  ['a time with a fraction', text(/(issued-at=.*)\n/, '$1.0\n')],
  ['a time of zero', text(/issued-at=.*\n/, 'issued-at=0\n')],
  ['a time beyond 2^53 - 1', text(/expires-at=.*\n/, 'expires-at=9007199254740992\n')],
  ['an empty hash of the content', text('content-sha256=-', 'content-sha256=')],
  ['a hash of the content that is too short', text('content-sha256=-', `content-sha256=${'A'.repeat(42)}`)],
  ['a name without its line', text('headers=-', 'headers=x-a')],
  ['a line without its name', text(/$/, 'header.x-a=1\n')],
  ['names out of order', text('headers=-\n', 'headers=x-b,x-a\nheader.x-b=1\nheader.x-a=1\n')],
  ['lines in another order than names', text('headers=-\n', 'headers=x-a,x-b\nheader.x-b=1\nheader.x-a=1\n')],
  ['a name twice', text('headers=-\n', 'headers=x-a,x-a\nheader.x-a=1\nheader.x-a=1\n')],
  ['a name in capitals among the headers', text('headers=-\n', 'headers=X-A\nheader.X-A=1\n')],
  ['a space between names', text('headers=-\n', 'headers=x-a, x-b\nheader.x-a=1\nheader. x-b=1\n')],
  ['Authorization among the headers', text('headers=-\n', 'headers=authorization\nheader.authorization=1\n')],
  [
    'a name of ours among the headers',
    text('headers=-\n', 'headers=x-proofgate-subject\nheader.x-proofgate-subject=1\n'),
  ],
  ['a pseudo header', text('headers=-\n', 'headers=:path\nheader.:path=/\n')],
  ['a header without a value', text('headers=-\n', 'headers=x-a\nheader.x-a=\n')],
];

const jwsSignature = (change: (signature: string) => string): RequestEdits => ({
  passport: (jws) => {
    const end = jws.lastIndexOf('.') + 1;
    return `${jws.slice(0, end)}${change(jws.slice(end))}`;
  },
});

const BAD = 'invalid_request_proof/proof_signature 401';
const BAD_PASSPORT = 'invalid_request_proof/passport_signature 401';
const EC = { caller: 'reporting', route: 'orders-read' } as const;

const SIGNATURES: readonly VectorCase[] = [
  {
    name: 'a bit of R',
    plan: BILLING,
    edits: value(SIGNATURE, (text) => withBitChanged(text, 0)),
    outcome: BAD,
  },
  {
    name: 'a bit of S',
    plan: BILLING,
    edits: value(SIGNATURE, (text) => withBitChanged(text, 40)),
    outcome: BAD,
  },
  { name: 'S plus the order', plan: BILLING, edits: value(SIGNATURE, withLargerS), outcome: BAD },
  { name: 'all zero', plan: BILLING, edits: value(SIGNATURE, () => 'A'.repeat(86)), outcome: BAD },
  {
    name: 'ES256, r is zero',
    plan: EC,
    edits: value(SIGNATURE, (text) => `${'A'.repeat(43)}${text.slice(43)}`),
    outcome: BAD,
  },
  {
    name: 'ES256, a bit of s',
    plan: EC,
    edits: value(SIGNATURE, (text) => withBitChanged(text, 63)),
    outcome: BAD,
  },
  { name: 'ES256, the other s', plan: EC, edits: value(SIGNATURE, withOtherS), outcome: 'allowed' },
  {
    name: "passport's, a bit of R",
    plan: BILLING,
    edits: jwsSignature((text) => withBitChanged(text, 0)),
    outcome: BAD_PASSPORT,
  },
  {
    name: "passport's, S plus the order",
    plan: BILLING,
    edits: jwsSignature(withLargerS),
    outcome: BAD_PASSPORT,
  },
  {
    name: "passport's, ES256, a bit of s",
    plan: EC,
    edits: jwsSignature((text) => withBitChanged(text, 63)),
    outcome: BAD_PASSPORT,
  },
].map((vector) => ({ ...vector, name: `signature: ${vector.name}` }));

export const PROOF_CASES: readonly VectorCase[] = [
  ...HEADERS.map(([name, edits, outcome]) => ({ name: `proof: ${name}`, plan: BILLING, edits, outcome })),
  ...TEXTS.map(([name, edits]) => ({
    name: `transcript: ${name}`,
    plan: BILLING,
    edits,
    outcome: MALFORMED,
  })),
  ...SIGNATURES,
  {
    name: 'transcript: a jti of 128 characters',
    plan: BILLING,
    edits: text(/jti=.*\n/, `jti=${'j-_'.repeat(43).slice(0, 128)}\n`),
    outcome: 'allowed',
  },
];
