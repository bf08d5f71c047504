import { expect, it } from '@jest/globals';
import { newId } from '../../../../src/control/domain/resource-identifiers.ts';
import { PRUNED_AT_ONCE, VersionConflictError } from '../../../../src/control/store/repositories/records.ts';
import {
  challengeRow,
  clientRow,
  enrollmentRow,
  keyRow,
  NOW_SECONDS,
  policyRow,
  sourceRow,
  targetRow,
} from '../../../support/control/store-rows.ts';
import { NOW_MS } from '../databases.ts';
import { ALL, type Bench, pages } from './bench.ts';

export function enrollmentCases({ read, write, ground }: Bench): void {
  const policyOnSite = async () => {
    const { siteId } = await ground();
    const source = sourceRow(siteId);
    const policy = policyRow(source, 'billing');
    await write(async (tx) => {
      await tx.clients.add(clientRow(siteId, 'billing'));
      await tx.sources.add(source);
      await tx.policies.add(policy);
    });
    return policy;
  };

  it('a challenge is consumed once, and pruned when it ended', async () => {
    const policy = await policyOnSite();
    const challenge = challengeRow(policy.siteId, policy.id);
    await write((tx) => tx.enrollments.addChallenge(challenge));
    expect(await write((tx) => tx.enrollments.consumeChallenge(challenge.id, 'enr_1'))).toBe(true);
    expect(await write((tx) => tx.enrollments.consumeChallenge(challenge.id, 'enr_2'))).toBe(false);
    expect(await read((tx) => tx.enrollments.challenge(challenge.id))).toEqual({
      ...challenge,
      enrollmentId: 'enr_1',
    });
    await write((tx) => tx.enrollments.pruneChallenges(challenge.expiresAtMs));
    expect(await read((tx) => tx.enrollments.challenge(challenge.id))).toBeDefined();
    expect(await write((tx) => tx.enrollments.pruneChallenges(challenge.expiresAtMs + 1))).toBeGreaterThan(0);
    expect(await read((tx) => tx.enrollments.challenge(challenge.id))).toBeUndefined();
  });

  it('enrollments are found by challenge, policy, revision and state', async () => {
    const policy = await policyOnSite();
    const [waiting, denied] = [enrollmentRow(policy), enrollmentRow(policy)];
    const overdue = enrollmentRow(policy, { keyExpiresAtSeconds: NOW_SECONDS });
    await write(async ({ enrollments }) => {
      await enrollments.addAll([waiting, denied, overdue]);
      await enrollments.change(denied, { state: 'denied', denialCode: 'policy_not_active' }, NOW_MS);
    });
    const again = { ...enrollmentRow(policy), challengeId: waiting.challengeId };
    await expect(write((tx) => tx.enrollments.add(again))).rejects.toMatchObject({ kind: 'unique' });
    await expect(write((tx) => tx.enrollments.change(denied, {}, NOW_MS))).rejects.toThrow(
      VersionConflictError,
    );
    const { siteId } = policy;
    const ids = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id);
    await read(async ({ enrollments }) => {
      expect(await enrollments.find(waiting.id)).toEqual(waiting);
      expect((await enrollments.byChallenge(denied.challengeId))?.state).toBe('denied');
      const all = [waiting.id, denied.id, overdue.id].sort();
      expect(
        (
          await pages(
            2,
            (page) => enrollments.ofSite(siteId, page),
            ({ id }) => id,
          )
        ).flat(),
      ).toEqual(all);
      const pending = [waiting.id, overdue.id].sort();
      const isPending = { state: 'pending_approval', policyId: policy.id } as const;
      expect(ids(await enrollments.ofSite(siteId, ALL, isPending))).toEqual(pending);
      expect(await enrollments.ofSite(siteId, ALL, { policyId: 'ep_other' })).toEqual([]);
      expect(ids(await enrollments.pendingOfPolicy(policy.id))).toEqual(pending);
      expect(await enrollments.countPending(siteId)).toBe(pending.length);
      expect(ids(await enrollments.pendingOfSource(policy.sourceId, 1))).toEqual(pending);
      expect(await enrollments.pendingOfSource(policy.sourceId, 2)).toEqual([]);
      expect(ids(await enrollments.pendingOfSource(policy.sourceId))).toEqual(pending);
      expect(await enrollments.pendingOfSource('tas_other')).toEqual([]);
      const late = ids(await enrollments.overdue(NOW_SECONDS, 1000));
      expect([late.includes(overdue.id), late.includes(waiting.id)]).toEqual([true, false]);
    });
    const end = waiting.keyExpiresAtSeconds;
    await write((tx) => tx.enrollments.prune(end + 1));
    expect(ids(await read((tx) => tx.enrollments.ofSite(siteId, ALL)))).toEqual(
      [waiting.id, overdue.id].sort(),
    );
  });

  it('counts the other public keys of a token, waiting and issued ones', async () => {
    const policy = await policyOnSite();
    const tokenHash = `token-${policy.id}`;
    await write(async ({ enrollments }) => {
      const states = ['pending_approval', 'issued', 'issued', 'denied', 'expired'] as const;
      for (const [at, state] of states.entries()) {
        // The second and third enrollment have the same public key, issued twice.
        const thumbprint = at === 2 ? 'key-1' : `key-${at}`;
        await enrollments.add(enrollmentRow(policy, { tokenHash, state, thumbprint }));
      }
    });
    expect(await read((tx) => tx.enrollments.otherKeysOfToken(tokenHash, 'new'))).toBe(2);
    expect(await read((tx) => tx.enrollments.otherKeysOfToken(tokenHash, 'key-1'))).toBe(1);
    expect(await read((tx) => tx.enrollments.otherKeysOfToken('other', 'key-1'))).toBe(0);
  });
}

