/** Tests signed documents: valid ones, and each way in which a document is invalid. */
import { describe, expect, it } from '@jest/globals';
import { openFreshness } from '../../../src/bundle/compile/freshness-statement.ts';
import {
  DOCUMENTS,
  type DocumentType,
  type Signers,
  signDocument,
  verifyDocument,
} from '../../../src/bundle/format/documents.ts';
import { openBundle } from '../../../src/bundle/format/open-document.ts';
import { signMessage } from '../../../src/protocol/signature.ts';
import type { SigningKey } from '../../../src/protocol/signing.ts';
import { codeAndPath } from '../../support/bundle/rejection.ts';
import {
  AUTH_SITE,
  bundleContent,
  NOW_SECONDS,
  newSigningKey,
  newTestKeys,
} from '../../support/fixtures/bundle-content.ts';

const keys = newTestKeys();
const second = newSigningKey();
const es256 = newSigningKey('ES256');
const stranger = newSigningKey();
const FILE = 'bundle.jws';
const TYPE = DOCUMENTS.bundle.type;
const PAYLOAD = Buffer.from('{"a":1}');

function signers(threshold: number, ...of: readonly SigningKey[]): Signers {
  return { keys: of.map(({ publicKey }) => publicKey), threshold };
}

function verify(bytes: Buffer, by = signers(1, keys.bundle), maxBytes = 4096) {
  return verifyDocument({ file: FILE, type: TYPE, bytes, maxBytes }, by);
}

const encode = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
const bytesOf = (value: unknown) => Buffer.from(JSON.stringify(value));

/** A signature over whatever header is given, by a key that may have nothing to do with it. */
function signature(header: unknown, key = keys.bundle, payload = encode(PAYLOAD.toString())) {
  const input = Buffer.from(`${encode(header)}.${payload}`);
  return {
    protected: encode(header),
    signature: signMessage(key.publicKey.algorithm, key.privateKey, input).toString('base64url'),
  };
}

const header = { alg: 'Ed25519', kid: keys.bundle.publicKey.thumbprint, typ: TYPE };
const envelope = (...signatures: readonly unknown[]) =>
  bytesOf({ payload: encode(PAYLOAD.toString()), signatures });

describe('a document that holds', () => {
  it('gives its payload and who signed', () => {
    const bytes = signDocument(TYPE, PAYLOAD, [keys.bundle, es256]);
    const found = verify(bytes, signers(2, keys.bundle, es256));
    expect(found.payload).toEqual(PAYLOAD);
    expect(found.signers).toEqual([keys.bundle.publicKey.thumbprint, es256.publicKey.thumbprint]);
  });

  it('has one signature in general serialization, with exactly these members', () => {
    const document: unknown = JSON.parse(signDocument(TYPE, PAYLOAD, [keys.bundle]).toString());
    expect(document).toEqual({
      payload: encode(PAYLOAD.toString()),
      signatures: [{ protected: encode(header), signature: expect.any(String) }],
    });
  });

  it('may be signed by others too', () => {
    const bytes = signDocument(TYPE, PAYLOAD, [stranger, keys.bundle]);
    expect(verify(bytes).signers).toEqual([keys.bundle.publicKey.thumbprint]);
  });
});

