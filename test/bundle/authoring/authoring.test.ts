/** Tests authoring, from YAML to a directory that a verifier loads. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { stringify } from 'yaml';
import { freshen, signBundle, signContent } from '../../../src/bundle/authoring/authoring.ts';
import { inspectBundle } from '../../../src/bundle/authoring/inspect-directory.ts';
import { readBundleYaml } from '../../../src/bundle/authoring/yaml-source.ts';
import type { SigningKey } from '../../../src/protocol/signing.ts';
import { BundleLoader } from '../../../src/verifier/loading/bundle-loader.ts';
import { MemoryMark } from '../../../src/verifier/loading/state/high-water-mark.ts';
import { newDirectory } from '../../support/bundle/bundle-directory.ts';
import { codeAndPath, rejection } from '../../support/bundle/rejection.ts';
import {
  AUTH_SITE,
  bundleContent,
  edited,
  NOW_SECONDS,
  newSigningKey,
  newTestKeys,
} from '../../support/fixtures/bundle-content.ts';

const keys = newTestKeys();
const stranger = newSigningKey();
const FILE = 'bundle.yaml';
/** Members that people leave out. */
const written = edited(bundleContent(keys), { at: '/revision' }, { at: '/issued_at' }, { at: '/expires_at' });

function sign(
  outDirectory: string,
  content: unknown = written,
  more: { previousDirectory?: string; signingKeys?: readonly SigningKey[]; nowSeconds?: number } = {},
) {
  return signBundle({
    yamlText: typeof content === 'string' ? content : stringify(content),
    fileName: FILE,
    signingKeys: [keys.bundle],
    outDirectory,
    nowSeconds: NOW_SECONDS,
    ...more,
  });
}

async function load(directory: string, by = keys.bundle) {
  const signers = { keys: [by.publicKey], threshold: 1 };
  const loader = new BundleLoader({
    authSite: AUTH_SITE,
    directory,
    bundleSigners: signers,
    freshnessSigners: signers,
    mark: new MemoryMark(),
    nowSeconds: () => NOW_SECONDS,
  });
  await loader.reload();
  const { problem, freshnessProblem, freshnessIgnored } = loader.status();
  expect({ problem, freshnessProblem, freshnessIgnored }).toEqual({
    problem: undefined,
    freshnessProblem: undefined,
    freshnessIgnored: undefined,
  });
  return loader.snapshot;
}

