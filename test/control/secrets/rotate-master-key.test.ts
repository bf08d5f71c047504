/** Tests the rotation of the master key on both databases: beside running instances, killed at every write, and rejected. */
import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type PendingSignIn, signInSteps } from '../../../src/control/operators/sealed-sign-in.ts';
import { type MasterKeyRotation, rotateMasterKey } from '../../../src/control/program/master-key-rotation.ts';
import { SiteSigningKeys } from '../../../src/control/publishing/bundle-signing-keys.ts';
import { MasterKey } from '../../../src/control/secrets/master-key.ts';
import { MasterKeys } from '../../../src/control/secrets/master-keys.ts';
import type { ControlStore } from '../../../src/control/store/port.ts';
import { addGround, mutateSite } from '../../support/control/store-rows.ts';
import { databaseKinds, NOW_MS, type Opener } from '../store/databases.ts';
import { dyingStore, Killed } from '../store/dying-store.ts';
import { starts } from './master-key-start.ts';

const OLD = randomBytes(32).toString('base64url');
const NEW = randomBytes(32).toString('base64url');
const OTHER = randomBytes(32).toString('base64url');
const keysOf = (...lines: readonly string[]) => MasterKeys.parse(lines.join('\n'));
const idOf = (line: string) => new MasterKey(Buffer.from(line, 'base64url')).id;
const nowMs = () => NOW_MS;

const PENDING: PendingSignIn = {
  step: 'pending',
  browserHash: 'browser',
  redirectUri: 'https://control.shop.example/auth/callback',
  destination: { kind: 'page', path: '/' },
  secrets: { state: 'state', nonce: 'nonce', codeVerifier: 'verifier' },
};

