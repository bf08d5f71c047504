/** What is left in the state directory when a verifier ends in the middle of something. */
import {
  cp,
  mkdir,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  truncate,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { signDelta, signWholeBundle } from '../../../src/bundle/authoring/publishing-documents.ts';
import { makeShards } from '../../../src/bundle/compile/key-shards.ts';
import type { ChainPosition } from '../../../src/bundle/format/chain.ts';
import type { StepDocument } from '../../../src/bundle/format/open-document.ts';
import type { BundleContent } from '../../../src/bundle/format/schema.ts';
import {
  FileMark,
  type HighWaterMark,
  MARK_FILE,
  MemoryMark,
} from '../../../src/verifier/loading/state/high-water-mark.ts';
import { PersistedBundle } from '../../../src/verifier/loading/state/persisted-bundle.ts';
import { newDirectory } from '../../support/bundle/bundle-directory.ts';
import { deltaAfter } from '../../support/bundle/deltas.ts';
import { AUTH_SITE, bundleContent, newSigningKey } from '../../support/fixtures/bundle-content.ts';
import { closeAfterTest, newTestLoader } from './loader-fixture.ts';

// P-256 keys cost less to load, and these tests load often.
const keys = {
  bundle: newSigningKey(),
  broker: newSigningKey('ES256'),
  derived: newSigningKey('ES256'),
};
const content = (more: Partial<BundleContent> = {}): BundleContent => ({ ...bundleContent(keys), ...more });

/** A start, and the bundle that the state directory leads to. */
async function start(
  stateDirectory: string,
  mark: HighWaterMark = new FileMark({ stateDirectory, authSite: AUTH_SITE }),
) {
  const persisted = new PersistedBundle(stateDirectory);
  const { loader, refused, stop } = newTestLoader({ signer: keys.bundle, mark, persisted });
  const end = () => stop().then(() => persisted.close());
  closeAfterTest(end);
  await loader.start();
  return { loader, persisted, refused, stop: end };
}

type Started = Awaited<ReturnType<typeof start>>;

/** A whole bundle as fetched from Control. */
async function fetched(
  { loader, persisted }: Started,
  whole: BundleContent,
  steps: readonly StepDocument[] = [],
) {
  const incoming = await persisted.newBase();
  const { document, position } = signWholeBundle(whole, [keys.bundle]);
  await writeFile(join(incoming.path, 'bundle.jws'), document);
  const refused = await loader.replace(incoming, steps);
  await persisted.discard(incoming);
  return { position, refused };
}

function delta(previous: ChainPosition, more = {}): StepDocument & { position: ChainPosition } {
  const { document, position } = signDelta(deltaAfter(previous, more), [keys.bundle]);
  return { kind: 'delta', file: `delta-${position.revision}.jws`, bytes: document, position };
}

/** A state directory with revision 1 and three deltas, which no verifier uses. */
async function stateWithDeltas() {
  const stateDirectory = await newDirectory();
  const started = await start(stateDirectory);
  const { position } = await fetched(started, content());
  const second = delta(position);
  const third = delta(second.position);
  const fourth = delta(third.position);
  expect(await started.loader.advance([second])).toBeUndefined();
  expect(await started.loader.advance([third, fourth])).toBeUndefined();
  await started.stop();
  const base = join(stateDirectory, await readlink(join(stateDirectory, 'current')));
  return { stateDirectory, base, log: join(base, 'steps.jsonl'), end: fourth.position };
}

describe('the log of steps', () => {
  it('is loaded whole, and may be cut at any byte: only whole lines count', async () => {
    const { end, log, stateDirectory } = await stateWithDeltas();
    const whole = await readFile(log);
    expect((await start(stateDirectory)).loader.position).toEqual(end);
    const lastLine = whole.lastIndexOf('\n', whole.length - 2) + 1;
    for (let length = 0; length <= whole.length; length += length < lastLine - 2 ? 11 : 1) {
      await writeFile(log, whole.subarray(0, length));
      // The mark rises after the log is on the disk: it is never that of what was cut off.
      const { loader, refused, stop } = await start(stateDirectory, new MemoryMark());
      const lines = whole.subarray(0, length).filter((byte) => byte === 0x0a).length;
      expect([loader.position?.revision, refused]).toEqual([1 + lines, []]);
      await stop();
      const persisted = length === 0 ? 0 : whole.lastIndexOf('\n', length - 1) + 1;
      expect((await readFile(log)).equals(whole.subarray(0, persisted))).toBe(true);
    }
  });

  it('goes on after a torn line', async () => {
    const { end, log, stateDirectory } = await stateWithDeltas();
    await unlink(join(stateDirectory, MARK_FILE));
    const { size } = await import('node:fs').then(({ statSync }) => statSync(log));
    await truncate(log, size - 10);
    const first = await start(stateDirectory);
    const third = first.loader.position;
    if (third === undefined) throw new Error('nothing is loaded');
    const other = delta(third, { issued_at: '2026-11-21T04:00:01Z' });
    expect(await first.loader.advance([other])).toBeUndefined();
    await first.stop();
    const again = await start(stateDirectory);
    expect(again.loader.position).toEqual(other.position);
    expect(again.loader.position).not.toEqual(end);
  });

  it('that is shorter than the mark is refused: it may have been cut on purpose', async () => {
    const { log, stateDirectory } = await stateWithDeltas();
    await truncate(log, 0);
    const { loader, refused } = await start(stateDirectory);
    expect([loader.snapshot, refused]).toEqual([undefined, ['state revision_lower']]);
  });

  it('that was changed is refused, and not without its reason', async () => {
    const { log, stateDirectory } = await stateWithDeltas();
    const text = await readFile(log, 'utf8');
    const [first = '', ...others] = text.split('\n');
    const document = JSON.parse(first);
    const forged = delta({ revision: 1, head: 'A'.repeat(43) });
    document.payload = JSON.parse(forged.bytes.toString()).payload;
    await writeFile(log, [JSON.stringify(document), ...others].join('\n'));
    const { loader, refused } = await start(stateDirectory);
    expect([loader.snapshot, refused]).toEqual([undefined, ['state signature_invalid']]);
    expect(loader.status().problem?.error.file).toBe('steps.jsonl:1');
  });

  it('holds nothing of a delta that was refused', async () => {
    const { end, log, stateDirectory } = await stateWithDeltas();
    const before = await readFile(log);
    const started = await start(stateDirectory);
    const good = delta(end);
    const bad = delta(good.position, { clients_removed: ['unknown'] });
    const after = delta(bad.position);
    expect((await started.loader.advance([good, bad, after]))?.code).toBe('client_unknown');
    expect(started.loader.position).toEqual(good.position);
    expect((await readFile(log)).equals(Buffer.concat([before, good.bytes]))).toBe(true);
    await started.stop();
    expect((await start(stateDirectory)).loader.position).toEqual(good.position);
  });
});

describe('a base', () => {
  it('takes the place of the one before in one step, with its own steps', async () => {
    const { end, stateDirectory } = await stateWithDeltas();
    const started = await start(stateDirectory);
    const whole = content({ revision: 9, previous_head: end.head });
    const { position } = signWholeBundle(whole, [keys.bundle]);
    const next = delta(position);
    expect((await fetched(started, whole, [next])).refused).toBeUndefined();
    await started.stop();
    const again = await start(stateDirectory);
    expect(again.loader.position).toEqual(next.position);
    expect(await readdir(join(stateDirectory, 'bases'))).toHaveLength(1);
  });

  it('that was never finished is removed, whatever there is of it', async () => {
    const { base, end, stateDirectory } = await stateWithDeltas();
    const bases = join(stateDirectory, 'bases');
    const half = join(bases, '.incoming-0123456789abcdef');
    await mkdir(half);
    await writeFile(join(half, 'bundle.jws'), '{"payload":"');
    // Complete, renamed, and not current yet.
    await cp(base, join(bases, '9-0123456789abcdef'), { recursive: true });
    await symlink('bases/9-0123456789abcdef', join(stateDirectory, '.current.0123456789abcdef'));
    const { loader, refused } = await start(stateDirectory);
    expect([loader.position, refused]).toEqual([end, []]);
    expect(await readdir(bases)).toHaveLength(1);
    expect((await readdir(stateDirectory)).sort()).toEqual(['bases', 'current', MARK_FILE]);
  });

  it('that is current while the mark is still that of the one before raises it', async () => {
    const { stateDirectory } = await stateWithDeltas();
    const lower = await readFile(join(stateDirectory, MARK_FILE));
    const started = await start(stateDirectory);
    const { position } = await fetched(started, content({ revision: 9 }));
    await started.stop();
    await writeFile(join(stateDirectory, MARK_FILE), lower);
    expect((await start(stateDirectory)).loader.position).toEqual(position);
    expect(JSON.parse(await readFile(join(stateDirectory, MARK_FILE), 'utf8'))).toMatchObject(position);
  });

  it('that is gone, or that the link does not lead to, is reported; Control’s next one heals it', async () => {
    const outside = await newDirectory();
    await writeFile(join(outside, 'precious'), 'x');
    for (const [target, code] of [
      ['bases/9-0123456789abcdef', 'file_missing'],
      [outside, 'file_unreadable'],
      ['bases/..', 'file_unreadable'],
    ] as const) {
      const { stateDirectory } = await stateWithDeltas();
      await unlink(join(stateDirectory, 'current'));
      await symlink(target, join(stateDirectory, 'current'));
      const started = await start(stateDirectory);
      expect([started.loader.snapshot, started.refused]).toEqual([undefined, [`state ${code}`]]);
      const { position } = await fetched(started, content({ revision: 9 }));
      expect(started.loader.position).toEqual(position);
      expect(started.loader.status().problem).toBeUndefined();
      await started.stop();
      expect((await start(stateDirectory)).loader.position).toEqual(position);
      expect(await readdir(outside)).toEqual(['precious']);
    }
  });

  it('with another shard than it names is refused', async () => {
    const stateDirectory = await newDirectory();
    const started = await start(stateDirectory);
    const { derived_keys: derivedKeys = [], ...rest } = content();
    const [shard] = makeShards(derivedKeys);
    if (shard === undefined) throw new Error('no shard');
    const incoming = await started.persisted.newBase();
    const whole = signWholeBundle({ ...rest, key_shards: [shard.entry] }, [keys.bundle]);
    await writeFile(join(incoming.path, 'bundle.jws'), whole.document);
    await writeFile(join(incoming.path, shard.entry.file), shard.bytes);
    expect(await started.loader.replace(incoming, [])).toBeUndefined();
    await started.stop();
    expect((await start(stateDirectory)).loader.snapshot?.keys.size).toBe(2);
    const [base = ''] = await readdir(join(stateDirectory, 'bases'));
    await writeFile(join(stateDirectory, 'bases', base, shard.entry.file), `${shard.bytes} `);
    const { loader, refused } = await start(stateDirectory);
    expect([loader.snapshot, refused]).toEqual([undefined, ['state shard_mismatch']]);
  });

  it('that cannot be kept is not used', async () => {
    const { end, stateDirectory } = await stateWithDeltas();
    const started = await start(stateDirectory);
    await unlink(join(stateDirectory, 'current'));
    // A link cannot be renamed over a directory.
    await mkdir(join(stateDirectory, 'current', 'x'), { recursive: true });
    const { refused } = await fetched(started, content({ revision: 9 }));
    expect(refused?.code).toBe('file_not_written');
    expect(started.loader.position).toEqual(end);
    await rm(join(stateDirectory, 'current'), { recursive: true });
    expect((await fetched(started, content({ revision: 9 }))).refused).toBeUndefined();
  });
});
