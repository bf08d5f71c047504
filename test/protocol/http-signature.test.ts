import { hash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { requestHeadersOf } from '../../src/process/http-proxy/raw-headers.ts';
import { digestMatches, parseContentDigest } from '../../src/protocol/content-digest.ts';
import type { RequestHeaders } from '../../src/protocol/credentials.ts';
import {
  acceptSignature,
  coveredValues,
  firstUncovered,
  formatSignatureBase,
  readHttpSignature,
  SITE_PROFILE,
} from '../../src/protocol/http-signature.ts';
import { importPublicKey } from '../../src/protocol/import-public-key.ts';
import { MAX_DICTIONARY_MEMBERS, parseInnerLists } from '../../src/protocol/structured-fields.ts';
import { verifySignature } from '../../src/protocol/verify-signature.ts';

/** Values by name; a list for several lines. */
type Lines = { readonly [name: string]: string | readonly string[] };

function headersOf(lines: Lines): RequestHeaders {
  return requestHeadersOf(
    Object.entries(lines).flatMap(([name, values]) => [values].flat().flatMap((value) => [name, value])),
  );
}

describe('RFC 9421', () => {
  const headers = headersOf({
    date: 'Tue, 20 Apr 2021 02:07:55 GMT',
    'content-type': 'application/json',
    'content-length': '18',
    'content-digest':
      'sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:',
  });
  const target = '/foo?param=Value&Pet=dog';
  const message = { method: 'POST', scheme: 'https', authority: 'example.com', target, headers };

  it('appendix B.2.6: builds the base that the published Ed25519 signature covers', () => {
    const field =
      'sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"';
    const signature =
      'wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==';
    const x = 'JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs';
    const key = importPublicKey({ kty: 'OKP', crv: 'Ed25519', x });
    const [input] = parseInnerLists(field) ?? [];
    const values = coveredValues(input?.items.map(({ text }) => text) ?? [], message);
    if (values.kind !== 'covered' || key === undefined) throw new Error('not read');
    const base = formatSignatureBase(values.lines, input?.value ?? '');
    expect(verifySignature(key, Buffer.from(base), Buffer.from(signature, 'base64'))).toBe(true);
    expect(verifySignature(key, Buffer.from(`${base}\n`), Buffer.from(signature, 'base64'))).toBe(false);
  });

  it('section 2.2: derives components from the request as received', () => {
    const valuesOf = (sent: string) => {
      const names = ['@method', '@target-uri', '@authority', '@scheme', '@path', '@query'];
      const values = coveredValues(names, { ...message, target: sent });
      return values.kind === 'covered' ? values.lines.map(([, value]) => value) : [];
    };
    expect(valuesOf(target)).toEqual([
      ...['POST', `https://example.com${target}`, 'example.com', 'https', '/foo'],
      '?param=Value&Pet=dog',
    ]);
    expect(valuesOf('/foo').at(-1)).toBe('?');
  });

  it.each([
    'sig-b21=();created=1618884473;keyid="test-key-rsa-pss";nonce="b3k2pp5k7z-50gnwp.yemd"',
    'sig-b22=("@authority" "content-digest" "@query-param";name="Pet");created=1618884473;keyid="test-key-rsa-pss";tag="header-example"',
  ])('appendix B.2: scans %s', (field) => expect(parseInnerLists(field)).toHaveLength(1));
});

const NONCE = 'AAECAwQFBgcICQoLDA0ODw';
const SIGNATURE = `:${Buffer.alloc(64, 1).toString('base64')}:`;
const PARAMETERS = `;created=1800000000;expires=1800000060;nonce="${NONCE}";keyid="dk_1";tag="proofgate/shop-eu"`;
const INPUT = `sig=("@method" "@target-uri")${PARAMETERS}`;

function read(input: Lines[string], more: Lines = {}) {
  const headers = headersOf({ 'signature-input': input, signature: `sig=${SIGNATURE}`, ...more });
  return readHttpSignature(headers, SITE_PROFILE, 'shop-eu', 'authorization', false);
}

describe('readHttpSignature', () => {
  it('reads a signature of the profile', () => {
    expect(read(INPUT)).toMatchObject({
      kind: 'read',
      signature: {
        components: ['@method', '@target-uri'],
        keyId: 'dk_1',
        jti: NONCE,
        issuedAtSeconds: 1_800_000_000,
        expiresAtSeconds: 1_800_000_060,
        algorithm: undefined,
        params: INPUT.slice('sig='.length),
        otherSignatures: undefined,
      },
    });
  });

  it('finds it among those of others, and keeps theirs', () => {
    const other = 'cdn=("@authority";req);created=1;keyid="x"';
    const fields = { signature: `cdn=:AAAA:, sig=${SIGNATURE}` };
    const otherSignatures = { input: other, signature: 'cdn=:AAAA:' };
    expect(read(`${other}, ${INPUT}`, fields)).toMatchObject({
      kind: 'read',
      signature: { otherSignatures },
    });
  });

  it.each([
    ['no field', []],
    ['no tag', 'sig=("@method");created=1;keyid="dk_1"'],
    ['the tag of another site', INPUT.replace('shop-eu', 'shop-us')],
    ['the tag as a token', INPUT.replace('"proofgate/shop-eu"', 'proofgate/shop-eu')],
    // Fields of others are ordinary headers, whatever they hold.
    ['no canonical field of ours', 'a=("b"),c; tag="cdn"'],
    ['two lines of others', ['a=("b");tag="cdn"', 'b=("c")']],
    ['the field serialized twice', JSON.stringify(INPUT)],
  ] as const)('has none with %s', (_, input) => expect(read(input)).toEqual({ kind: 'absent' }));

  const list = '("@method" "@target-uri")';
  it.each([
    ['two lines', [INPUT, 'cdn=("a")']],
    ['ours beside one of others that is not canonical', `${INPUT}, cdn=( "a")`],
    ['two signatures of ours', `${INPUT}, ${INPUT.replace('sig=', 'sig2=')}`],
    ['a label twice', `${INPUT}, sig=("a")`],
    ['a parameter twice', `${INPUT};created=1800000000`],
    ['a component twice', INPUT.replace('"@method"', '"@method" "@method"')],
    ['an empty list', INPUT.replace(list, '()')],
    ['two spaces in the list', INPUT.replace('" "', '"  "')],
    ['a tab in the list', INPUT.replace('" "', '"\t"')],
    ['no space after a comma', `${INPUT},a=("b")`],
    ['a trailing comma', `${INPUT}, `],
    ['a leading zero', INPUT.replace('=1800000000', '=01800000000')],
    ['a parameter of a component', INPUT.replace('"@method"', '"@method";req')],
    ['a component that no request has', INPUT.replace('"@method"', '"@method" "@status"')],
    ['@request-target', INPUT.replace('"@method"', '"@method" "@request-target"')],
    ['@query-param', INPUT.replace('"@method"', '"@method" "@query-param";name="a"')],
    ['@signature-params as a component', INPUT.replace('"@method"', '"@method" "@signature-params"')],
    ['the signature itself', INPUT.replace('"@method"', '"@method" "signature"')],
    ['a capital', INPUT.replace('"@method"', '"@method" "Date"')],
    ['Authorization', INPUT.replace('"@method"', '"@method" "authorization"')],
    ['a context header', INPUT.replace('"@method"', '"@method" "x-proofgate-subject"')],
    ['an unknown parameter', `${INPUT};a`],
    ['no created', INPUT.replace(';created=1800000000', '')],
    ['created as a string', INPUT.replace('1800000000', '"1800000000"')],
    ['no expires', INPUT.replace(';expires=1800000060', '')],
    ['no nonce', INPUT.replace(`;nonce="${NONCE}"`, '')],
    ['a short nonce', INPUT.replace(NONCE, NONCE.slice(1))],
    ['a long nonce', INPUT.replace(NONCE, 'a'.repeat(87))],
    ['a nonce of base64', INPUT.replace(NONCE, `${NONCE.slice(0, -1)}+`)],
    ['no keyid', INPUT.replace(';keyid="dk_1"', '')],
    ['alg without a value', `${INPUT};alg`],
    [
      'too many members',
      [INPUT, ...Array.from({ length: MAX_DICTIONARY_MEMBERS }, (_, i) => `a${i}=()`)].join(', '),
    ],
    ['too many bytes', `${INPUT}, a=("${'b'.repeat(8192)}")`],
  ] as const)('refuses %s', (_, input) => expect(read(input)).toEqual({ kind: 'malformed' }));

  it.each([
    ['no Signature', { signature: [] }],
    ['two lines of Signature', { signature: [`sig=${SIGNATURE}`, 'cdn=:AAAA:'] }],
    ['another label', { signature: `other=${SIGNATURE}` }],
    ['a label twice', { signature: `sig=${SIGNATURE}, sig=${SIGNATURE}` }],
    ['a short signature', { signature: 'sig=:AAAA:' }],
    ['a signature of P-521', { signature: `sig=:${Buffer.alloc(132, 1).toString('base64')}:` }],
    ['DER', { signature: `sig=:${Buffer.alloc(70, 1).toString('base64')}:` }],
    ['base64 without padding', { signature: `sig=${SIGNATURE.replace('==', '')}` }],
    ['stray bits', { signature: `sig=${SIGNATURE.replace(/.==/, 'B==')}` }],
    ['a parameter', { signature: `sig=${SIGNATURE};a` }],
  ] as const)('refuses %s', (_, more) => expect(read(INPUT, more)).toEqual({ kind: 'malformed' }));
});

describe('coveredValues', () => {
  const message = (headers: Lines) =>
    ({ method: 'GET', scheme: 'https', authority: 'a', target: '/', headers: headersOf(headers) }) as const;

  it.each([
    ['absent', []],
    ['repeated', ['a', 'b']],
    ['empty', ''],
    ['not ASCII', 'caf\u00e9'],
  ] as const)('does not know a header that is %s', (_, date) => {
    expect(coveredValues(['date'], message({ date }))).toEqual({ kind: 'unknown', name: 'date' });
  });
});

describe('firstUncovered', () => {
  const uncovered = (components: readonly string[], needed: readonly string[] = []) =>
    firstUncovered(components, SITE_PROFILE, needed);

  it.each([
    [['@method', '@target-uri'], [], undefined],
    [['@query', '@path', '@authority', '@scheme', '@method'], [], undefined],
    [['@target-uri'], [], '@method'],
    [['@method'], [], '@target-uri'],
    [['@method', '@scheme', '@authority', '@path'], [], '@target-uri'],
    [['@method', '@target-uri'], ['x-tenant'], 'x-tenant'],
  ] as const)('of %j with %j is %s', (components, needed, name) =>
    expect(uncovered(components, needed)).toBe(name),
  );
});

it('asks for a signature with what the route needs', () => {
  expect(acceptSignature(SITE_PROFILE, 'shop-eu', ['content-digest'])).toBe(
    'sig=("@method" "@target-uri" "content-digest");created;expires;nonce;keyid;tag="proofgate/shop-eu"',
  );
});

describe('Content-Digest', () => {
  const body = Buffer.from('{"hello": "world"}');
  const sha256 = `sha-256=:${hash('sha256', body, 'base64')}:`;
  const sha512 = `sha-512=:${hash('sha512', body, 'base64')}:`;
  const matches = (value: string, bytes: Uint8Array = body) => {
    const digest = parseContentDigest(value);
    return digest && digestMatches(digest, bytes);
  };

  it.each([sha256, `${sha256}, ${sha512}`, `${sha512}, ${sha256}`])('matches %s', (value) => {
    expect([matches(value), matches(value, Buffer.from('other'))]).toEqual([true, false]);
  });

  it('computes each digest', () => {
    const other = `sha-512=:${hash('sha512', 'other', 'base64')}:`;
    expect(matches(`${sha256}, ${other}`)).toBe(false);
  });

  it.each([
    ['no SHA-256', sha512],
    ['two of one name', `${sha256}, ${sha256}`],
    ['another algorithm', `${sha256}, md5=:AAAA:`],
    ['a truncated digest', 'sha-256=:AAAA:'],
    ['a parameter', `${sha256};a`],
  ])('refuses %s', (_, value) => expect(parseContentDigest(value)).toBeUndefined());
});
