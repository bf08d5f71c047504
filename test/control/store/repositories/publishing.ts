import { expect, it } from '@jest/globals';
import { clientRow, keyRow, NOW_SECONDS, targetRow } from '../../../support/control/store-rows.ts';
import { NOW_MS } from '../databases.ts';
import { ALL, type Bench, pages } from './bench.ts';

export function changeCases({ read, write, ground }: Bench): void {
  it('changes in their order, settled up to one of them', async () => {
    const [a, b] = [await ground(), await ground()];
    const { siteId } = a;
    await write(async ({ changes }) => {
      await changes.record(siteId, { kind: 'key', keyId: 'dk_1' }, NOW_MS);
      await changes.record(b.siteId, { kind: 'policy' }, NOW_MS + 1);
      await changes.record(siteId, { kind: 'client', clientId: 'billing' }, NOW_MS + 2);
      await changes.record(siteId, { kind: 'policy' }, NOW_MS + 3);
    });
    const pending = await read((tx) => tx.changes.pending(siteId, 2));
    expect(pending.map(({ kind, reference }) => [kind, reference])).toEqual([
      ['key', 'dk_1'],
      ['client', 'billing'],
    ]);
    await read(async ({ changes, publication }) => {
      expect(await changes.oldestPendingMs(siteId)).toBe(NOW_MS);
      expect((await publication.oldestPending()).get(b.siteId)).toBe(NOW_MS + 1);
      expect(await publication.hasPolicyChange(siteId)).toBe(true);
      expect(await publication.contentChangedSince(siteId)).toBe(NOW_MS + 2);
      const content = await changes.contentAfter(siteId, pending[0]?.seq ?? 0);
      expect(content.map(({ kind, reference }) => [kind, reference])).toEqual([
        ['client', 'billing'],
        ['policy', ''],
      ]);
      expect(await changes.newestSeq(siteId)).toBe(content[1]?.seq);
      expect(await changes.contentAfter(siteId, content[1]?.seq ?? 0)).toEqual([]);
      expect(await changes.sitesWithChanges()).toEqual(expect.arrayContaining([siteId, b.siteId]));
    });
    await write((tx) => tx.publication.settle(pending.slice(0, 1)));
    expect(await read((tx) => tx.changes.oldestPendingMs(siteId))).toBe(NOW_MS + 2);
    const all = await read((tx) => tx.changes.pending(siteId, 9));
    await write((tx) => tx.changes.settle(siteId, all.at(-1)?.seq ?? 0));
    await read(async ({ changes, publication }) => {
      expect(await changes.pending(siteId, 9)).toEqual([]);
      expect(await changes.newestSeq(siteId)).toBe(0);
      expect(await publication.hasPolicyChange(siteId)).toBe(false);
      expect(await publication.contentChangedSince(siteId)).toBeUndefined();
      expect(await changes.oldestPendingMs(siteId)).toBeUndefined();
      expect(await changes.pending(b.siteId, 9)).toHaveLength(1);
    });
  });
}

