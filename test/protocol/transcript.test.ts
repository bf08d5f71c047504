import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { MAX_TRANSCRIPT_BYTES } from '../../src/protocol/limits.ts';
import {
  decodeTranscript,
  firstDifference,
  formatTranscript,
  parseTranscript,
  type RebuiltTranscript,
  type SignedHeader,
  type Transcript,
} from '../../src/protocol/transcript.ts';
import { NOW_SECONDS, TRANSCRIPT } from '../support/protocol/fixtures.ts';

const TEXT = formatTranscript(TRANSCRIPT);

function parse(text: string): Transcript | undefined {
  return parseTranscript(Buffer.from(text, 'latin1'), 'authorization');
}

/** The text with the value of one line replaced; fails when there is no such line. */
function withLine(name: string, value: string): string {
  const lines = TEXT.split('\n');
  const at = lines.findIndex((line) => line.startsWith(`${name}=`));
  if (at === -1) throw new Error(`no line ${name}`);
  lines[at] = `${name}=${value}`;
  return lines.join('\n');
}

describe('formatTranscript', () => {
  it('writes the lines in their order', () => {
    expect(TEXT).toBe(
      [
        'transcript-v1',
        'auth-site=shop-eu',
        'key-id=broker-1',
        `passport-sha256=${TRANSCRIPT.passportSha256}`,
        'issuer=https://broker.example',
        'subject=spiffe://shop.example/ns/prod/sa/billing',
        'audience=https://api.shop.example',
        'route-id=orders-create',
        'method=POST',
        'scheme=https',
        'authority=api.shop.example',
        'target=/v1/orders?dry-run=1',
        'jti=AAAAAAAAAAAAAAAAAAAAAA',
        `issued-at=${NOW_SECONDS}`,
        `expires-at=${NOW_SECONDS + 60}`,
        'content-sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU',
        'headers=content-type,x-tenant',
        'header.content-type=application/json',
        'header.x-tenant=acme, inc',
        '',
      ].join('\n'),
    );
  });

  it('writes - for what is not bound', () => {
    const text = formatTranscript({ ...TRANSCRIPT, contentSha256: '-', headers: [] });
    expect(text.endsWith('\ncontent-sha256=-\nheaders=-\n')).toBe(true);
  });
});

const visible = (maxLength: number) =>
  fc.string({
    unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
    minLength: 1,
    maxLength,
  });
const characters = (alphabet: string, minLength: number, maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...alphabet), minLength, maxLength });
const sha256 = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => Buffer.from(bytes).toString('base64url'));
const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const seconds = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });

const signedHeaders: fc.Arbitrary<readonly SignedHeader[]> = fc
  .uniqueArray(
    fc.record({
      name: characters('ab1-_', 1, 4).filter((name) => /^[a-z0-9]/.test(name)),
      value: fc
        .tuple(visible(10), fc.constantFrom('', ' ', ', ', '='), visible(10))
        .map((parts) => parts.join('')),
    }),
    { selector: ({ name }) => name, maxLength: 5 },
  )
  .map((headers) => [...headers].sort((a, b) => (a.name < b.name ? -1 : 1)));

const transcript: fc.Arbitrary<Transcript> = fc.record({
  authSite: visible(20),
  keyId: visible(128),
  passportSha256: sha256,
  issuer: visible(40),
  subject: visible(40),
  audience: visible(40),
  routeId: visible(512),
  method: characters("ABCget!#$%&'*+-.^_`|~", 1, 32),
  scheme: fc.constantFrom('http', 'https'),
  authority: visible(40),
  target: visible(100).map((rest) => `/${rest}`),
  jti: characters(BASE64URL, 22, 128),
  issuedAtSeconds: seconds,
  expiresAtSeconds: seconds,
  contentSha256: fc.oneof(sha256, fc.constant('-')),
  headers: signedHeaders,
});

