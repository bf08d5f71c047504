/** Who must have signed what a verifier takes: thresholds, keys that come and go, and what was kept under keys that went. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import {
  signDelta,
  signFreshness,
  signWholeBundle,
} from '../../../src/bundle/authoring/publishing-documents.ts';
import type { ChainPosition } from '../../../src/bundle/format/chain.ts';
import { DOCUMENTS, type Signers, signDocument } from '../../../src/bundle/format/documents.ts';
import type { BundleContent } from '../../../src/bundle/format/schema.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import type { SigningKey } from '../../../src/protocol/signing.ts';
import { newDirectory } from '../../support/bundle/bundle-directory.ts';
import { deltaAfter } from '../../support/bundle/deltas.ts';
import {
  AUTH_SITE,
  bundleContent,
  NOW_SECONDS,
  newSigningKey,
  newTestKeys,
} from '../../support/fixtures/bundle-content.ts';
import { newTestLoader } from './loader-fixture.ts';

const keys = newTestKeys();
const [first, second, third] = [newSigningKey(), newSigningKey('ES256'), newSigningKey()];
const by = (signingKeys: readonly SigningKey[], threshold = 1): Signers => ({
  keys: signingKeys.map(({ publicKey }) => publicKey),
  threshold,
});
const revision = (number: number): BundleContent => ({ ...bundleContent(keys), revision: number });

interface Pinned {
  readonly bundle: Signers;
  readonly freshness?: Signers;
}

/** A verifier's start: over what its state directory kept, then its own directory. */
async function start(
  places: { readonly directory: string | undefined; readonly state: string },
  pinned: Pinned,
) {
  const started = newTestLoader({
    signer: first,
    directory: places.directory,
    stateDirectory: places.state,
    persists: true,
    bundleSigners: pinned.bundle,
    freshnessSigners: pinned.freshness ?? pinned.bundle,
    nowSeconds: () => NOW_SECONDS + 100,
    pollIntervalMs: 3_600_000,
  });
  await started.loader.start();
  return started;
}

async function put(
  directory: string,
  content: BundleContent,
  signers: readonly SigningKey[],
): Promise<ChainPosition> {
  const { document, position } = signWholeBundle(content, signers);
  await writeFile(join(directory, 'bundle.jws'), document);
  return position;
}

async function putStatement(
  directory: string,
  position: ChainPosition,
  signers: readonly SigningKey[],
): Promise<void> {
  const { revision: number, head } = position;
  const as_of = formatTime(NOW_SECONDS + 90);
  const statement = signFreshness({ auth_site: AUTH_SITE, revision: number, head, as_of }, signers);
  await writeFile(join(directory, 'freshness.jws'), statement);
}

const places = async () => ({ directory: await newDirectory(), state: await newDirectory() });