export function distributionCases({ read, write, ground }: Bench): void {
  it('steps, files, contents and freshness', async () => {
    const { siteId } = await ground();
    const step = (revision: number, bytes: number) => ({
      siteId,
      revision,
      kind: 'delta' as const,
      head: `h${revision}`,
      previousHead: null,
      document: '{}',
      bytes,
      publishedAtMs: NOW_MS,
    });
    const file = (revision: number, sha256: string) => ({
      siteId,
      revision,
      name: 'bundle.jws',
      sha256,
      bytes: 3,
      keys: null,
      firstKey: null,
    });
    const ends = {
      ...{ siteId, revision: 3, expiresEndSeconds: 9, boundedEndSeconds: 5, realtimeEndSeconds: 4 },
      ...{ freshSeconds: 3, skewSeconds: 1 },
    };
    const limits = {
      ...{ lifetimeSeconds: 8, boundedSeconds: 2, realtimeSeconds: 1 },
      ...{ longestRealtimeSeconds: 10, unlimitedSeenSeconds: 0 },
    };
    const bound = { ...ends, ...limits };
    const freshness = { siteId, revision: 3, head: 'h3', asOfSeconds: NOW_SECONDS, document: '{}' };
    await write(async ({ distribution }) => {
      for (const revision of [1, 2, 3]) await distribution.addStep(step(revision, revision * 10));
      await distribution.addFile(file(1, 'old'));
      await distribution.addFile(file(3, 'new'));
      for (const sha256 of ['old', 'new', 'new']) {
        await distribution.putBlob({ siteId, sha256, content: Buffer.from([0, 255, 10]) });
      }
      await distribution.putFreshness({ ...freshness, revision: 2 });
      await distribution.putFreshness(freshness);
    });
    await write(async ({ signedBounds }) => {
      expect(await signedBounds.hold(siteId)).toBeUndefined();
      await signedBounds.addIfNone({ ...bound, revision: 2 });
      await signedBounds.addIfNone({ ...bound, revision: 1 });
      expect(await signedBounds.hold(siteId)).toMatchObject({ revision: 2 });
      await signedBounds.put(bound);
      expect(await signedBounds.hold(siteId)).toEqual(bound);
      await signedBounds.putOfRevocation(ends);
    });
    await read(async ({ signedBounds }) => {
      expect(await signedBounds.find(siteId)).toEqual(bound);
      expect(await signedBounds.ofSites([siteId, 'other'])).toEqual([bound]);
      expect(await signedBounds.ofRevocation(siteId, 3)).toEqual(ends);
    });
    await read(async ({ distribution, publication }) => {
      expect(await distribution.step(siteId, 2)).toEqual(step(2, 20));
      const after = await distribution.stepsAfter(siteId, 1, 9);
      expect(after.map(({ revision }) => revision)).toEqual([2, 3]);
      expect(await distribution.sizeAfter(siteId, 1)).toEqual({ steps: 2, bytes: 50 });
      expect(await distribution.sizeAfter(siteId, 3)).toEqual({ steps: 0, bytes: 0 });
      expect(await distribution.files(siteId, 3)).toEqual([file(3, 'new')]);
      expect(await publication.bases(siteId)).toEqual([
        { revision: 3, publishedAtMs: NOW_MS },
        { revision: 1, publishedAtMs: NOW_MS },
      ]);
      expect(await distribution.blob(siteId, 'new')).toEqual(Buffer.from([0, 255, 10]));
      expect(await distribution.blob(siteId, 'nothing')).toBeUndefined();
      expect(await distribution.hasBlob(siteId, 'old')).toBe(true);
      expect(await distribution.freshness(siteId)).toEqual(freshness);
    });
    await write(async ({ distribution }) => {
      await distribution.pruneSteps(siteId, 3);
      await distribution.pruneFiles(siteId, 3);
    });
    await read(async ({ distribution }) => {
      expect(await distribution.step(siteId, 2)).toBeUndefined();
      expect(await distribution.step(siteId, 3)).toBeDefined();
      expect(await distribution.files(siteId, 1)).toEqual([]);
      expect(await distribution.hasBlob(siteId, 'old')).toBe(false);
      expect(await distribution.hasBlob(siteId, 'new')).toBe(true);
    });
  });
}

