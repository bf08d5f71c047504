import { expect, it } from '@jest/globals';
import { VersionConflictError } from '../../../../src/control/store/repositories/records.ts';
import { revisionRow, sourceRow } from '../../../support/control/store-rows.ts';
import { NOW_MS } from '../databases.ts';
import { type Bench, pages } from './bench.ts';

export function sourceCases({ read, write, ground }: Bench): void {
  it('sources and their revisions', async () => {
    const { siteId } = await ground();
    const [source, other] = [sourceRow(siteId), sourceRow(siteId)];
    const first = revisionRow(source, 1, 'active');
    await write(async ({ sourceRevisions, sources }) => {
      await sources.addAll([source, other]);
      await sources.change(source, { displayName: 'eu' }, NOW_MS);
      await sourceRevisions.add(revisionRow(source, 2));
      await sourceRevisions.add(first);
      await sourceRevisions.add(revisionRow(other, 1, 'suspended'));
      await sourceRevisions.change(first, { detectedScope: 'issuer.example/' }, NOW_MS);
    });
    await expect(write((tx) => tx.sources.change(source, {}, NOW_MS))).rejects.toThrow(VersionConflictError);
    const stale = write((tx) => tx.sourceRevisions.change(first, {}, NOW_MS));
    await expect(stale).rejects.toThrow(VersionConflictError);
    await read(async ({ sourceRevisions, sources }) => {
      expect(await sources.find(source.id)).toEqual({ ...source, displayName: 'eu', version: 2 });
      const listed = await pages(
        1,
        (page) => sources.list({ siteId }, page),
        ({ id }) => id,
      );
      expect(listed.flat()).toEqual([source.id, other.id].sort());
      expect(await sourceRevisions.find(source.id, 1)).toEqual({
        ...first,
        detectedScope: 'issuer.example/',
        version: 2,
      });
      expect(await sourceRevisions.find(source.id, 3)).toBeUndefined();
      expect((await sources.revisions(source.id)).map(({ revision }) => revision)).toEqual([1, 2]);
      const holders = await sources.inStates(siteId, ['active', 'suspended']);
      expect(holders.map(({ sourceId }) => sourceId)).toEqual([source.id, other.id].sort());
      expect(await sources.inStates(siteId, ['retired'])).toEqual([]);
      const everywhere = await sources.everywhereInStates(['suspended']);
      expect(everywhere.map(({ sourceId }) => sourceId)).toContain(other.id);
    });
    await expect(write((tx) => tx.sources.remove(source.id))).rejects.toMatchObject({ kind: 'reference' });
    expect(await write((tx) => tx.sourceRevisions.remove(other.id, 1))).toBe(true);
    expect(await write((tx) => tx.sourceRevisions.remove(other.id, 1))).toBe(false);
    expect(await write((tx) => tx.sources.remove(other.id))).toBe(true);
    expect(await write((tx) => tx.sources.remove(other.id))).toBe(false);
  });

  it('an audience stays with the site that claimed it first', async () => {
    const [a, b] = [await ground(), await ground()];
    const audience = `audience-of-${a.siteId}`;
    await write((tx) => tx.sources.claimAudience(audience, a.siteId));
    await write((tx) => tx.sources.claimAudience(audience, b.siteId));
    expect(await read((tx) => tx.sources.ownerOfAudience(audience))).toBe(a.siteId);
    expect(await read((tx) => tx.sources.ownerOfAudience('unknown'))).toBeUndefined();
  });

  it('of two key sets the later fetched one stays', async () => {
    const { siteId } = await ground();
    const source = sourceRow(siteId);
    const keySet = (jwks: string, fetchedAtMs: number) => ({
      sourceId: source.id,
      revision: 1,
      jwks,
      fetchedAtMs,
    });
    await write(async ({ sourceRevisions, sources }) => {
      await sources.add(source);
      await sourceRevisions.add(revisionRow(source, 1));
      await sources.putKeySet(keySet('1', NOW_MS));
      await sources.putKeySet(keySet('3', NOW_MS + 2));
      await sources.putKeySet(keySet('2', NOW_MS + 1));
    });
    const latest = { ...keySet('3', NOW_MS + 2), failedAtMs: null, failureCode: null };
    expect(await read((tx) => tx.sources.keySet(source.id, 1))).toEqual(latest);
    const failure = { failedAtMs: NOW_MS + 3, failureCode: 'http_status' };
    await write((tx) => tx.sources.noteFailedFetch(source.id, 1, failure));
    expect(await read((tx) => tx.sources.keySet(source.id, 1))).toEqual({ ...latest, ...failure });
    await write((tx) => tx.sources.removeKeySet(source.id, 1));
    expect(await read((tx) => tx.sources.keySet(source.id, 1))).toBeUndefined();
  });
}