describe('a document that does not hold', () => {
  const sound = signature(header);
  const cases: readonly { name: string; bytes: Buffer; by?: Signers; maxBytes?: number; error: string }[] = [
    {
      name: 'signed by somebody else',
      bytes: signDocument(TYPE, PAYLOAD, [stranger]),
      error: 'signatures_insufficient /signatures',
    },
    {
      name: 'signed by one of the two needed',
      bytes: signDocument(TYPE, PAYLOAD, [keys.bundle]),
      by: signers(2, keys.bundle, second),
      error: 'signatures_insufficient /signatures',
    },
    {
      name: 'signed twice by one of the two needed',
      bytes: signDocument(TYPE, PAYLOAD, [keys.bundle, keys.bundle]),
      by: signers(2, keys.bundle, second),
      error: 'signatures_insufficient /signatures',
    },
    {
      name: 'signed twice by a key that is pinned twice',
      bytes: signDocument(TYPE, PAYLOAD, [keys.bundle, keys.bundle]),
      by: signers(2, keys.bundle, keys.bundle),
      error: 'signatures_insufficient /signatures',
    },
    {
      name: 'a threshold of 0 is one of 1',
      bytes: signDocument(TYPE, PAYLOAD, [stranger]),
      by: signers(0, keys.bundle),
      error: 'signatures_insufficient /signatures',
    },
    {
      name: 'no pinned keys',
      bytes: envelope(sound),
      by: signers(1),
      error: 'signatures_insufficient /signatures',
    },
    {
      name: 'payload tampered with',
      bytes: bytesOf({ payload: encode('{"a":2}'), signatures: [sound] }),
      error: 'signature_invalid /signatures/0',
    },
    {
      name: "a stranger's signature under the pinned kid",
      bytes: envelope(signature(header, stranger)),
      error: 'signature_invalid /signatures/0',
    },
    {
      name: 'one that holds does not make up for one that claims a pinned key and does not',
      bytes: envelope(sound, signature(header, stranger)),
      error: 'signature_invalid /signatures/1',
    },
    {
      name: "another algorithm than the key's",
      bytes: envelope(signature({ ...header, alg: 'ES256' })),
      error: 'signature_invalid /signatures/0',
    },
    ...['none', 'EdDSA', 'HS256', 1].map((alg) => ({
      name: `alg ${alg}`,
      bytes: envelope(signature({ ...header, alg })),
      error: 'header_malformed /signatures/0/protected',
    })),
    ...[DOCUMENTS.freshness.type, DOCUMENTS.delta.type, 'proofgate-passport+jwt'].map((typ) => ({
      name: `typ ${typ}`,
      bytes: envelope(signature({ ...header, typ })),
      error: 'document_type /signatures/0/protected',
    })),
    {
      name: 'another typ in an extra signature',
      bytes: envelope(sound, signature({ ...header, kid: 'x', typ: DOCUMENTS.freshness.type }, stranger)),
      error: 'document_type /signatures/1/protected',
    },
    ...[
      { alg: 'Ed25519', kid: header.kid },
      { ...header, jwk: keys.bundle.publicKey.jwk },
      { ...header, crit: ['b64'], b64: false },
      { ...header, kid: 7 },
      [header],
      'null',
      '',
      `{"alg":"ES256","alg":"Ed25519","kid":"${header.kid}","typ":"${TYPE}"}`,
    ].map((bad) => ({
      name: `protected header ${JSON.stringify(bad).slice(0, 40)}`,
      bytes: envelope(signature(bad)),
      error: 'header_malformed /signatures/0/protected',
    })),
    {
      name: 'protected header too long',
      bytes: envelope(signature({ ...header, kid: 'k'.repeat(600) })),
      error: 'header_malformed /signatures/0/protected',
    },
    {
      name: 'protected header not canonical base64url',
      bytes: envelope({ ...sound, protected: `${sound.protected}=` }),
      error: 'header_malformed /signatures/0/protected',
    },
    {
      name: 'payload not canonical base64url',
      bytes: bytesOf({ payload: `${encode(PAYLOAD.toString())}=`, signatures: [sound] }),
      error: 'document_malformed /payload',
    },
    {
      name: 'payload not a string',
      bytes: bytesOf({ payload: { a: 1 }, signatures: [sound] }),
      error: 'document_malformed /payload',
    },
    {
      name: 'signature not canonical base64url',
      bytes: envelope({ ...sound, signature: `${sound.signature} ` }),
      error: 'document_malformed /signatures/0/signature',
    },
    {
      name: 'signature too short',
      bytes: envelope({ ...sound, signature: 'AAAA' }),
      error: 'document_malformed /signatures/0/signature',
    },
    {
      name: 'unprotected header',
      bytes: envelope({ ...sound, header: { kid: header.kid } }),
      error: 'document_malformed /signatures/0',
    },
    { name: 'signature null', bytes: envelope(null), error: 'document_malformed /signatures/0' },
    { name: 'no signatures', bytes: envelope(), error: 'document_malformed /signatures' },
    {
      name: 'too many signatures',
      bytes: envelope(...Array.from({ length: 17 }, () => sound)),
      maxBytes: 65_536,
      error: 'document_malformed /signatures',
    },
    {
      name: 'flattened serialization',
      bytes: bytesOf({ payload: encode(PAYLOAD.toString()), ...sound }),
      error: 'document_malformed ',
    },
    {
      name: 'a member twice',
      bytes: Buffer.from(`{"payload":"e30","payload":"e30","signatures":[]}`),
      error: 'document_malformed ',
    },
    { name: 'not JSON', bytes: Buffer.from('proofgate'), error: 'document_malformed ' },
    { name: 'empty', bytes: Buffer.alloc(0), error: 'document_malformed ' },
    {
      name: 'a byte order mark',
      bytes: Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), envelope(sound)]),
      error: 'document_malformed ',
    },
    { name: 'not UTF-8', bytes: Buffer.from([0x22, 0xc3, 0x28, 0x22]), error: 'document_malformed ' },
    { name: 'too large', bytes: envelope(sound), maxBytes: 100, error: 'file_too_large ' },
  ];
  it.each(cases)('$name', async ({ bytes, by, maxBytes, error }) => {
    expect(await codeAndPath(() => verify(bytes, by, maxBytes))).toBe(error);
  });
});