export function publicationCases({ read, write, ground }: Bench): void {
  it('keys of a range, and what was published since', async () => {
    const { siteId } = await ground();
    const rows = Array.from({ length: 4 }, () => keyRow(siteId));
    const [first, second, third, fourth] = rows.map(({ keyId }) => keyId).sort() as [
      string,
      string,
      string,
      string,
    ];
    const ended = keyRow(siteId, { expiresAtSeconds: NOW_SECONDS });
    const ofMissingClient = keyRow(siteId, { clientId: 'gone' });
    await write(async ({ clients, keys }) => {
      await clients.add(clientRow(siteId, 'billing'));
      await keys.addAll([...rows, ended, ofMissingClient]);
      await keys.noteRevision([first, second], { listedRevision: 5 });
      await keys.noteRevision([second], { revokedRevision: 7 });
      await keys.noteRevision([third], { listedRevision: 8 });
    });
    const ids = (found: readonly { readonly keyId: string }[]) => found.map(({ keyId }) => keyId);
    await read(async ({ publication }) => {
      const whole = { from: '', before: undefined };
      const part = { from: second, before: fourth };
      const listed = await pages(
        3,
        (page) => publication.keysIn(siteId, whole, NOW_SECONDS, page),
        ({ keyId }) => keyId,
      );
      expect(listed).toEqual([[first, second, third], [fourth]]);
      expect(ids(await publication.keysIn(siteId, part, NOW_SECONDS, ALL))).toEqual([second, third]);
      const some = [third, first, ended.keyId, ofMissingClient.keyId];
      expect(ids(await publication.keys(siteId, some, NOW_SECONDS))).toEqual([first, third]);
      expect(await publication.keys(siteId, [], NOW_SECONDS)).toEqual([]);
      expect(await publication.keyIdsOfClient(siteId, 'gone', NOW_SECONDS)).toEqual([ofMissingClient.keyId]);
      expect(await publication.countKeysIn(siteId, whole, NOW_SECONDS)).toBe(5);
      expect(await publication.countKeysIn(siteId, part, NOW_SECONDS)).toBe(2);
      expect(await publication.keyIdsPublishedAfter(siteId, 5, '', 9)).toEqual([second, third]);
      expect(await publication.keyIdsPublishedAfter(siteId, 5, second, 9)).toEqual([third]);
    });
  });

  it('clients and grants of some', async () => {
    const { siteId } = await ground();
    const grant = (clientId: string) => ({
      siteId,
      clientId,
      resource: 'orders',
      access: 'read' as const,
      createdAtMs: NOW_MS,
    });
    await write(async ({ clients }) => {
      for (const name of ['a', 'b', 'c']) {
        await clients.add(clientRow(siteId, name));
        await clients.putGrants([grant(name)]);
      }
    });
    await read(async ({ publication }) => {
      const some = await publication.clients(siteId, ['c', 'a', 'unknown']);
      expect(some.map(({ clientId }) => clientId)).toEqual(['a', 'c']);
      expect(await publication.clients(siteId, [])).toEqual([]);
      expect(await publication.grantsOf(siteId, ['b'])).toEqual([grant('b')]);
      expect(await publication.grantsOf(siteId, [])).toEqual([]);
    });
  });

  it('what every target holds, and since when', async () => {
    const { siteId } = await ground();
    const targets = [targetRow(siteId, 'a'), targetRow(siteId, 'b')];
    const gone = { ...targetRow(siteId, 'gone'), state: 'detached' as const };
    const key = keyRow(siteId, {
      status: 'revoked',
      revokedAtMs: NOW_MS,
      listedRevision: 2,
      revokedRevision: 4,
    });
    await write(async (tx) => {
      await tx.targets.addAll([...targets, gone]);
      await tx.keys.add(key);
      await tx.changes.record(siteId, { kind: 'key', keyId: key.keyId }, NOW_MS);
    });
    const held = () => read((tx) => tx.propagation.heldByAll(siteId, 0));
    expect(await held()).toEqual({ attached: 2, revision: 0, least: undefined });
    const version = () => read((tx) => tx.propagation.versionOfTargets(siteId));
    const before = await version();
    const [a, b] = targets.map(({ id }) => id) as [string, string];
    expect(await read((tx) => tx.targets.ofSite(siteId))).toHaveLength(3);
    expect(await read((tx) => tx.targets.ofIds([a, 'tgt_unknown']))).toMatchObject([{ id: a }]);
    await write(async ({ propagation }) => {
      await propagation.noteTargets([a, gone.id], { ackedRevision: 5 });
      await propagation.noteTargets([], { ackedRevision: 9 });
    });
    expect(await held()).toEqual({ attached: 2, revision: 0, least: 5 });
    await write((tx) => tx.propagation.noteTargets([b], { ackedRevision: 3 }));
    expect(await held()).toEqual({ attached: 2, revision: 3, least: 3 });
    // Reports of targets do not change their version; changes by operators do.
    expect(await version()).toBe(before);
    await write(async (tx) => {
      const row = await tx.targets.find(a);
      if (row !== undefined) await tx.targets.change(row, { name: 'another name' }, NOW_MS);
    });
    expect(await version()).not.toBe(before);
    const isUnderWay = (revision: number) => read((tx) => tx.propagation.hasKeysUnderWay(siteId, revision));
    expect([await isUnderWay(1), await isUnderWay(2)]).toEqual([false, true]);
    await write((tx) => tx.propagation.noteEverywhere(siteId, 3, NOW_MS + 1));
    expect([await isUnderWay(3), await isUnderWay(4)]).toEqual([false, true]);
    await write((tx) => tx.propagation.noteEverywhere(siteId, 4, NOW_MS + 2));
    expect(await isUnderWay(4)).toBe(false);
    await read(async ({ keys, propagation, publication }) => {
      expect(await keys.find(key.keyId)).toMatchObject({
        listedEverywhereAtMs: NOW_MS + 1,
        revokedEverywhereAtMs: NOW_MS + 2,
      });
      const revoked = await propagation.revokedKeys(siteId, NOW_SECONDS, 9);
      expect(revoked.map(({ keyId }) => keyId)).toEqual([key.keyId]);
      expect(await propagation.revokedKeys(siteId, key.expiresAtSeconds, 9)).toEqual([]);
      const changes = await publication.revocations(siteId, 9);
      expect(changes.map(({ reference }) => reference)).toEqual([key.keyId]);
    });
  });

  it('sites that are published, and sites that are due', async () => {
    const { siteId } = await ground();
    const due = (nowMs: number) => read((tx) => tx.publication.sitesDue(nowMs));
    expect(await due(NOW_MS)).toContain(siteId);
    const step = { kind: 'bundle', head: 'h1', previousHead: null, document: '', bytes: 1 } as const;
    await write(async ({ distribution, hierarchy }) => {
      await distribution.addStep({ siteId, revision: 1, publishedAtMs: NOW_MS, ...step });
      await hierarchy.advance(siteId, { revision: 1, head: 'h1', baseRevision: 1 });
    });
    expect(await due(NOW_MS)).not.toContain(siteId);
    const halfOfDayMs = 43_200_000;
    expect(await due(NOW_MS + halfOfDayMs - 1)).not.toContain(siteId);
    expect(await due(NOW_MS + halfOfDayMs)).toContain(siteId);
    // With timestamps in the future: the whole bundle, or the newest document.
    expect(await due(NOW_MS - 1)).toContain(siteId);
    await write(async ({ distribution, hierarchy }) => {
      const delta = { ...step, kind: 'delta', head: 'h2', previousHead: 'h1' } as const;
      await distribution.addStep({ siteId, revision: 2, publishedAtMs: NOW_MS + 5, ...delta });
      await hierarchy.advance(siteId, { revision: 2, head: 'h2' });
    });
    expect(await due(NOW_MS + 4)).toContain(siteId);
    expect(await due(NOW_MS + 5)).not.toContain(siteId);
    const published = await read((tx) => tx.publication.published());
    expect(published).toContainEqual({ id: siteId, revision: 2, head: 'h2', policyRevision: 0 });
    await write((tx) => tx.hierarchy.advance(siteId, { wholeNeeded: 1 }));
    expect(await due(NOW_MS + 5)).toContain(siteId);
  });
}

