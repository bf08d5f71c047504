/** Tests that arbitrary file contents cause a BundleError and no other error. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { readBundleYaml } from '../../../src/bundle/authoring/yaml-source.ts';
import { compileBundle } from '../../../src/bundle/compile/compile.ts';
import { openFreshness } from '../../../src/bundle/compile/freshness-statement.ts';
import { BundleError } from '../../../src/bundle/format/bundle-error.ts';
import { DOCUMENTS, signDocument } from '../../../src/bundle/format/documents.ts';
import { openBundle } from '../../../src/bundle/format/open-document.ts';
import { rejection } from '../../support/bundle/rejection.ts';
import { AUTH_SITE, bundleContent, newTestKeys } from '../../support/fixtures/bundle-content.ts';

const keys = newTestKeys();
const signers = { keys: [keys.bundle.publicKey], threshold: 1 };
const options = { file: 'bundle.jws', signers, authSite: AUTH_SITE };
const content = bundleContent(keys);
const document = signDocument(DOCUMENTS.bundle.type, Buffer.from(JSON.stringify(content)), [keys.bundle]);

async function loadPayload(payload: Buffer): Promise<void> {
  const opened = openBundle(signDocument(DOCUMENTS.bundle.type, payload, [keys.bundle]), options);
  await compileBundle(opened.content, { file: 'bundle.jws', head: opened.position.head });
}

describe('bundle.jws', () => {
  it('may be any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(() => openBundle(Buffer.from(bytes), options)).toThrow(BundleError);
        expect(() => openFreshness(Buffer.from(bytes), options)).toThrow(BundleError);
      }),
    );
  });

  it.each([
    ['nested objects', '{"a":'.repeat(20_000)],
    ['many members', `{${Array.from({ length: 20_000 }, (_, i) => `"${i}":0`).join(',')}}`],
    ['a payload that begins and never ends', `{"payload":"${'A'.repeat(200_000)}`],
    ['a payload in the wrong place', `{"signatures":[{"payload":"AAAA"}],"payload":"BBBB"}`],
  ])('is not parsed beyond a small envelope: %s', async (_name, text) => {
    const error = await rejection(async () => openBundle(Buffer.from(text), options));
    expect(error).toMatchObject({ code: 'document_malformed' });
  });

  it('may be any JSON', () => {
    const value = fc.jsonValue();
    fc.assert(
      fc.property(fc.oneof(value, fc.record({ payload: value, signatures: fc.array(value) })), (json) => {
        expect(() => openBundle(Buffer.from(JSON.stringify(json)), options)).toThrow(BundleError);
      }),
    );
  });

  it('may be a sound one with some bytes changed, and holds no more', () => {
    const changes = fc.array(fc.tuple(fc.nat(document.length - 2), fc.integer({ min: 1, max: 255 })), {
      minLength: 1,
      maxLength: 3,
    });
    fc.assert(
      fc.property(changes, (places) => {
        const bytes = Buffer.from(document);
        for (const [at, change] of places) bytes[at] = (bytes[at] ?? 0) ^ change;
        fc.pre(!bytes.equals(document));
        expect(() => openBundle(bytes, options)).toThrow(BundleError);
      }),
      { numRuns: 300 },
    );
  });

  it('may be nested without end', () => {
    for (const text of [
      '['.repeat(100_000),
      '{"a":'.repeat(100_000),
      `${'['.repeat(1e5)}${']'.repeat(1e5)}`,
    ]) {
      expect(() => openBundle(Buffer.from(text), options)).toThrow(BundleError);
    }
  });
});

describe('a signed payload', () => {
  it('may be any bytes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 100 }), async (bytes) => {
        expect(await rejection(() => loadPayload(Buffer.from(bytes)))).not.toBe('no error');
      }),
    );
  });

  it('may have anything in any place', async () => {
    const pointers = pointersOf(content, '');
    const anything = fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.string({ unit: 'binary' }),
      fc.constant('/{x*}/{'),
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...pointers), anything, async (at, value) => {
        // Ends well or with a BundleError: `rejection` lets nothing else through.
        await rejection(() => loadPayload(Buffer.from(JSON.stringify(replaced(content, at, value)))));
      }),
      { numRuns: 300 },
    );
  });
});

describe('bundle.yaml', () => {
  it('may be any text', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.string(), fc.string({ unit: 'binary' })), async (text) => {
        await rejection(() => readBundleYaml(text, 'bundle.yaml'));
      }),
    );
  });

  it('may be made of YAML’s own signs', async () => {
    const sign = fc.constantFrom(...'abc:-?{}[],&*!|>%@`"\'#\n \t~.<=1'.split(''));
    await fc.assert(
      fc.asyncProperty(fc.array(sign, { maxLength: 40 }), async (signs) => {
        await rejection(() => readBundleYaml(signs.join(''), 'bundle.yaml'));
      }),
      { numRuns: 1000 },
    );
  });
});

function pointersOf(value: unknown, at: string): readonly string[] {
  if (typeof value !== 'object' || value === null) return [at];
  const inside = Object.entries(value).flatMap(([name, member]) => pointersOf(member, `${at}/${name}`));
  return at === '' ? inside : [at, ...inside];
}

function replaced(document: unknown, at: string, value: unknown): unknown {
  const [step, ...rest] = at.split('/').slice(1);
  if (step === undefined) return value;
  if (typeof document !== 'object' || document === null) return document;
  const inner = (member: unknown) => replaced(member, rest.map((name) => `/${name}`).join(''), value);
  if (Array.isArray(document)) {
    return document.map((member: unknown, index) => (String(index) === step ? inner(member) : member));
  }
  return Object.fromEntries(
    Object.entries(document).map(([name, member]) => [name, name === step ? inner(member) : member]),
  );
}
