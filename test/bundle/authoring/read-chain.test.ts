/**
 * Tests how commands read a directory with deltas and links, and a state directory: they use the end of the chain, not its
 * start.
 */
import { mkdir, readFile, rename, symlink, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { stringify } from 'yaml';
import { freshen, signBundle } from '../../../src/bundle/authoring/authoring.ts';
import { inspectBundle } from '../../../src/bundle/authoring/inspect-directory.ts';
import {
  linkOf,
  signDelta,
  signLink,
  signWholeBundle,
} from '../../../src/bundle/authoring/publishing-documents.ts';
import { readChainOf } from '../../../src/bundle/authoring/read-chain.ts';
import { contentOfChain } from '../../../src/bundle/authoring/site-content.ts';
import type { ChainPosition } from '../../../src/bundle/format/chain.ts';
import type { BundleContent, DeltaContent } from '../../../src/bundle/format/schema.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { BundleLoader } from '../../../src/verifier/loading/bundle-loader.ts';
import { MemoryMark } from '../../../src/verifier/loading/state/high-water-mark.ts';
import { newDirectory, putBundle } from '../../support/bundle/bundle-directory.ts';
import { clientNamed, deltaAfter, keyNamed } from '../../support/bundle/deltas.ts';
import { rejection } from '../../support/bundle/rejection.ts';
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
const { jwk } = newSigningKey('ES256').publicKey;
const content = (more: Partial<BundleContent> = {}): BundleContent => ({ ...bundleContent(keys), ...more });
const signers = { keys: [keys.bundle.publicKey], threshold: 1 };

async function putDelta(
  directory: string,
  previous: ChainPosition,
  more: Partial<DeltaContent> = {},
  signer = keys.bundle,
): Promise<ChainPosition> {
  const { document, position } = signDelta(deltaAfter(previous, more), [signer]);
  await writeFile(join(directory, `delta-${position.revision}.jws`), document);
  return position;
}

/** Revision 1, a delta, a link of revision 3, and a delta. */
async function directoryWithSteps() {
  const directory = await newDirectory();
  const first = await putBundle(directory, content(), keys.bundle);
  const second = await putDelta(directory, first, {
    clients_put: [clientNamed('shipping')],
    keys_put: [keyNamed('dk_shipping', 'shipping', jwk)],
  });
  const later = content({
    revision: 3,
    previous_head: second.head,
    issued_at: formatTime(NOW_SECONDS + 10),
    expires_at: formatTime(NOW_SECONDS + 172_800),
  });
  const linkContent = linkOf(later, signWholeBundle(later, [keys.bundle]));
  if (linkContent === undefined) throw new Error('no link');
  const link = signLink(linkContent, [keys.bundle]);
  await writeFile(join(directory, 'link-3.jws'), link.document);
  const end = await putDelta(directory, link.position, { keys_removed: ['dk_billing'] });
  return { directory, first, second, end };
}

async function verifierAt(directory: string) {
  const loader = new BundleLoader({
    authSite: AUTH_SITE,
    directory,
    bundleSigners: signers,
    freshnessSigners: signers,
    mark: new MemoryMark(),
    nowSeconds: () => NOW_SECONDS + 20,
  });
  await loader.reload();
  return loader;
}

describe('a directory with deltas and links', () => {
  it('is inspected to its end', async () => {
    const { directory, end, first } = await directoryWithSteps();
    const summary = await inspectBundle({ directory, nowSeconds: NOW_SECONDS, signers });
    expect(summary).toMatchObject({
      ...end,
      base: first,
      expiresAt: formatTime(NOW_SECONDS + 172_800),
      counts: { clients: 2, derivedKeys: 1, revokedKeys: 0 },
      chainProblem: undefined,
      signatureProblem: undefined,
    });
    expect(summary.steps.map(({ kind, revision, signers: by }) => [kind, revision, by[0]?.verdict])).toEqual([
      ['delta', 2, 'valid'],
      ['link', 3, 'valid'],
      ['delta', 4, 'valid'],
    ]);
  });

  it('is freshened at its end, so that a verifier applies the statement', async () => {
    const { directory, end } = await directoryWithSteps();
    const nowSeconds = NOW_SECONDS + 20;
    expect(await freshen({ directory, signingKeys: [keys.bundle], nowSeconds })).toMatchObject(end);
    const summary = await inspectBundle({ directory, nowSeconds });
    expect(summary.freshness).toMatchObject({ revision: 4, fitsBundle: true });
    const loader = await verifierAt(directory);
    expect(loader.snapshot).toMatchObject({ ...end, freshAsOfSeconds: nowSeconds });
  });

  it('is followed by the next whole bundle, which a verifier at its end takes', async () => {
    const { directory, end } = await directoryWithSteps();
    const loader = await verifierAt(directory);
    expect(loader.position).toEqual(end);
    const yaml = stringify(edited(content(), { at: '/revision' }, { at: '/issued_at' }));
    const position = await signBundle({
      yamlText: yaml,
      fileName: 'bundle.yaml',
      signingKeys: [keys.bundle],
      previousDirectory: directory,
      outDirectory: directory,
      nowSeconds: NOW_SECONDS + 20,
    });
    expect(position.revision).toBe(5);
    await loader.reload();
    expect(loader.position).toEqual(position);
  });

  it.each([
    ['by a stranger', stranger, {}, 'signatures_insufficient'],
    ['that continues nothing', keys.bundle, { previous_head: 'A'.repeat(43) }, 'chain_broken'],
  ] as const)('is not spoken for when a step %s is beside it', async (_name, signer, more, code) => {
    const { directory, end } = await directoryWithSteps();
    await putDelta(directory, end, more, signer);
    const failed = await rejection(() =>
      freshen({ directory, signingKeys: [keys.bundle], nowSeconds: NOW_SECONDS }),
    );
    expect(failed).toMatchObject({ code, file: 'delta-5.jws' });
    const summary = await inspectBundle({ directory, nowSeconds: NOW_SECONDS, signers });
    expect([summary.signatureProblem?.code ?? summary.chainProblem?.code]).toEqual([code]);
  });

  it('is looked at without a key as far as it hangs together', async () => {
    const { directory, end } = await directoryWithSteps();
    await putDelta(directory, end, {}, stranger);
    const summary = await inspectBundle({ directory, nowSeconds: NOW_SECONDS });
    expect([summary.revision, summary.signatureProblem, summary.steps.at(-1)?.signers[0]?.verdict]).toEqual([
      5,
      undefined,
      'unknown',
    ]);
  });

  it('comes to what a verifier comes to', async () => {
    const { directory, end } = await directoryWithSteps();
    await putDelta(directory, end, {
      clients_put: [clientNamed('shipping', { subject: 'client:other' })],
      keys_put: [keyNamed('dk_other', 'shipping', jwk, { status: 'revoked' })],
    });
    const { snapshot } = await verifierAt(directory);
    const site = await contentOfChain(await readChainOf(directory, signers));
    expect([...site.derivedKeys.keys()].sort()).toEqual(['dk_other', 'dk_shipping']);
    for (const [keyId, key] of site.derivedKeys) {
      const compiled = snapshot?.keys.get(keyId);
      if (compiled?.kind !== 'derived_key') throw new Error(`no key ${keyId}`);
      expect([compiled.status, compiled.client.subject]).toEqual([
        key.status,
        site.clients.get(key.client_id)?.subject,
      ]);
    }
    expect(snapshot?.keys.get('dk_billing')).toBeUndefined();
  });
});

describe('a state directory', () => {
  async function stateDirectory() {
    const { directory, end } = await directoryWithSteps();
    const state = await newDirectory();
    const base = join(state, 'bases', '1-0123456789abcdef');
    await mkdir(base, { recursive: true });
    const lines: string[] = [];
    for (const file of ['delta-2.jws', 'link-3.jws', 'delta-4.jws']) {
      lines.push(await readFile(join(directory, file), 'utf8'));
    }
    await rename(join(directory, 'bundle.jws'), join(base, 'bundle.jws'));
    await writeFile(join(base, 'steps.jsonl'), lines.join(''));
    await symlink('bases/1-0123456789abcdef', join(state, 'current'));
    return { state, base, end, log: join(base, 'steps.jsonl') };
  }

  it('is read through its link, with its log', async () => {
    const { end, state } = await stateDirectory();
    const summary = await inspectBundle({ directory: state, nowSeconds: NOW_SECONDS, signers });
    expect(summary).toMatchObject({ ...end, counts: { clients: 2, derivedKeys: 1 } });
  });

  it('may be in the middle of an append', async () => {
    const { log, state } = await stateDirectory();
    const text = await readFile(log, 'utf8');
    await writeFile(log, text.slice(0, -5));
    const chain = await readChainOf(state, signers);
    expect([chain.position.revision, chain.refused]).toEqual([3, undefined]);
  });

  it('with a line that is no step says so, and is read up to it', async () => {
    const { log, state } = await stateDirectory();
    const text = await readFile(log, 'utf8');
    await writeFile(log, `${text}\n`);
    const chain = await readChainOf(state, signers);
    expect([chain.position.revision, chain.refused?.file]).toEqual([4, 'steps.jsonl:4']);
  });

  it('without its log is none', async () => {
    const { log, state } = await stateDirectory();
    await unlink(log);
    expect(await rejection(() => readChainOf(state, signers))).toMatchObject({ code: 'file_missing' });
  });
});