describe('signing', () => {
  it('makes a directory that a verifier loads, with what the author left out', async () => {
    const directory = join(await newDirectory(), 'made', 'here');
    const position = await sign(directory);
    expect((await readdir(directory)).sort()).toEqual(['bundle.jws', 'freshness.jws']);
    const snapshot = await load(directory);
    expect(snapshot).toMatchObject({
      ...position,
      revision: 1,
      issuedAtSeconds: NOW_SECONDS,
      expiresAtSeconds: NOW_SECONDS + 30 * 86_400,
      freshAsOfSeconds: NOW_SECONDS,
    });
  });

  it('continues the bundle before', async () => {
    const directory = await newDirectory();
    const first = await sign(directory);
    const second = await sign(directory, written, {
      previousDirectory: directory,
      nowSeconds: NOW_SECONDS + 1,
    });
    expect(second.revision).toBe(2);
    const summary = await inspectBundle({ directory, nowSeconds: NOW_SECONDS + 4 });
    expect(summary).toMatchObject({ revision: 2, previousHead: first.head, head: second.head });
    const third = await sign(directory, edited(written, { at: '/revision', put: 40 }), {
      previousDirectory: directory,
    });
    expect(third.revision).toBe(40);
  });

  it('takes the revision and the end that the file says, and neither its beginning nor its predecessor', async () => {
    const directory = await newDirectory();
    const content = edited(
      written,
      { at: '/revision', put: 7 },
      { at: '/issued_at', put: '2020-01-01T00:00:00Z' },
      { at: '/expires_at', put: '2026-11-22T00:00:00Z' },
      { at: '/previous_head', put: 'A'.repeat(43) },
    );
    await sign(directory, content);
    expect(await inspectBundle({ directory, nowSeconds: NOW_SECONDS })).toMatchObject({
      revision: 7,
      previousHead: undefined,
      issuedAt: '2026-11-21T04:00:00Z',
      expiresAt: '2026-11-22T00:00:00Z',
    });
  });

  it('may be done by several', async () => {
    const directory = await newDirectory();
    const second = newSigningKey('ES256');
    await sign(directory, written, { signingKeys: [keys.bundle, second] });
    expect((await load(directory, second))?.revision).toBe(1);
  });

  it('moves many derived keys to shards', async () => {
    const directory = await newDirectory();
    const [one] = bundleContent(keys).derived_keys ?? [];
    const many = Array.from({ length: 10_001 }, (_, index) => ({ ...one, key_id: `dk_${index}` }));
    // As JSON, which is YAML, and reads faster.
    await sign(directory, JSON.stringify(edited(written, { at: '/derived_keys', put: many })));
    expect((await readdir(directory)).sort()).toEqual(['bundle.jws', 'freshness.jws', 'keys-0001.jsonl']);
    expect((await load(directory))?.keys.size).toBe(10_002);
    expect((await inspectBundle({ directory, nowSeconds: NOW_SECONDS })).counts.derivedKeys).toBe(10_001);
  });

  it('writes nothing that would match nothing', async () => {
    const directory = await newDirectory();
    const path = '/route_sources/0/allowed_sources/1/subject_prefix';
    const bad = edited(written, { at: path, put: 'spiffe://shop.example/ns/prod/../' });
    expect(await rejection(() => sign(directory, bad))).toMatchObject({
      code: 'subject_not_canonical',
      path,
    });
    expect(await readdir(directory)).toEqual([]);
  });

  it('writes nothing that a verifier would refuse', async () => {
    const directory = await newDirectory();
    const bad = edited(written, { at: '/routes/0/path_template', put: '/a/{b' });
    expect(await rejection(() => sign(directory, bad))).toEqual({
      code: 'template_invalid',
      file: FILE,
      path: '/routes/0/path_template',
    });
    expect(await readdir(directory)).toEqual([]);
  });

  const refusals: readonly {
    name: string;
    content?: unknown;
    more?: Parameters<typeof sign>[2];
    error: string;
  }[] = [
    { name: 'no key', more: { signingKeys: [] }, error: 'signing_key_missing ' },
    {
      name: 'expired',
      content: edited(written, { at: '/expires_at', put: '2026-11-21T04:00:00Z' }),
      error: 'time_order /expires_at',
    },
    { name: 'no format', content: edited(written, { at: '/format' }), error: 'missing_member /format' },
    {
      name: 'shards by hand',
      content: edited(written, { at: '/key_shards', put: [] }),
      error: 'value_invalid /key_shards',
    },
    {
      name: 'unknown member',
      content: edited(written, { at: '/__proto__', put: 1 }),
      error: 'unknown_member /__proto__',
    },
  ];
  it.each(refusals)('refuses: $name', async ({ content, more, error }) => {
    const directory = await newDirectory();
    expect(await codeAndPath(() => sign(directory, content, more))).toBe(error);
    expect(await readdir(directory)).toEqual([]);
  });

  it('refuses a successor that is none', async () => {
    const directory = await newDirectory();
    await sign(directory, edited(written, { at: '/revision', put: 5 }));
    const before = await readFile(join(directory, 'bundle.jws'));
    const previousDirectory = directory;
    const tries: readonly [string, unknown, Parameters<typeof sign>[2]][] = [
      ['previous_bundle ', written, {}],
      ['revision_lower /revision', edited(written, { at: '/revision', put: 5 }), { previousDirectory }],
      [
        'auth_site_mismatch /auth_site',
        edited(written, { at: '/auth_site', put: 'b' }),
        { previousDirectory },
      ],
      ['signatures_insufficient /signatures', written, { previousDirectory, signingKeys: [stranger] }],
      ['file_missing ', written, { previousDirectory: join(directory, 'nowhere') }],
    ];
    for (const [error, content, more] of tries) {
      expect(await codeAndPath(() => sign(directory, content, more))).toBe(error);
    }
    expect(await readFile(join(directory, 'bundle.jws'))).toEqual(before);
  });

  it('works from content that no person wrote', async () => {
    const draft = { content: { ...bundleContent(keys) }, shards: [] };
    const { position, document } = await signContent(draft, { file: 'content', signingKeys: [keys.bundle] });
    expect(position.revision).toBe(1);
    expect(document.length).toBeGreaterThan(1000);
  });
});