describe('a threshold of two', () => {
  it.each<[what: string, signers: readonly SigningKey[], taken: boolean]>([
    ['both', [first, second], true],
    ['one', [first], false],
    ['one and a stranger', [first, third], false],
    ['strangers', [third, keys.bundle], false],
  ])('is met by %s or not', async (_what, signers, taken) => {
    const where = await places();
    await put(where.directory, revision(1), signers);
    const { loader, refused } = await start(where, { bundle: by([first, second], 2) });
    expect([loader.snapshot?.revision, refused]).toEqual(
      taken ? [1, []] : [undefined, ['directory signatures_insufficient']],
    );
  });

  it('is not met by one key that signed twice, nor by one that is pinned twice', async () => {
    const where = await places();
    const payload = Buffer.from(JSON.stringify(revision(1)));
    await writeFile(
      join(where.directory, 'bundle.jws'),
      signDocument(DOCUMENTS.bundle.type, payload, [first, first]),
    );
    for (const pinned of [
      [first, second],
      [first, first],
    ]) {
      const { loader, refused, stop } = await start(where, { bundle: by(pinned, 2) });
      expect([loader.snapshot, refused]).toEqual([undefined, ['directory signatures_insufficient']]);
      await stop();
    }
  });

  it('holds for deltas too: what one key signed carries nothing on', async () => {
    const where = await places();
    const position = await put(where.directory, revision(1), [first, second]);
    const { loader, refused } = await start(where, { bundle: by([first, second], 2) });
    const putDelta = async (signers: readonly SigningKey[]) =>
      writeFile(join(where.directory, 'delta-2.jws'), signDelta(deltaAfter(position), signers).document);
    await putDelta([second]);
    await loader.reload();
    expect([loader.snapshot?.revision, refused]).toEqual([1, ['directory signatures_insufficient']]);
    await putDelta([first, second]);
    await loader.reload();
    expect(loader.snapshot?.revision).toBe(2);
  });

  it('for statements is their own: one signature keeps nothing fresh, two do', async () => {
    const where = await places();
    const position = await put(where.directory, revision(1), [first]);
    const pinned = { bundle: by([first]), freshness: by([first, second], 2) };
    await putStatement(where.directory, position, [first]);
    const { loader, refused } = await start(where, pinned);
    expect([loader.snapshot?.freshAsOfSeconds, refused]).toEqual([
      NOW_SECONDS,
      ['freshness signatures_insufficient'],
    ]);
    await putStatement(where.directory, position, [first, second]);
    await loader.reload();
    expect([loader.snapshot?.freshAsOfSeconds, loader.status().freshnessProblem]).toEqual([
      NOW_SECONDS + 90,
      undefined,
    ]);
  });
});

describe('a key that is replaced', () => {
  it('hands over without a gap: old, both pinned, both signing, new, old unpinned', async () => {
    const where = await places();
    const stages: readonly (readonly [pinned: Signers, signers: readonly SigningKey[]])[] = [
      [by([first]), [first]],
      [by([first, second]), [first]],
      [by([first, second]), [first, second]],
      [by([first, second]), [second]],
      [by([second]), [second]],
    ];
    for (const [index, [bundle, signers]] of stages.entries()) {
      const position = await put(where.directory, revision(index + 1), signers);
      await putStatement(where.directory, position, signers);
      const { loader, refused, stop } = await start(where, { bundle });
      expect([loader.position, loader.snapshot?.freshAsOfSeconds, refused]).toEqual([
        position,
        NOW_SECONDS + 90,
        [],
      ]);
      await stop();
    }
  });

  it('takes with it what was kept under it: that is verified again at every start', async () => {
    const where = await places();
    const position = await put(where.directory, revision(1), [first]);
    await putStatement(where.directory, position, [first]);
    await (await start(where, { bundle: by([first]) })).stop();
    const persisted = { ...where, directory: undefined };
    const again = await start(persisted, { bundle: by([first]) });
    expect(again.loader.position).toEqual(position);
    await again.stop();
    const without = await start(persisted, { bundle: by([second]) });
    expect(without.refused).toContain('state signatures_insufficient');
    expect(without.loader.snapshot).toBeUndefined();
    await without.stop();
    // The mark stays: under the new key, too, nothing lower is taken.
    await put(where.directory, { ...revision(1), skew_seconds: 7 }, [second]);
    const fork = await start(where, { bundle: by([second]) });
    expect([fork.loader.snapshot, fork.refused.at(-1)]).toEqual([undefined, 'directory revision_conflict']);
    await fork.stop();
    await put(where.directory, revision(2), [second]);
    expect((await start(where, { bundle: by([second]) })).loader.snapshot?.revision).toBe(2);
  });

  it('that is raised to a threshold takes what one key signed no longer, kept or not', async () => {
    const where = await places();
    await put(where.directory, revision(1), [first]);
    await (await start(where, { bundle: by([first]) })).stop();
    const { loader, refused } = await start(where, { bundle: by([first, second], 2) });
    expect([loader.snapshot, refused]).toEqual([
      undefined,
      ['state signatures_insufficient', 'directory signatures_insufficient'],
    ]);
  });
});