describe.each(databaseKinds().map((kind) => [kind.name, kind] as const))('on %s', (name, kind) => {
  let open: Opener;
  let store: ControlStore;
  let siteIds: string[];

  beforeAll(() => kind.start());
  afterAll(() => kind.stop());
  beforeEach(async () => {
    open = await kind.fresh();
    store = await open();
    siteIds = [];
  });
  afterEach(() => store.close());

  /** With two keys of each purpose that sign, of which one will retire. */
  async function addSite(...lines: readonly string[]): Promise<void> {
    const { siteId } = await addGround(store);
    siteIds.push(siteId);
    const signing = new SiteSigningKeys(keysOf(...lines));
    await store.writeUnaudited({ kind: 'installation' }, (tx) => signing.create(tx, siteId, NOW_MS));
    await mutateSite(store, siteId, (tx) => signing.rotate(tx, siteId, 'bundle', { nowMs: NOW_MS }));
    await mutateSite(store, siteId, (tx) => signing.rotate(tx, siteId, 'freshness', { nowMs: NOW_MS }));
  }

  /** A database as a Control with the old key leaves it. */
  async function fill(): Promise<string> {
    expect(await starts(store, OLD)).toBe('starts');
    await addSite(OLD);
    await addSite(OLD);
    return signInSteps(store, keysOf(OLD), nowMs).keep(PENDING);
  }

  /** How many signing keys a new process with this key file can use; it decrypts them all. */
  async function usable(...lines: readonly string[]): Promise<number> {
    const signing = new SiteSigningKeys(keysOf(...lines));
    let found = 0;
    for (const siteId of siteIds) {
      for (const purpose of ['bundle', 'freshness'] as const) {
        const signers = await store.read((tx) => signing.signers(tx, siteId, purpose, NOW_MS));
        found += signers.length;
      }
    }
    return found;
  }

  /** How many stored secrets a key opens. */
  async function openedBy(line: string): Promise<number> {
    const key = new MasterKey(Buffer.from(line, 'base64url'));
    return store.read(async (tx) => {
      const signIns = await tx.operators.signIns({ after: undefined, limit: 1000 });
      const texts = signIns.map(({ stateHash, sealed }) => ({
        sealed,
        purpose: `sign-in:pending:${stateHash}`,
      }));
      for (const siteId of siteIds) {
        for (const { id, sealedPrivateKey } of await tx.signingKeys.ofSite(siteId)) {
          texts.push({ sealed: sealedPrivateKey, purpose: `signing-key:${id}` });
        }
      }
      return texts.filter(({ sealed, purpose }) => key.unsealed(sealed, purpose) !== undefined).length;
    });
  }

  async function auditedVerbs(line = NEW): Promise<readonly string[]> {
    const query = { resourceId: idOf(line), reach: { kind: 'everything' }, limit: 50 } as const;
    const events = await store.read((tx) => tx.audit.list(query));
    return events.map(({ kind: verb }) => verb.replace('proofgate.control.master_key.', '')).toReversed();
  }

  const rotate = (...lines: readonly string[]): Promise<MasterKeyRotation> =>
    rotateMasterKey(store, keysOf(...lines), nowMs);
  const none = { changed: 0, unchanged: 0 };

  it('encrypts every secret again, and the old key opens none', async () => {
    const handle = await fill();
    expect([await openedBy(OLD), await openedBy(NEW)]).toEqual([11, 0]);
    expect(await rotate(NEW, OLD)).toEqual({
      signingKeys: { changed: 10, unchanged: 0 },
      signIns: { changed: 1, unchanged: 0 },
    });
    expect([await openedBy(OLD), await openedBy(NEW)]).toEqual([0, 11]);
    expect(await usable(NEW)).toBe(8);
    expect(await signInSteps(store, keysOf(NEW), nowMs).take('pending', handle)).toEqual(PENDING);
    expect(await starts(store, NEW)).toBe('starts');
    expect(await starts(store, OLD)).toBe('master_key_mismatch');
    expect(await auditedVerbs()).toEqual(['rotate', 'finish_rotation']);
  });

  it('does nothing the second time', async () => {
    await fill();
    await rotate(NEW, OLD);
    expect(await rotate(NEW, OLD)).toEqual({
      signingKeys: { changed: 0, unchanged: 10 },
      signIns: { changed: 0, unchanged: 1 },
    });
    expect(await auditedVerbs()).toEqual(['rotate', 'finish_rotation']);
  });

  it('leaves keys without a private half, and removes expired sign-ins', async () => {
    await fill();
    const [siteId = ''] = siteIds;
    await mutateSite(store, siteId, (tx) =>
      new SiteSigningKeys(keysOf(OLD)).retireDue(tx, siteId, NOW_MS * 2),
    );
    const rotation = await rotateMasterKey(store, keysOf(NEW, OLD), () => NOW_MS + 600_001);
    expect(rotation).toEqual({ signingKeys: { changed: 8, unchanged: 0 }, signIns: none });
    expect(await openedBy(OLD)).toBe(0);
  });

  it('instances with both keys encrypt with the one that the database names', async () => {
    await fill();
    expect(await starts(store, NEW, OLD)).toBe('starts');
    await addSite(NEW, OLD);
    await signInSteps(store, keysOf(NEW, OLD), nowMs).keep(PENDING);
    // An instance that still has the old key alone can use what others made.
    expect([await openedBy(OLD), await usable(OLD)]).toEqual([17, 12]);
    await rotate(NEW, OLD);
    await addSite(NEW, OLD);
    await signInSteps(store, keysOf(NEW, OLD), nowMs).keep(PENDING);
    expect([await openedBy(OLD), await openedBy(NEW), await usable(NEW)]).toEqual([0, 23, 16]);
  });

  it('an instance that has only the old key encrypts nothing any more', async () => {
    await fill();
    await rotate(NEW, OLD);
    await expect(addSite(OLD)).rejects.toMatchObject({ code: 'master_key_mismatch' });
    await expect(signInSteps(store, keysOf(OLD), nowMs).keep(PENDING)).rejects.toMatchObject({
      code: 'master_key_mismatch',
    });
  });

  it('killed at every write, loses nothing and is finished by a second run', async () => {
    await fill();
    const [begun, finished]: [string[], string[]] = [[], []];
    let deaths = 0;
    let current = OLD;
    for (const when of ['before', 'after'] as const) {
      for (let atWrite = 0; ; atWrite++) {
        const next = randomBytes(32).toString('base64url');
        const run = rotateMasterKey(dyingStore(store, when, atWrite), keysOf(next, current), nowMs);
        const error: unknown = await run.catch((thrown: unknown) => thrown);
        const died = error instanceof Killed;
        const kept = await store.read((tx) => tx.operators.masterKey());
        const hasBegun = kept?.id === idOf(next);
        const isFinished = hasBegun && kept.replacing === undefined;
        if (died) {
          deaths += 1;
          if (hasBegun) begun.push(`${when} ${atWrite}`);
          if (isFinished) finished.push(`${when} ${atWrite}`);
        }
        expect(await starts(store, next, current)).toBe('starts');
        expect(await starts(store, current)).toBe(hasBegun ? 'master_key_mismatch' : 'starts');
        expect(await starts(store, next)).toBe(isFinished ? 'starts' : 'master_key_mismatch');
        expect(await usable(next, current)).toBe(8);
        expect((await openedBy(current)) + (await openedBy(next))).toBe(11);
        await rotate(next, current);
        expect([await openedBy(current), await usable(next)]).toEqual([0, 8]);
        expect(await auditedVerbs(next)).toEqual(['rotate', 'finish_rotation']);
        current = next;
        if (!died) break;
      }
    }
    // Writes: prune, begin, two sites, two pages of sign-ins, finish.
    expect({ deaths, begun: begun.length, finished }).toEqual({
      deaths: 14,
      begun: 11,
      finished: ['after 6'],
    });
  });

  it('two runs at the same time finish, and begin once', async () => {
    await fill();
    const other = name === 'sqlite' ? store : await open();
    const runs = [store, other].map((one) => rotateMasterKey(one, keysOf(NEW, OLD), nowMs));
    const changed = (await Promise.all(runs)).map(({ signingKeys }) => signingKeys.changed);
    expect(changed.reduce((sum, one) => sum + one)).toBe(10);
    expect(await openedBy(OLD)).toBe(0);
    expect(await auditedVerbs()).toEqual(['rotate', 'finish_rotation']);
    if (other !== store) await other.close();
  });

  it('waits for a sign-in that is being encrypted with the old key', async () => {
    await fill();
    const instance = name === 'sqlite' ? store : await open();
    const masterKeys = keysOf(NEW, OLD);
    let rotation: Promise<unknown> = Promise.resolve();
    let isOver = false;
    await instance.writeUnaudited({ kind: 'encrypting' }, async (tx) => {
      const key = await masterKeys.current(tx);
      rotation = rotateMasterKey(store, masterKeys, nowMs).finally(() => {
        isOver = true;
      });
      // Without the lock, the rotation would be over after some of these reads.
      for (let i = 0; i < 1000 && !isOver; i++) await tx.operators.masterKey();
      const sealed = key.seal(Buffer.from('{}'), 'sign-in:pending:late');
      await tx.operators.addSignIn({ stateHash: 'late', sealed, expiresAtMs: NOW_MS * 2 });
    });
    await rotation;
    expect([await openedBy(OLD), await openedBy(NEW)]).toEqual([0, 12]);
    if (instance !== store) await instance.close();
  });

  it('is rejected when the file lists other keys, or has them in another order', async () => {
    await fill();
    await expect(rotate(OLD)).rejects.toMatchObject({ code: 'master_key_unchanged' });
    await expect(rotate(OLD, NEW)).rejects.toMatchObject({ code: 'master_key_unchanged' });
    await expect(rotate(NEW)).rejects.toMatchObject({ code: 'master_key_mismatch' });
    await expect(rotate(NEW, OTHER)).rejects.toMatchObject({ code: 'master_key_mismatch' });
    expect([await openedBy(OLD), await auditedVerbs()]).toEqual([11, []]);
    expect(await starts(store, OLD)).toBe('starts');
  });

  it('is rejected while another rotation is not finished', async () => {
    await fill();
    await expect(rotateMasterKey(dyingStore(store, 'after', 2), keysOf(NEW, OLD), nowMs)).rejects.toThrow(
      Killed,
    );
    for (const lines of [[OTHER, NEW], [OTHER, OLD], [OLD, NEW], [NEW, OTHER], [NEW]]) {
      await expect(rotate(...lines)).rejects.toMatchObject({ code: 'master_key_mismatch' });
    }
    expect(await usable(NEW, OLD)).toBe(8);
    await rotate(NEW, OLD);
    expect((await rotate(OTHER, NEW)).signingKeys).toEqual({ changed: 10, unchanged: 0 });
    expect(await usable(OTHER)).toBe(8);
  });

  it('is rejected on a database that no Control has used', async () => {
    await expect(rotate(NEW, OLD)).rejects.toMatchObject({ code: 'database_empty' });
    expect(await store.read((tx) => tx.operators.masterKey())).toBeUndefined();
  });

  it('is rejected, before it changes anything, when a secret opens with neither key', async () => {
    await fill();
    const [, siteId = ''] = siteIds;
    const [row] = await store.read((tx) => tx.signingKeys.ofSite(siteId));
    const id = row?.id ?? '';
    const foreign = keysOf(OTHER).all[0].seal(Buffer.from('secret'), `signing-key:${id}`);
    await mutateSite(store, siteId, (tx) => tx.signingKeys.change(id, { sealedPrivateKey: foreign }));
    await expect(rotate(NEW, OLD)).rejects.toMatchObject({
      code: 'secret_undecryptable',
      message: expect.stringContaining(id),
    });
    expect([await openedBy(OLD), await openedBy(NEW), await auditedVerbs()]).toEqual([10, 0, []]);
    // What the message advises.
    const signing = new SiteSigningKeys(keysOf(OLD));
    const purpose = row?.purpose as 'bundle' | 'freshness';
    await mutateSite(store, siteId, (tx) => signing.rotate(tx, siteId, purpose, { nowMs: NOW_MS }));
    await mutateSite(store, siteId, (tx) => signing.retire(tx, siteId, id, { nowMs: NOW_MS, retiringMs: 0 }));
    await rotate(NEW, OLD);
    expect(await openedBy(OLD)).toBe(0);
  });
});