describe('freshening', () => {
  it('says that the bundle is the latest as of now', async () => {
    const directory = await newDirectory();
    const position = await sign(directory);
    const freshened = await freshen({ directory, signingKeys: [keys.bundle], nowSeconds: NOW_SECONDS + 3 });
    expect(freshened).toEqual({ ...position, asOfSeconds: NOW_SECONDS + 3 });
    expect((await load(directory))?.freshAsOfSeconds).toBe(NOW_SECONDS + 3);
  });

  it('is not done for a bundle that somebody else signed, unless they are trusted', async () => {
    const directory = await newDirectory();
    await sign(directory);
    const options = { directory, signingKeys: [stranger], nowSeconds: NOW_SECONDS };
    expect(await codeAndPath(() => freshen(options))).toBe('signatures_insufficient /signatures');
    const trusted = { keys: [keys.bundle.publicKey], threshold: 1 };
    expect(await freshen({ ...options, trusted })).toMatchObject({ revision: 1 });
    expect(await codeAndPath(() => freshen({ ...options, signingKeys: [], trusted }))).toBe(
      'signing_key_missing ',
    );
  });

  it('leaves no half-written files behind', async () => {
    const directory = await newDirectory();
    await sign(directory);
    await freshen({ directory, signingKeys: [keys.bundle], nowSeconds: NOW_SECONDS });
    expect((await readdir(directory)).sort()).toEqual(['bundle.jws', 'freshness.jws']);
  });
});

describe('YAML', () => {
  it.each([
    ['duplicate keys', 'a: 1\na: 2\n'],
    ['alias', 'a: &x [1]\nb: *x\n'],
    ['merge', 'a: &x {c: 1}\nb:\n  <<: *x\n'],
    ['local tag', 'a: !secret x\n'],
    ['core tag', 'a: !!str 1\n'],
    ['key that is a number', 'a:\n  1: x\n'],
    ['key that is null', 'a:\n  ~: x\n'],
    ['key that is a list', 'a:\n  ? [1]\n  : x\n'],
    ['two documents', 'a: 1\n---\nb: 2\n'],
    ['not closed', 'a: [1, 2\n'],
    ['a list', '- 1\n'],
    ['nothing', ''],
    ['bad indentation', 'a:\n  b: 1\n c: 2\n'],
    ['tabs', 'a:\n\tb: 1\n'],
  ])('refused: %s', async (_name, text) => {
    expect(await codeAndPath(() => readBundleYaml(text, FILE))).toBe('yaml_invalid ');
  });

  it('keeps what looks like a time, a truth or an octal number as YAML 1.2 reads it', () => {
    expect(readBundleYaml('a: 2026-11-21T04:00:00Z\nb: yes\nc: 010\nd: no\n', FILE)).toEqual({
      a: '2026-11-21T04:00:00Z',
      b: 'yes',
      c: 10,
      d: 'no',
    });
  });

  it('names the line, and quotes nothing else', async () => {
    const caught = await Promise.resolve()
      .then(() => readBundleYaml('secret: hush\nother: !x y\n', FILE))
      .catch(String);
    expect(caught).toContain('line 2');
    expect(caught).not.toContain('hush');
  });
});

describe('inspecting', () => {
  it('says who signed, and whether it holds only for keys that are given', async () => {
    const directory = await newDirectory();
    await sign(directory, written, { signingKeys: [keys.bundle, stranger] });
    const summary = await inspectBundle({
      directory,
      nowSeconds: NOW_SECONDS + 31 * 86_400,
      signers: { keys: [keys.bundle.publicKey], threshold: 1 },
    });
    expect(summary).toMatchObject({
      authSite: AUTH_SITE,
      isExpired: true,
      signers: [
        { keyId: keys.bundle.publicKey.thumbprint, algorithm: 'Ed25519', verdict: 'valid' },
        { keyId: stranger.publicKey.thumbprint, algorithm: 'Ed25519', verdict: 'unknown' },
      ],
      counts: { routes: 2, issuers: 1, oauthIssuers: 0, clients: 1, derivedKeys: 1, revokedKeys: 0 },
      freshness: { revision: 1, ageSeconds: 31 * 86_400, fitsBundle: true },
      routes: [{ routeId: 'orders-read', method: 'GET', pathTemplate: '/v1/orders/{order_id}' }, {}],
    });
  });

  it('says so when a signature does not hold', async () => {
    const directory = await newDirectory();
    await sign(directory);
    const text = await readFile(join(directory, 'bundle.jws'), 'utf8');
    const tampered = text.replace(
      /"signature":"(.)/,
      (_all, first) => `"signature":"${first === 'A' ? 'B' : 'A'}`,
    );
    await writeFile(join(directory, 'bundle.jws'), tampered);
    const summary = await inspectBundle({
      directory,
      nowSeconds: NOW_SECONDS,
      signers: { keys: [keys.bundle.publicKey], threshold: 1 },
    });
    expect(summary.signers[0]?.verdict).toBe('invalid');
    expect(summary.signatureProblem?.code).toBe('signature_invalid');
  });
});