export function blockedCallerCases({ read, write, ground }: Bench): void {
  it('blocked callers, by name, and the sites that withhold them', async () => {
    const { siteId } = await ground();
    const row = (name: string) => ({
      siteId,
      name,
      issuer: 'https://broker.example',
      subject: name,
      holderThumbprint: null,
      blockedAtMs: NOW_MS,
      blockedBy: 'bootstrap',
    });
    await write(async ({ blockedCallers }) => {
      for (const name of ['c', 'a', 'b']) await blockedCallers.add(row(name));
    });
    await expect(write((tx) => tx.blockedCallers.add(row('a')))).rejects.toMatchObject({ kind: 'unique' });
    await read(async ({ blockedCallers }) => {
      expect(await blockedCallers.isBlocked(siteId, 'a')).toBe(true);
      expect(await blockedCallers.isBlocked('elsewhere', 'a')).toBe(false);
      expect(await blockedCallers.count(siteId)).toBe(3);
      expect(await blockedCallers.list(siteId, { after: 'a', limit: 1 })).toEqual([row('b')]);
      expect(await blockedCallers.isWithheld(siteId)).toBe(true);
      expect(await blockedCallers.withholdingSites()).toContain(siteId);
    });
    await write((tx) => tx.hierarchy.advance(siteId, { blockedPublished: 1 }));
    await read(async ({ blockedCallers }) => {
      expect(await blockedCallers.isWithheld(siteId)).toBe(false);
      expect(await blockedCallers.withholdingSites()).not.toContain(siteId);
    });
    expect(await write((tx) => tx.blockedCallers.remove(siteId, 'a'))).toBe(true);
    expect(await write((tx) => tx.blockedCallers.remove(siteId, 'a'))).toBe(false);
  });
}