export function keyCases({ read, write, ground }: Bench): void {
  const ids = (rows: readonly { readonly keyId: string }[]) => rows.map(({ keyId }) => keyId);

  it('keys by state as of a moment', async () => {
    const { siteId } = await ground();
    const active = keyRow(siteId, { thumbprint: 'same' });
    const ended = keyRow(siteId, {
      thumbprint: 'same',
      expiresAtSeconds: NOW_SECONDS,
      clientId: 'reporting',
    });
    const revoked = keyRow(siteId, { status: 'revoked' });
    await write(async ({ keys }) => {
      await keys.addAll([active, ended, revoked]);
      await keys.change(active, { revokedReason: null }, NOW_MS + 1);
    });
    await expect(write((tx) => tx.keys.change(active, {}, NOW_MS))).rejects.toThrow(VersionConflictError);
    await read(async ({ keys }) => {
      expect(await keys.find(active.keyId)).toEqual({ ...active, version: 2, updatedAtMs: NOW_MS + 1 });
      expect(await keys.findLivingOfClients(siteId, ['other', active.clientId], NOW_SECONDS)).toBe(
        active.clientId,
      );
      expect(await keys.findLivingOfClients(siteId, ['reporting'], NOW_SECONDS)).toBeUndefined();
      expect(
        (
          await pages(
            2,
            (page) => keys.ofSite(siteId, page),
            (row) => row.keyId,
          )
        ).flat(),
      ).toEqual(ids([active, ended, revoked]));
      for (const [status, expected] of [
        ['active', active],
        ['expired', ended],
        ['revoked', revoked],
      ] as const) {
        const state = { status, nowSeconds: NOW_SECONDS };
        expect(ids(await keys.ofSite(siteId, ALL, { state }))).toEqual([expected.keyId]);
      }
      expect(ids(await keys.ofSite(siteId, ALL, { clientId: 'reporting' }))).toEqual([ended.keyId]);
      expect(ids(await keys.livingWithThumbprint(siteId, 'same', NOW_SECONDS))).toEqual([active.keyId]);
      expect(ids(await keys.livingOfSite(siteId, NOW_SECONDS, ALL))).toEqual([active.keyId]);
      expect(await keys.livingOfSite(siteId, NOW_SECONDS, { after: active.keyId, limit: 9 })).toEqual([]);
    });
  });

  it('thousands by name in one call', async () => {
    const { siteId } = await ground();
    const rows = Array.from({ length: 1100 }, () => keyRow(siteId));
    await write(async ({ keys }) => {
      await keys.addAll(rows);
      await keys.noteRevision(ids(rows), { listedRevision: 7 });
      await keys.noteRevision([], { listedRevision: 8 });
    });
    const found = await read((tx) => tx.keys.ofSite(siteId, { after: undefined, limit: 2000 }));
    expect(found).toHaveLength(rows.length);
    expect(found.every(({ listedRevision, version }) => listedRevision === 7 && version === 1)).toBe(true);
  });

  it('pruning takes ended keys, so many at once', async () => {
    const { siteId } = await ground();
    const long = NOW_SECONDS - 1000;
    const kept = keyRow(siteId, { expiresAtSeconds: long });
    await write(async ({ keys }) => {
      await keys.add(kept);
      for (let count = 0; count < PRUNED_AT_ONCE + 1; count++) {
        await keys.add(keyRow(siteId, { expiresAtSeconds: long - 1 }));
      }
    });
    expect(await write((tx) => tx.keys.prune(long))).toBe(PRUNED_AT_ONCE);
    expect(await write((tx) => tx.keys.prune(long))).toBe(1);
    expect(ids(await read((tx) => tx.keys.ofSite(siteId, ALL)))).toEqual([kept.keyId]);
  });

  it('last uses of keys, a target each', async () => {
    const { siteId } = await ground();
    const other = await ground();
    const [used, unused, elsewhere] = [keyRow(siteId), keyRow(siteId), keyRow(other.siteId)];
    const [edge, west, gone] = ['edge', 'west', 'gone'].map((name) => targetRow(siteId, name));
    if (edge === undefined || west === undefined || gone === undefined) throw new Error('no targets');
    await write(async ({ keys, targets }) => {
      await keys.addAll([used, unused, elsewhere]);
      for (const each of [edge, west, gone]) await targets.add(each);
      await targets.change(gone, { state: 'detached' }, NOW_MS);
    });
    const at = ({ keyId }: { readonly keyId: string }, usedAtSeconds: number) => ({ keyId, usedAtSeconds });
    await write(async ({ keyUses }) => {
      await keyUses.put(edge.id, [at(used, 120), at(elsewhere, 120), at({ keyId: 'dk_unknown' }, 120)]);
      await keyUses.put(edge.id, [at(used, 60)]);
      await keyUses.put(west.id, [at(used, 180)]);
      await keyUses.put(gone.id, [at(used, 240), at(unused, 240)]);
      await keyUses.put(edge.id, []);
    });
    await read(async ({ keys, keyUses }) => {
      const all = [used, unused, elsewhere].map(({ keyId }) => keyId);
      expect(await keyUses.lastOf(all)).toEqual(new Map([[used.keyId, 180]]));
      expect(await keyUses.byTarget(used.keyId)).toEqual([
        { targetId: west.id, name: 'west', usedAtSeconds: 180 },
        { targetId: edge.id, name: 'edge', usedAtSeconds: 120 },
      ]);
      // The key itself is not written.
      expect(await keys.find(used.keyId)).toEqual(used);
    });
    await write(({ sites }) => sites.remove(siteId));
    expect(await read(({ keyUses }) => keyUses.lastOf([used.keyId]))).toEqual(new Map());
  });

  it('all keys of a source are revoked, with every key ID of their public keys', async () => {
    const { siteId } = await ground();
    const sourceId = newId('source', NOW_MS);
    const a = keyRow(siteId, { sourceId });
    const b = keyRow(siteId, { sourceId });
    const sameKeyElsewhere = keyRow(siteId, { thumbprint: a.thumbprint });
    const ended = keyRow(siteId, { sourceId, expiresAtSeconds: NOW_SECONDS });
    const other = keyRow(siteId);
    await write(async ({ keys }) => {
      await keys.addAll([a, b, sameKeyElsewhere, ended, other]);
    });
    const revocation = { revokedBy: 'control', revokedReason: 'source retired', nowMs: NOW_MS };
    expect(await write((tx) => tx.keys.revokeLivingOfSource(siteId, sourceId, revocation))).toBe(3);
    expect(await write((tx) => tx.keys.revokeLivingOfSource(siteId, sourceId, revocation))).toBe(0);
    await read(async ({ keys, changes }) => {
      const rows = await keys.ofSite(siteId, ALL);
      const revoked = rows.filter(({ status }) => status === 'revoked');
      expect(ids(revoked)).toEqual(ids([a, b, sameKeyElsewhere]).sort());
      expect(revoked.map(({ version, revokedBy }) => [version, revokedBy])).toEqual(
        revoked.map(() => [2, 'control']),
      );
      const noted = (await changes.pending(siteId, 9)).map(({ kind, reference }) => `${kind} ${reference}`);
      expect(noted.sort()).toEqual(
        ids(revoked)
          .map((id) => `key ${id}`)
          .sort(),
      );
      expect(await keys.publicKeyWasRevoked(siteId, b.thumbprint)).toBe(true);
      expect(await keys.publicKeyWasRevoked(siteId, ended.thumbprint)).toBe(false);
    });
  });

  it('public keys and subjects that are refused', async () => {
    const { siteId } = await ground();
    const subject = {
      siteId,
      issuer: 'https://i.example',
      subject: 's',
      blockedAtMs: NOW_MS,
      blockedBy: 'x',
    };
    await write(async ({ keys }) => {
      await keys.rejectPublicKey(siteId, 'thumb', NOW_MS);
      await keys.rejectPublicKey(siteId, 'thumb', NOW_MS + 1);
      await keys.blockSubject(subject);
      await keys.blockSubject({ ...subject, blockedBy: 'y' });
    });
    await read(async ({ keys }) => {
      expect(await keys.publicKeyWasRevoked(siteId, 'thumb')).toBe(true);
      expect(await keys.publicKeyWasRevoked('elsewhere', 'thumb')).toBe(false);
      expect(await keys.subjectIsBlocked(siteId, subject.issuer, 's')).toBe(true);
      expect(await keys.subjectIsBlocked(siteId, subject.issuer, 'S')).toBe(false);
      expect(await keys.blockedSubjects(siteId, ALL)).toEqual([subject]);
      expect(await keys.blockedSubjects(siteId, { after: subject, limit: 9 })).toEqual([]);
    });
    expect(await write((tx) => tx.keys.unblockSubject(siteId, subject.issuer, 's'))).toBe(true);
    expect(await write((tx) => tx.keys.unblockSubject(siteId, subject.issuer, 's'))).toBe(false);
  });
}
