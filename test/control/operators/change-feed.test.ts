/** Tests the feed of changes over both databases: other instances, and transactions that commit in another order. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { ChangeFeed } from '../../../src/control/operators/change-feed.ts';
import type { ControlStore, Transaction } from '../../../src/control/store/port.ts';
import { waitFor } from '../../support/wait.ts';
import { type DatabaseKind, databaseKinds, type Opener } from '../store/databases.ts';

const record = (kind: string) => (tx: Transaction) =>
  tx.audit.append(
    {
      kind: 'proofgate.control.environment.create',
      actor: 'bootstrap',
      resource: { kind, id: 'x' },
      place: {},
    },
    0,
  );

describe.each(databaseKinds().map((kind) => [kind.name, kind] as const))(
  'on %s',
  (name, kind: DatabaseKind) => {
    let open: Opener;
    let store: ControlStore;
    let ms = 0;
    let reported: string[] = [];
    let unsubscribe = () => {};

    async function follow(): Promise<void> {
      const report = (error: unknown) => reported.push(String(error));
      const feed = new ChangeFeed({ store, nowMs: () => ms, report, roundMs: 10 });
      unsubscribe = await feed.subscribe((changes) =>
        reported.push(...changes.map(({ resourceKind }) => resourceKind)),
      );
    }

    beforeAll(() => kind.start());
    afterAll(() => kind.stop());
    beforeEach(async () => {
      open = await kind.fresh();
      store = await open();
      await store.writeUnaudited(undefined, record('before'));
      reported = [];
      await follow();
    });
    afterEach(async () => {
      unsubscribe();
      await store.close();
    });

    const expectReported = (...kinds: readonly string[]) =>
      waitFor(`${kinds.join()} instead of ${reported.join()}`, () => reported.length >= kinds.length).then(
        () => expect(reported).toEqual(kinds),
      );

    test('each change is reported once, not what was before', async () => {
      await store.writeUnaudited(undefined, record('first'));
      await expectReported('first');
      await store.writeUnaudited(undefined, record('second'));
      await expectReported('first', 'second');
    });

    if (name !== 'sqlite') {
      /** Appends an event in a transaction of another instance, which stays open. @returns what commits it */
      async function appendUncommitted(event: string): Promise<() => Promise<void>> {
        const other = await open();
        let commit = () => {};
        const held = new Promise<void>((resolve) => {
          commit = resolve;
        });
        let isAppended = false;
        const done = other.writeUnaudited(undefined, async (tx) => {
          await record(event)(tx);
          isAppended = true;
          await held;
        });
        await waitFor('the open transaction', () => isAppended);
        return async () => {
          commit();
          await done;
          await other.close();
        };
      }

      test('a change of another instance that commits late is reported, after a gap', async () => {
        const commit = await appendUncommitted('late');
        await store.writeUnaudited(undefined, record('early'));
        await expectReported('early');
        await store.writeUnaudited(undefined, record('next'));
        await expectReported('early', 'next');
        await commit();
        await expectReported('early', 'next', 'late');
      });

      test('a change is reported whose number is before the newest event at the start', async () => {
        unsubscribe();
        const commit = await appendUncommitted('late');
        await store.writeUnaudited(undefined, record('early'));
        await follow();
        await commit();
        await expectReported('late');
      });

      test('giving up on an old gap keeps a younger one', async () => {
        const commitOld = await appendUncommitted('old');
        await store.writeUnaudited(undefined, record('first'));
        await expectReported('first');
        const commitYoung = await appendUncommitted('young');
        await store.writeUnaudited(undefined, record('second'));
        await expectReported('first', 'second');
        ms += 20_000;
        await store.writeUnaudited(undefined, record('third'));
        await expectReported('first', 'second', 'third');
        await commitYoung();
        await expectReported('first', 'second', 'third', 'young');
        await commitOld();
      });

      test('a gap that a rollback left is given up', async () => {
        const failed = store.writeUnaudited(undefined, async (tx) => {
          await record('rolled back')(tx);
          throw new Error('rolled back');
        });
        await expect(failed).rejects.toThrow('rolled back');
        await store.writeUnaudited(undefined, record('first'));
        await expectReported('first');
        ms += 20_000;
        await store.writeUnaudited(undefined, record('second'));
        await expectReported('first', 'second');
        await store.writeUnaudited(undefined, record('third'));
        await expectReported('first', 'second', 'third');
      });
    }
  },
);
