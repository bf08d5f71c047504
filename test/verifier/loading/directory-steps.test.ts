/** Deltas and links beside a bundle in a local directory. */
import { rm, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import {
  linkOf,
  signDelta,
  signLink,
  signWholeBundle,
} from '../../../src/bundle/authoring/publishing-documents.ts';
import type { ChainPosition } from '../../../src/bundle/format/chain.ts';
import { stepFile } from '../../../src/bundle/format/file-names.ts';
import type { BundleContent, DeltaContent } from '../../../src/bundle/format/schema.ts';
import { ActiveBundle } from '../../../src/verifier/loading/active-bundle.ts';
import { DirectorySource } from '../../../src/verifier/loading/directory-source.ts';
import { ProblemRecord } from '../../../src/verifier/loading/problem-record.ts';
import { FileMark } from '../../../src/verifier/loading/state/high-water-mark.ts';
import { freshnessDocument, newDirectory, putBundle } from '../../support/bundle/bundle-directory.ts';
import { deltaAfter, keyNamed } from '../../support/bundle/deltas.ts';
import {
  AUTH_SITE,
  bundleContent,
  NOW_SECONDS,
  newSigningKey,
  newTestKeys,
} from '../../support/fixtures/bundle-content.ts';
import { newTestLoader } from './loader-fixture.ts';

const keys = newTestKeys();
const { jwk } = newSigningKey('ES256').publicKey;
const content = (more: Partial<BundleContent> = {}): BundleContent => ({ ...bundleContent(keys), ...more });
const keyPut = (keyId: string) => ({ keys_put: [keyNamed(keyId, 'billing', jwk)] });

const newLoader = (directory: string, stateDirectory: string) =>
  newTestLoader({ signer: keys.bundle, directory, stateDirectory });

/** A directory with a bundle of revision 1, and a loader that has not looked yet. */
async function newDirectoryWithLoader() {
  const [directory, stateDirectory] = [await newDirectory(), await newDirectory()];
  const position = await putBundle(directory, content(), keys.bundle);
  return { directory, stateDirectory, position, ...newLoader(directory, stateDirectory) };
}

async function putDelta(
  directory: string,
  previous: ChainPosition,
  more: Partial<DeltaContent> = {},
  signer = keys.bundle,
): Promise<ChainPosition> {
  const delta = deltaAfter(previous, more);
  const { document, position } = signDelta(delta, [signer]);
  await writeFile(join(directory, stepFile('delta', delta.revision)), document);
  return position;
}

describe('a directory with deltas and links', () => {
  it('is loaded to its end, and updated by what is added', async () => {
    const { directory, loader, position, events } = await newDirectoryWithLoader();
    const second = await putDelta(directory, position, keyPut('dk_1'));
    const third = await putDelta(directory, second, { keys_removed: ['dk_billing'] });
    await writeFile(
      join(directory, 'freshness.jws'),
      freshnessDocument({ authSite: AUTH_SITE, ...third, asOfSeconds: NOW_SECONDS + 3 }, keys.bundle),
    );
    await loader.reload();
    expect(loader.snapshot).toMatchObject({ ...third, freshAsOfSeconds: NOW_SECONDS + 3 });
    const keysBefore = loader.snapshot?.keys;
    const fourth = await putDelta(directory, third, keyPut('dk_4'));
    await putDelta(directory, fourth, keyPut('dk_5'));
    await loader.reload();
    await loader.reload();
    expect(events).toEqual([
      ['loaded', 3, 'directory'],
      ['freshnessIgnored', 'other_revision'],
      ['advanced', 5, 'delta', 'delta'],
    ]);
    expect(loader.snapshot?.keys).toBe(keysBefore);
    expect(['dk_1', 'dk_4', 'dk_5', 'dk_billing'].map((id) => keysBefore?.get(id)?.kind)).toEqual([
      'derived_key',
      'derived_key',
      'derived_key',
      undefined,
    ]);
  });

  it('knows the whole bundle that a link announced', async () => {
    const { directory, loader, position, events } = await newDirectoryWithLoader();
    await loader.reload();
    const whole = content({ revision: 2, previous_head: position.head });
    const signed = signWholeBundle(whole, [keys.bundle]);
    const link = linkOf(whole, signed);
    if (link === undefined) throw new Error('no link');
    await writeFile(join(directory, stepFile('link', 2)), signLink(link, [keys.bundle]).document);
    await loader.reload();
    await writeFile(join(directory, 'bundle.jws'), signed.document);
    await unlink(join(directory, stepFile('link', 2)));
    await loader.reload();
    expect(events).toEqual([
      ['loaded', 1, 'directory'],
      ['advanced', 2, 'link'],
    ]);
    expect(loader.status().problem).toBeUndefined();
  });

  it('passes over steps that a newer bundle left behind', async () => {
    const { directory, loader, position, events } = await newDirectoryWithLoader();
    await putDelta(directory, position, keyPut('dk_1'));
    await putDelta(directory, { ...position, revision: 6 }, keyPut('dk_7'));
    const newer = await putBundle(directory, content({ revision: 7 }), keys.bundle);
    await putDelta(directory, newer, keyPut('dk_8'));
    await loader.reload();
    expect(events).toEqual([['loaded', 8, 'directory']]);
    expect(loader.snapshot?.keys.get('dk_1')).toBeUndefined();
  });

  it.each<[what: string, code: string, put: (directory: string, from: ChainPosition) => Promise<unknown>]>([
    ['by a stranger', 'signatures_insufficient', (d, from) => putDelta(d, from, {}, newSigningKey())],
    [
      'after another head',
      'chain_broken',
      (d, { revision }) => putDelta(d, { revision, head: 'A'.repeat(43) }),
    ],
    ['that is unsound', 'client_in_use', (d, from) => putDelta(d, from, { clients_removed: ['billing'] })],
    ['that is no document', 'document_malformed', (d) => writeFile(join(d, 'delta-3.jws'), 'x')],
  ])(
    'stops before a delta %s (%s), says so once, and goes on when it is replaced',
    async (_what, code, put) => {
      for (const isLoadedBefore of [true, false]) {
        const { directory, loader, position, events } = await newDirectoryWithLoader();
        if (isLoadedBefore) await loader.reload();
        const second = await putDelta(directory, position, keyPut('dk_1'));
        await put(directory, second);
        await loader.reload();
        await loader.reload();
        expect(events.filter(([event]) => event === 'refused')).toEqual([['refused', code, 'directory']]);
        expect(loader.snapshot).toMatchObject(second);
        expect(loader.status().problem?.error).toMatchObject({ code, file: 'delta-3.jws' });
        const third = await putDelta(directory, second, keyPut('dk_3'));
        await loader.reload();
        expect(loader.snapshot).toMatchObject(third);
        expect(loader.status().problem).toBeUndefined();
      }
    },
  );
});

describe('the high-water mark', () => {
  it('is that of the chain’s end: without its steps the bundle is refused', async () => {
    const { directory, loader, position, stateDirectory } = await newDirectoryWithLoader();
    const second = await putDelta(directory, position, keyPut('dk_1'));
    await loader.reload();
    await rm(join(directory, 'delta-2.jws'));
    const again = newLoader(directory, stateDirectory);
    await again.loader.reload();
    expect(again.events).toEqual([['refused', 'revision_lower', 'directory']]);
    expect(again.loader.snapshot).toBeUndefined();
    // With another delta in its place, the chain forks.
    const fork = await putDelta(directory, position, keyPut('dk_other'));
    await again.loader.reload();
    expect(again.events.at(-1)).toEqual(['refused', 'revision_conflict', 'directory']);
    // A fork is also one that leads past the mark.
    await putDelta(directory, fork, keyPut('dk_3'));
    await again.loader.reload();
    expect(again.loader.snapshot).toBeUndefined();
    await rm(join(directory, 'delta-3.jws'));
    await putDelta(directory, position, keyPut('dk_1'));
    await again.loader.reload();
    expect(again.loader.snapshot).toMatchObject(second);
  });
});

describe('a directory that changes while it is read', () => {
  /** A source whose steps are read, and then something happens before it looks at the files again. */
  async function changingDirectory() {
    const [directory, stateDirectory] = [await newDirectory(), await newDirectory()];
    const position = await putBundle(directory, content(), keys.bundle);
    let meanwhile = async (): Promise<void> => undefined;
    /** Numbers of steps of each attempt to apply some. */
    const attempts: number[] = [];
    class WatchedBundle extends ActiveBundle {
      override async advance(...steps: Parameters<ActiveBundle['advance']>) {
        attempts.push(steps[0].length);
        const refused = await super.advance(...steps);
        await meanwhile();
        meanwhile = async () => undefined;
        return refused;
      }
      override async load(...found: Parameters<ActiveBundle['load']>) {
        const outcome = await super.load(...found);
        await meanwhile();
        meanwhile = async () => undefined;
        return outcome;
      }
    }
    const active = new WatchedBundle({
      authSite: AUTH_SITE,
      bundleSigners: { keys: [keys.bundle.publicKey], threshold: 1 },
      mark: new FileMark({ stateDirectory, authSite: AUTH_SITE }),
      nowSeconds: () => NOW_SECONDS,
      onChange: () => undefined,
    });
    const source = new DirectorySource({
      directory,
      active,
      problem: new ProblemRecord(
        () => NOW_SECONDS,
        () => undefined,
      ),
      // A file that is loaded has changed.
      pollIntervalMs: 3_600_000,
    });
    return {
      directory,
      position,
      attempts,
      look: async () => {
        await source.look();
        return active.snapshot?.revision;
      },
      once: (happens: () => Promise<unknown>) => {
        meanwhile = async () => void (await happens());
      },
    };
  }

  it('takes a delta that came while the bundle was loaded', async () => {
    const { directory, look, once, position } = await changingDirectory();
    once(() => putDelta(directory, position, keyPut('dk_1')));
    expect([await look(), await look()]).toEqual([1, 2]);
  });

  it('takes a delta that came while the one before it was applied', async () => {
    const { directory, look, once, position } = await changingDirectory();
    await look();
    const second = await putDelta(directory, position, keyPut('dk_1'));
    once(() => putDelta(directory, second, keyPut('dk_2')));
    expect([await look(), await look()]).toEqual([2, 3]);
  });

  it('does not verify a rejected delta again before a file changes, and not those that it has applied', async () => {
    const { attempts, directory, look, position } = await changingDirectory();
    await look();
    const second = await putDelta(directory, position, keyPut('dk_1'));
    await putDelta(directory, second, {}, newSigningKey());
    expect([await look(), await look(), await look()]).toEqual([2, 2, 2]);
    expect(attempts).toEqual([2]);
    const third = await putDelta(directory, second, keyPut('dk_2'));
    await putDelta(directory, third, keyPut('dk_3'));
    expect([await look(), await look()]).toEqual([4, 4]);
    expect(attempts).toEqual([2, 2]);
  });

  it('applies many steps in parts, of which only one is in memory', async () => {
    const { attempts, directory, look, position } = await changingDirectory();
    await look();
    let end = position;
    for (let count = 0; count < 65; count++) end = await putDelta(directory, end, keyPut(`dk_${count}`));
    expect(await look()).toBe(66);
    expect(attempts).toEqual([64, 1]);
    // Nothing after a rejected one is tried.
    const { revision } = await putDelta(directory, end, {}, newSigningKey());
    for (let count = 0; count < 64; count++) {
      await putDelta(directory, { ...end, revision: revision + count }, keyPut(`more_${count}`));
    }
    expect(await look()).toBe(66);
    expect(attempts).toEqual([64, 1, 64]);
  });

  it('takes a delta that was still being written when it was read', async () => {
    const { directory, look, once, position } = await changingDirectory();
    await look();
    await writeFile(join(directory, stepFile('delta', 2)), '{"payload":"');
    once(() => putDelta(directory, position, keyPut('dk_1')));
    expect([await look(), await look()]).toEqual([1, 2]);
  });
});
