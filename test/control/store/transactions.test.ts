/** Tests the guarantees of store transactions on both databases. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createOnce } from '../../../src/control/resource/operation.ts';
import {
  ConstraintError,
  type ControlStore,
  type Notice,
  StoreFaultError,
  StoreUnavailableError,
  UnknownSiteError,
} from '../../../src/control/store/port.ts';
import { VersionConflictError } from '../../../src/control/store/repositories/records.ts';
import type { Transaction } from '../../../src/control/store/transaction.ts';
import {
  addGround,
  clientRow,
  entry,
  type Ground,
  mutateSite,
  siteRow,
  targetRow,
} from '../../support/control/store-rows.ts';
import { waitUntil } from '../../support/wait.ts';
import { databaseKinds, NOW_MS, type Opener } from './databases.ts';

const ALL = { after: undefined, limit: 1000 };
const EVERYTHING = { kind: 'everything' } as const;
const INSTALLATION = { kind: 'installation' } as const;

function newSignal(): { readonly given: Promise<void>; readonly give: () => void } {
  let give = () => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give };
}

describe.each(databaseKinds())('$name', (database) => {
  let open: Opener;
  let store: ControlStore;
  let ground: Ground;
  beforeAll(async () => {
    await database.start();
    open = await database.fresh();
    store = await open();
    ground = await addGround(store);
  });
  afterAll(async () => {
    await store.close();
    await database.stop();
  });

  const clients = (tx: Transaction, siteId = ground.siteId) => tx.clients.list({ siteId }, ALL);
  const namesOf = (rows: readonly { readonly clientId: string }[]) => rows.map(({ clientId }) => clientId);

  describe('a mutation and its audit rows', () => {
    it('are one', async () => {
      const { siteId } = await addGround(store);
      const result = await store.mutate({ kind: 'site', siteId }, async (tx) => {
        await tx.clients.add(clientRow(siteId, 'billing'));
        return { result: 7, audit: [entry('one', siteId), entry('two', siteId)] };
      });
      expect(result).toBe(7);
      const [rows, trail] = await store.read(async (tx) => [
        await clients(tx, siteId),
        await tx.audit.list({ reach: EVERYTHING, siteId, limit: 10 }),
      ]);
      expect(namesOf(rows)).toEqual(['billing']);
      expect(trail.map(({ kind, atMs }) => [kind, atMs])).toEqual([
        ['proofgate.control.test.two', NOW_MS],
        ['proofgate.control.test.one', NOW_MS],
      ]);
    });

    it('are nothing when work throws', async () => {
      const { siteId } = await addGround(store);
      const fault = new Error('no');
      const failing = store.mutate({ kind: 'site', siteId }, async (tx) => {
        await tx.clients.add(clientRow(siteId, 'billing'));
        await tx.audit.append(entry('early', siteId), NOW_MS);
        throw fault;
      });
      await expect(failing).rejects.toBe(fault);
      expect(await store.read((tx) => clients(tx, siteId))).toEqual([]);
      expect(await store.read((tx) => tx.audit.list({ reach: EVERYTHING, siteId, limit: 10 }))).toEqual([]);
    });

    it('are nothing when an audit row cannot be written', async () => {
      const { siteId } = await addGround(store);
      const unspeakable = { ...entry('changed', siteId), actor: null as unknown as string };
      const failing = store.mutate({ kind: 'site', siteId }, async (tx) => {
        await tx.clients.add(clientRow(siteId, 'billing'));
        return { result: undefined, audit: [entry('changed', siteId), unspeakable] };
      });
      await expect(failing).rejects.toBeInstanceOf(StoreFaultError);
      expect(await store.read((tx) => clients(tx, siteId))).toEqual([]);
      expect(await store.read((tx) => tx.audit.list({ reach: EVERYTHING, siteId, limit: 10 }))).toEqual([]);
    });
  });

  describe('errors', () => {
    it('of a site that is not there', async () => {
      await expect(mutateSite(store, 'nowhere', async () => {})).rejects.toBeInstanceOf(UnknownSiteError);
    });

    it('of a name that is taken say so, and not which', async () => {
      const taken = mutateSite(store, ground.siteId, async (tx) => {
        const target = targetRow(ground.siteId, 'a');
        await tx.targets.add(target);
        await tx.targets.add({ ...targetRow(ground.siteId, 'b'), tokenHash: target.tokenHash });
      });
      const error = await taken.catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(ConstraintError);
      expect(error).toMatchObject({ kind: 'unique', message: expect.stringContaining('token_hash') });
      expect(String(error instanceof Error && error.stack)).not.toContain('tgt_');
    });

    it('of what others refer to', async () => {
      const inUse = store.writeUnaudited(INSTALLATION, (tx) => tx.fleets.remove(ground.fleetId));
      await expect(inUse).rejects.toMatchObject({ name: 'ConstraintError', kind: 'reference' });
    });

    it('that are unexpected keep their code and nothing of their values', async () => {
      const bad = { ...siteRow(ground.fleetId, 'x'), displayName: null as unknown as string };
      const failing = store.writeUnaudited(INSTALLATION, (tx) =>
        tx.sites.add({ ...bad, trustDomain: 'confidential.example' }),
      );
      const error = await failing.catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(StoreFaultError);
      expect((error as Error).stack).toMatch(/Sites\.insert/);
      expect((error as Error).stack).not.toContain('confidential');
    });

    it('leave the store usable', async () => {
      await store.ping();
      expect(await store.read((tx) => tx.sites.find(ground.siteId))).toMatchObject({ id: ground.siteId });
    });
  });

  describe('versions', () => {
    it('are written over once', async () => {
      const { siteId } = await addGround(store);
      await mutateSite(store, siteId, (tx) => tx.clients.add(clientRow(siteId, 'billing')));
      const read = clientRow(siteId, 'billing');
      await mutateSite(store, siteId, (tx) => tx.clients.change(read, { subject: 'client:b' }, NOW_MS + 1));
      const again = mutateSite(store, siteId, (tx) =>
        tx.clients.change(read, { subject: 'client:c' }, NOW_MS),
      );
      await expect(again).rejects.toBeInstanceOf(VersionConflictError);
      expect(await store.read((tx) => tx.clients.find(siteId, 'billing'))).toMatchObject({
        subject: 'client:b',
        version: 2,
        updatedAtMs: NOW_MS + 1,
        createdAtMs: NOW_MS,
      });
    });

    it('of a record that is gone conflict', async () => {
      const gone = mutateSite(store, ground.siteId, (tx) =>
        tx.clients.change(clientRow(ground.siteId, 'gone'), { subject: 's' }, NOW_MS),
      );
      await expect(gone).rejects.toBeInstanceOf(VersionConflictError);
    });
  });

  describe('locks', () => {
    it('let 40 mutations of a site happen one after the other', async () => {
      const { siteId } = await addGround(store);
      let inside = 0;
      let most = 0;
      const work = () =>
        mutateSite(store, siteId, async (tx) => {
          inside += 1;
          most = Math.max(most, inside);
          const site = await tx.sites.find(siteId);
          await new Promise(setImmediate);
          await tx.hierarchy.advance(siteId, { revision: (site?.revision ?? 0) + 1 });
          inside -= 1;
        });
      await Promise.all(Array.from({ length: 40 }, work));
      expect(most).toBe(1);
      expect(await store.read((tx) => tx.sites.find(siteId))).toMatchObject({ revision: 40 });
    });

    it('take turns on installation-wide names', async () => {
      const name = 'one-name';
      const work = async () =>
        store.mutate(INSTALLATION, async (tx) => {
          const there = (await tx.environments.list({}, ALL)).some((row) => row.name === name);
          await new Promise(setImmediate);
          const row = {
            id: `env_${Math.random()}`,
            name,
            version: 1,
            createdAtMs: NOW_MS,
            updatedAtMs: NOW_MS,
          };
          if (!there) await tx.environments.add(row);
          return { result: !there, audit: [entry('environment')] };
        });
      const made = await Promise.all(Array.from({ length: 10 }, work));
      expect(made.filter(Boolean)).toHaveLength(1);
    });
  });

  describe('reads', () => {
    it('cannot write', async () => {
      const row = clientRow(ground.siteId, 'sneaked');
      await expect(store.read((tx) => tx.clients.add(row))).rejects.toThrow(/the database/);
      expect(namesOf(await store.read((tx) => clients(tx)))).not.toContain('sneaked');
      await mutateSite(store, ground.siteId, (tx) => tx.clients.add(row));
      expect(namesOf(await store.read((tx) => clients(tx)))).toContain('sneaked');
    });

    it('see one moment, whatever is committed meanwhile', async () => {
      const { siteId } = await addGround(store);
      let committed: Promise<void> | undefined;
      const [before, after] = await store.read(async (tx) => {
        const first = await clients(tx, siteId);
        committed = mutateSite(store, siteId, (other) => other.clients.add(clientRow(siteId, 'late')));
        await committed;
        return [first, await clients(tx, siteId)];
      });
      await committed;
      expect(before).toEqual([]);
      expect(after).toEqual([]);
      expect(namesOf(await store.read((tx) => clients(tx, siteId)))).toEqual(['late']);
    });

    it('that are long hold up neither writes nor other reads, and see their moment', async () => {
      const { siteId } = await addGround(store);
      const [begun, finish] = [newSignal(), newSignal()];
      const long = Array.from({ length: 8 }, () =>
        store.readAside(async (tx) => {
          const before = await clients(tx, siteId);
          begun.give();
          await finish.given;
          return [before.length, (await clients(tx, siteId)).length];
        }),
      );
      await begun.given;
      await mutateSite(store, siteId, (tx) => tx.clients.add(clientRow(siteId, 'meanwhile')));
      expect(namesOf(await store.read((tx) => clients(tx, siteId)))).toEqual(['meanwhile']);
      finish.give();
      const all = await Promise.all(long);
      // Whichever began first saw no client.
      expect(all).toContainEqual([0, 0]);
      for (const [before, after] of all) expect(after).toBe(before);
    });

    it('do not wait for a write that is under way', async () => {
      const { siteId } = await addGround(store);
      const [begun, finish] = [newSignal(), newSignal()];
      const writing = mutateSite(store, siteId, async (tx) => {
        await tx.clients.add(clientRow(siteId, 'one'));
        begun.give();
        await finish.given;
      });
      await begun.given;
      for (const read of ['read', 'readAside'] as const) {
        expect(await store[read]((tx) => clients(tx, siteId))).toEqual([]);
      }
      finish.give();
      await writing;
      expect(await store.read((tx) => clients(tx, siteId))).toHaveLength(1);
    });

    it('aside cannot write', async () => {
      const write = store.readAside((tx) =>
        tx.environments.add({ id: 'env_x', name: 'x', version: 1, createdAtMs: 1, updatedAtMs: 1 }),
      );
      await expect(write).rejects.toThrow();
    });

    it('give pages that stay in place under inserts, sorted by bytes', async () => {
      const { siteId } = await addGround(store);
      const add = (...names: string[]) =>
        mutateSite(store, siteId, async (tx) => {
          for (const name of names) await tx.clients.add(clientRow(siteId, name));
        });
      const first = ['a-b', 'aB', 'a_b', 'ab', 'Z', 'z', 'B', '10', '9', 'é', 'a b'];
      await add(...first);
      const seen: string[] = [];
      let after: string | undefined;
      for (let page = 0; ; page++) {
        const rows = await store.read((tx) => tx.clients.list({ siteId }, { after, limit: 2 }));
        seen.push(...namesOf(rows));
        after = rows.at(-1)?.clientId;
        if (rows.length < 2) break;
        // Before, within and after the rows already seen.
        await add(`0-${page}`, `a-${page}`);
      }
      expect(new Set(seen).size).toBe(seen.length);
      expect(seen).toEqual(expect.arrayContaining(first));
      const bytes = (text: string) => Buffer.from(text);
      expect(seen).toEqual([...seen].sort((a, b) => bytes(a).compare(bytes(b))));
    });
  });

  describe('notices', () => {
    it('are notified once, after the commit, and never when there is none', async () => {
      const { siteId } = await addGround(store);
      const heard: Notice[] = [];
      let committed = false;
      const stop = store.subscribe((notice) => {
        if (notice.reference !== siteId) return;
        expect(committed).toBe(true);
        heard.push(notice);
      });
      await expect(
        mutateSite(store, siteId, async (tx) => {
          tx.notify({ topic: 'site_changed', reference: siteId });
          throw new Error('no');
        }),
      ).rejects.toThrow('no');
      await mutateSite(store, siteId, async (tx) => {
        tx.notify({ topic: 'site_changed', reference: siteId });
        tx.notify({ topic: 'site_changed', reference: siteId });
        await tx.clients.add(clientRow(siteId, 'billing'));
        committed = true;
      });
      // A later commit's notice arrives after any extra notice would have.
      await mutateSite(store, siteId, async (tx) => {
        tx.notify({ topic: 'site_published', reference: siteId });
      });
      await waitUntil(() => heard.some(({ topic }) => topic === 'site_published'));
      expect(heard).toEqual([
        { topic: 'site_changed', reference: siteId },
        { topic: 'site_published', reference: siteId },
      ]);
      stop();
      await mutateSite(store, siteId, async (tx) => tx.notify({ topic: 'site_changed', reference: siteId }));
      expect(heard).toHaveLength(2);
    });

    it('do not undo a mutation when a listener throws', async () => {
      const incidents: string[] = [];
      const other = await (await database.fresh())({ report: ({ kind }) => incidents.push(kind) });
      try {
        const { siteId } = await addGround(other);
        other.subscribe(() => {
          throw new Error('deaf');
        });
        await mutateSite(other, siteId, async (tx) =>
          tx.notify({ topic: 'site_changed', reference: siteId }),
        );
        expect(incidents).toEqual(['listener_failed']);
      } finally {
        await other.close();
      }
    });
  });

  describe('creations with an Idempotency-Key', () => {
    const operation = (key: string, requestHash = 'hash') => ({
      actor: 'bootstrap',
      requestId: 'r',
      idempotency: { key, requestHash },
    });
    const create = (siteId: string, key: string, requestHash?: string) => {
      const lock = { kind: 'site', siteId } as const;
      return createOnce(store, lock, operation(key, requestHash), NOW_MS, async (tx) => {
        const row = targetRow(siteId, key);
        await tx.targets.add(row);
        return { result: { id: row.id }, shownOnce: { token: 'shown' }, audit: [entry('created', siteId)] };
      });
    };

    it('happen once in 50 copies at a time, and show what is shown once to one', async () => {
      const { siteId } = await addGround(store);
      const answers = await Promise.all(Array.from({ length: 50 }, () => create(siteId, 'fifty')));
      expect(new Set(answers.map(({ view }) => view.id)).size).toBe(1);
      expect(answers.filter(({ shownOnce }) => shownOnce !== undefined)).toHaveLength(1);
      expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1);
      const [targets, trail] = await store.read(async (tx) => [
        await tx.targets.list({ siteId }, ALL),
        await tx.audit.list({ reach: EVERYTHING, siteId, limit: 100 }),
      ]);
      expect(targets).toHaveLength(1);
      expect(trail.map(({ requestId }) => requestId)).toEqual(['r']);
    });

    it('are refused when the key comes with another request', async () => {
      await create(ground.siteId, 'twice');
      const other = create(ground.siteId, 'twice', 'another');
      await expect(other).rejects.toMatchObject({ code: 'idempotency_conflict' });
    });

    it('are refused when another request with the key is under way on another site', async () => {
      const elsewhere = await addGround(store);
      const outcomes = await Promise.allSettled([
        create(ground.siteId, 'two-sites', 'here'),
        create(elsewhere.siteId, 'two-sites', 'there'),
      ]);
      const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
      expect(refused.map(({ reason }) => reason)).toEqual([
        expect.objectContaining({ code: 'idempotency_conflict' }),
      ]);
    });

    it('can come again when they failed', async () => {
      const lock = { kind: 'site', siteId: ground.siteId } as const;
      const failing = createOnce(store, lock, operation('failed'), NOW_MS, async () => {
        throw new Error('no');
      });
      await expect(failing).rejects.toThrow('no');
      expect(await create(ground.siteId, 'failed')).toMatchObject({ replayed: false });
    });
  });

  describe('closing', () => {
    it('lets what is under way finish, and refuses what comes after', async () => {
      const openOther = await database.fresh();
      const other = await openOther();
      const { siteId } = await addGround(other);
      const begun = newSignal();
      const underWay = mutateSite(other, siteId, async (tx) => {
        begun.give();
        await new Promise(setImmediate);
        await tx.clients.add(clientRow(siteId, 'last'));
      });
      await begun.given;
      const closed = other.close();
      await expect(underWay).resolves.toBeUndefined();
      await closed;
      await expect(other.ping()).rejects.toBeInstanceOf(StoreUnavailableError);
      expect(() => other.lead('late', async () => {})).toThrow(StoreUnavailableError);
      await other.close();
      const again = await openOther();
      expect(namesOf(await again.read((tx) => clients(tx, siteId)))).toEqual(['last']);
      await again.close();
    });

    it('ends what leads, after it has written its last', async () => {
      const openOther = await database.fresh();
      const other = await openOther();
      const { siteId } = await addGround(other);
      const leading = newSignal();
      other.lead('last-words', async (signal) => {
        leading.give();
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        await mutateSite(other, siteId, (tx) => tx.clients.add(clientRow(siteId, 'last')));
      });
      await leading.given;
      await other.close();
      const again = await openOther();
      expect(namesOf(await again.read((tx) => clients(tx, siteId)))).toEqual(['last']);
      await again.close();
    });
  });

  describe('what leads', () => {
    it('is run again when it throws or returns, and each time that is reported', async () => {
      const incidents: (readonly [string, string])[] = [];
      const report = ({ kind, name }: { kind: string; name: string }) => incidents.push([kind, name]);
      const other = await (await database.fresh())({ report });
      let runs = 0;
      const stop = other.lead('jobs', async (signal) => {
        runs += 1;
        if (runs === 1) throw new Error('failed');
        if (runs === 2) return;
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        throw new Error('stopped by the test');
      });
      await waitUntil(() => runs === 3);
      await stop();
      expect(incidents).toEqual([
        ['lead_work_failed', 'jobs'],
        ['lead_work_failed', 'jobs'],
      ]);
      await other.close();
      expect(runs).toBe(3);
    });
  });
});