describe('a bundle', () => {
  const content = bundleContent(keys);
  const open = (payload: string, options: { authSite?: string; key?: SigningKey } = {}) =>
    openBundle(signDocument(TYPE, Buffer.from(payload), [options.key ?? keys.bundle]), {
      file: FILE,
      signers: signers(1, keys.bundle),
      authSite: options.authSite ?? AUTH_SITE,
    });
  const text = JSON.stringify(content);

  it('gives content and position', () => {
    const opened = open(text);
    expect(opened.content).toEqual(content);
    expect(opened.position.revision).toBe(1);
    expect(opened.signers).toEqual([keys.bundle.publicKey.thumbprint]);
  });

  it.each([
    ['signature before payload', '{"a":1,"a":2}', { key: stranger }, 'signatures_insufficient /signatures'],
    ['a member twice in the payload', text.replace('{', '{"revision":1,'), {}, 'payload_malformed '],
    ['payload with a byte order mark', `\ufeff${text}`, {}, 'payload_malformed '],
    ['payload not JSON', text.slice(1), {}, 'payload_malformed '],
    ['payload null', 'null', {}, 'value_invalid '],
    ['payload of another site', text, { authSite: 'shop-us-1' }, 'auth_site_mismatch /auth_site'],
    [
      'previous_head with stray bits',
      JSON.stringify({ ...content, previous_head: `${'A'.repeat(42)}B` }),
      {},
      'value_invalid /previous_head',
    ],
  ])('%s', async (_name, payload, options, error) => {
    expect(await codeAndPath(() => open(payload, options))).toBe(error);
  });
});

describe('a freshness statement', () => {
  const statement = {
    auth_site: AUTH_SITE,
    revision: 1,
    head: 'A'.repeat(43),
    as_of: '2026-11-21T04:00:00Z',
  };
  const open = (payload: unknown, type: DocumentType = DOCUMENTS.freshness.type) =>
    openFreshness(signDocument(type, bytesOf(payload), [keys.bundle]), {
      file: 'freshness.jws',
      signers: signers(1, keys.bundle),
      authSite: AUTH_SITE,
    });

  it('gives what it says', () => {
    expect(open(statement)).toEqual({ revision: 1, head: 'A'.repeat(43), asOfSeconds: NOW_SECONDS });
  });

  it.each([
    ['a bundle instead', () => open(statement, TYPE), 'document_type /signatures/0/protected'],
    ['unknown member', () => open({ ...statement, x: 1 }), 'unknown_member /x'],
    ['another site', () => open({ ...statement, auth_site: 'x' }), 'auth_site_mismatch /auth_site'],
    ['no such moment', () => open({ ...statement, as_of: '2026-11-31T04:00:00Z' }), 'time_invalid /as_of'],
    ['head missing', () => open({ ...statement, head: undefined }), 'missing_member /head'],
  ])('%s', async (_name, action, error) => {
    expect(await codeAndPath(action)).toBe(error);
  });
});