describe('parseTranscript', () => {
  it('reads back what was written, which has one spelling only', () => {
    fc.assert(
      fc.property(transcript, (value) => {
        const text = formatTranscript(value);
        const parsed = parse(text);
        expect(parsed).toEqual(value);
        expect(parsed && formatTranscript(parsed)).toBe(text);
      }),
    );
  });

  it('of any change of one byte gives nothing, or what is written exactly so', () => {
    fc.assert(
      fc.property(fc.nat(TEXT.length - 1), fc.nat(255), (at, code) => {
        const changed = TEXT.slice(0, at) + String.fromCharCode(code) + TEXT.slice(at + 1);
        const parsed = parse(changed);
        expect(parsed === undefined || formatTranscript(parsed) === changed).toBe(true);
      }),
      { numRuns: 3_000 },
    );
  });

  it('reads the bytes it is given, not the buffer around them', () => {
    const around = Buffer.from(`x${TEXT}y`, 'latin1');
    expect(parseTranscript(around.subarray(1, -1), 'authorization')).toEqual(TRANSCRIPT);
    expect(parseTranscript(Uint8Array.from(Buffer.from(TEXT)), 'authorization')).toEqual(TRANSCRIPT);
  });

  it.each<[string, string]>([
    ['nothing', ''],
    ['a line feed', '\n'],
    ['the version alone', 'transcript-v1\n'],
    ['another version', TEXT.replace('transcript-v1', 'transcript-v2')],
    ['the version in capitals', TEXT.replace('transcript-v1', 'TRANSCRIPT-V1')],
    ['no version', TEXT.slice(TEXT.indexOf('\n') + 1)],
    ['no line feed at the end', TEXT.slice(0, -1)],
    ['two line feeds at the end', `${TEXT}\n`],
    ['text behind the last line feed', `${TEXT}x`],
    ['an empty line', TEXT.replace('\nmethod', '\n\nmethod')],
    ['carriage returns', TEXT.replaceAll('\n', '\r\n')],
    ['a tab', TEXT.replace('acme, inc', 'acme,\tinc')],
    ['NUL', TEXT.replace('acme', 'ac\0me')],
    ['DEL', TEXT.replace('acme', 'ac\u007fme')],
    ['a byte beyond ASCII', TEXT.replace('acme', 'acm\u00e9')],
    ['a byte order mark', `\u00ef\u00bb\u00bf${TEXT}`],
    ['two lines swapped', TEXT.replace(/(method=.*\n)(scheme=.*\n)/, '$2$1')],
    ['a line twice', TEXT.replace(/(method=.*\n)/, '$1$1')],
    ['a line more', TEXT.replace('\njti=', '\nnonce=1\njti=')],
    ['a line more at the end', `${TEXT}x=1\n`],
    ['a name in capitals', TEXT.replace('method=', 'Method=')],
    ['a space before the sign', TEXT.replace('method=', 'method =')],
    ['a colon for the sign', TEXT.replace('method=', 'method:')],
  ])('refuses %s', (_, text) => {
    expect(text).not.toBe(TEXT);
    expect(parse(text)).toBeUndefined();
  });

  const NAMES = TEXT.split('\n')
    .slice(1, -1)
    .map((line) => line.slice(0, line.indexOf('=')));

  describe.each(NAMES)('refuses, in the line %s,', (name) => {
    it.each([
      ['its absence', TEXT.replace(new RegExp(`\n${name}=.*`), '')],
      ['nothing as value', withLine(name, '')],
      ['a space', withLine(name, ' ')],
      ['a space in front', TEXT.replace(`\n${name}=`, `\n${name}= `)],
      ['a space behind', TEXT.replace(new RegExp(`(\n${name}=.*)`), '$1 ')],
    ])('%s', (_, text) => {
      expect(text).not.toBe(TEXT);
      expect(parse(text)).toBeUndefined();
    });
  });

  const STRAY_BITS = '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFV';
  it.each<[string, string]>([
    ['auth-site', 'shop eu'],
    ['auth-site', 'a'.repeat(513)],
    ['key-id', 'a b'],
    ['key-id', 'k'.repeat(129)],
    ['passport-sha256', '-'],
    ['passport-sha256', STRAY_BITS],
    ['passport-sha256', 'A'.repeat(42)],
    ['passport-sha256', 'A'.repeat(44)],
    ['issuer', 'a b'],
    ['issuer', 'a'.repeat(513)],
    ['subject', 'a b'],
    ['subject', 'a'.repeat(513)],
    ['audience', 'a b'],
    ['audience', 'a'.repeat(513)],
    ['route-id', 'a b'],
    ['route-id', 'a'.repeat(513)],
    ['method', 'GET /'],
    ['method', 'GE(T'],
    ['method', 'M'.repeat(33)],
    ['scheme', 'HTTPS'],
    ['scheme', 'ws'],
    ['target', 'v1/orders'],
    ['target', '*'],
    ['target', 'https://api.shop.example/v1/orders'],
    ['jti', 'A'.repeat(21)],
    ['jti', 'A'.repeat(129)],
    ['jti', `${'A'.repeat(21)}=`],
    ['jti', `${'A'.repeat(21)}+`],
    ['issued-at', '0'],
    ['issued-at', '01'],
    ['issued-at', '-1'],
    ['issued-at', '1.0'],
    ['issued-at', '1e9'],
    ['issued-at', '9007199254740992'],
    ['expires-at', '0'],
    ['expires-at', '+1'],
    ['expires-at', '99999999999999999'],
    ['content-sha256', '--'],
    ['content-sha256', STRAY_BITS],
    ['content-sha256', 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
    ['headers', '-'],
    ['headers', 'content-type'],
    ['headers', 'x-tenant'],
    ['headers', 'x-tenant,content-type'],
    ['headers', 'content-type,content-type'],
    ['headers', 'content-type,x-other'],
    ['headers', 'content-type,x-tenant,x-user'],
    ['headers', 'content-type, x-tenant'],
    ['headers', 'content-type,,x-tenant'],
    ['headers', 'content-type,x-tenant,'],
    ['headers', ',content-type,x-tenant'],
    ['headers', '-,content-type,x-tenant'],
    ['headers', 'Content-Type,x-tenant'],
  ])('refuses %s=%s', (name, value) => {
    expect(parse(withLine(name, value))).toBeUndefined();
  });

  it.each(['authorization', 'x-proofgate-subject', 'X-Tenant', ':path', '-x', 'a.b', 'a'.repeat(129)])(
    'refuses the header %s, however it is given',
    (name) => {
      expect(parse(formatTranscript({ ...TRANSCRIPT, headers: [{ name, value: 'v' }] }))).toBeUndefined();
    },
  );

  it('refuses header lines in another order than their list', () => {
    const text = TEXT.replace(/(header\.content-type=.*\n)(header\.x-tenant=.*\n)/, '$2$1');
    expect(text).not.toBe(TEXT);
    expect(parse(text)).toBeUndefined();
  });

  it('refuses a header twice, listed twice', () => {
    const header: SignedHeader = { name: 'x-tenant', value: 'acme' };
    expect(parse(formatTranscript({ ...TRANSCRIPT, headers: [header] }))).toBeDefined();
    expect(parse(formatTranscript({ ...TRANSCRIPT, headers: [header, header] }))).toBeUndefined();
  });

  it('sorts header names by bytes', () => {
    const names = ['0', '1-', '1_', 'a', 'a-', 'a0', 'aa', 'b'];
    const headers = names.map((name) => ({ name, value: 'v' }));
    expect(parse(formatTranscript({ ...TRANSCRIPT, headers }))?.headers).toEqual(headers);
    // '-' (0x2d), digits, '_' (0x5f), letters.
    const wrong = [...headers.slice(0, 1), ...headers.slice(2, 3), ...headers.slice(1, 2)];
    expect(parse(formatTranscript({ ...TRANSCRIPT, headers: wrong }))).toBeUndefined();
  });

  it.each<[string, Partial<Transcript>]>([
    ['a target with a space', { target: '/a b' }],
    ['an authority that is none', { authority: 'API.shop.example:443' }],
    ['an expiry before the issue', { expiresAtSeconds: 1 }],
    ['a value that holds the sign', { issuer: 'a=b' }],
  ])('leaves to the comparison or to the times: %s', (_, change) => {
    const value = { ...TRANSCRIPT, ...change };
    expect(parse(formatTranscript(value))).toEqual(value);
  });

  it('takes 8 KiB and not more', () => {
    const rest = formatTranscript({ ...TRANSCRIPT, target: '/' }).length;
    const ofLength = (length: number) =>
      formatTranscript({ ...TRANSCRIPT, target: `/${'a'.repeat(length - rest)}` });
    expect(parse(ofLength(MAX_TRANSCRIPT_BYTES))).toBeDefined();
    expect(parse(ofLength(MAX_TRANSCRIPT_BYTES + 1))).toBeUndefined();
  });
});

describe('decodeTranscript', () => {
  it('takes canonical base64url of at most 8 KiB', () => {
    expect(decodeTranscript(Buffer.from(TEXT).toString('base64url'))?.toString('latin1')).toBe(TEXT);
    expect(decodeTranscript('Zg==')).toBeUndefined();
    expect(decodeTranscript('A'.repeat(MAX_TRANSCRIPT_BYTES))).toHaveLength(6_144);
    expect(decodeTranscript('A'.repeat(MAX_TRANSCRIPT_BYTES + 4))).toBeUndefined();
  });
});

describe('firstDifference', () => {
  it('is undefined for what is equal, whatever the times and the jti', () => {
    expect(firstDifference(TRANSCRIPT, TRANSCRIPT)).toBeUndefined();
    const other = { ...TRANSCRIPT, jti: 'B'.repeat(22), issuedAtSeconds: 1, expiresAtSeconds: 2 };
    expect(firstDifference(TRANSCRIPT, other)).toBeUndefined();
  });

  /** In the order of the lines. */
  const CHANGES: readonly (readonly [string, Partial<RebuiltTranscript>])[] = [
    ['auth-site', { authSite: 'other' }],
    ['key-id', { keyId: 'other' }],
    ['passport-sha256', { passportSha256: 'other' }],
    ['issuer', { issuer: 'other' }],
    ['subject', { subject: 'other' }],
    ['audience', { audience: 'other' }],
    ['route-id', { routeId: 'other' }],
    ['method', { method: 'post' }],
    ['scheme', { scheme: 'http' }],
    ['authority', { authority: 'api.shop.example:443' }],
    ['target', { target: '/v1/orders?dry-run=0' }],
    ['content-sha256', { contentSha256: '-' }],
    ['headers', { headers: TRANSCRIPT.headers.slice(1) }],
  ];

  it.each(CHANGES)('names %s', (name, change) => {
    expect(firstDifference(TRANSCRIPT, { ...TRANSCRIPT, ...change })).toBe(name);
  });

  it.each(CHANGES.map(([name], i) => [name, i] as const))('names %s before every later line', (name, i) => {
    const changes = CHANGES.slice(i).map(([, change]) => change);
    const rebuilt: RebuiltTranscript = Object.assign({ ...TRANSCRIPT }, ...changes);
    expect(firstDifference(TRANSCRIPT, rebuilt)).toBe(name);
  });

  const headers = (...values: readonly (string | undefined)[]): RebuiltTranscript => ({
    ...TRANSCRIPT,
    headers: TRANSCRIPT.headers.map(({ name }, i) => ({ name, value: values[i] })),
  });

  it.each<[string, RebuiltTranscript]>([
    ['body_unavailable', { ...TRANSCRIPT, contentSha256: undefined }],
    ['target', { ...TRANSCRIPT, contentSha256: undefined, target: '/' }],
    ['header.content-type', headers('text/plain', 'acme, inc')],
    ['header.content-type', headers(undefined, undefined)],
    ['header.x-tenant', headers('application/json', undefined)],
    ['header.x-tenant', headers('application/json', 'Acme, inc')],
    ['headers', { ...TRANSCRIPT, headers: [...TRANSCRIPT.headers, { name: 'x-user', value: undefined }] }],
  ])('names %s', (name, rebuilt) => {
    expect(firstDifference(TRANSCRIPT, rebuilt)).toBe(name);
  });

  it('tells a body that is not known from one that was not bound', () => {
    const unbound = { ...TRANSCRIPT, contentSha256: '-' };
    expect(firstDifference(unbound, { ...unbound, contentSha256: undefined })).toBe('body_unavailable');
    expect(firstDifference(unbound, TRANSCRIPT)).toBe('content-sha256');
  });

  it('finds one wherever texts differ in more than jti and times', () => {
    fc.assert(
      fc.property(transcript, transcript, fc.constantFrom(...Object.keys(TRANSCRIPT)), (sent, other, key) => {
        const rebuilt = { ...sent, [key]: other[key as keyof Transcript] };
        const taken = {
          jti: sent.jti,
          issuedAtSeconds: sent.issuedAtSeconds,
          expiresAtSeconds: sent.expiresAtSeconds,
        };
        const differs = formatTranscript({ ...rebuilt, ...taken }) !== formatTranscript(sent);
        expect(firstDifference(sent, { ...rebuilt, ...taken }) !== undefined).toBe(differs);
      }),
      { numRuns: 500 },
    );
  });
});
