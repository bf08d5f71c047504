import { expect, it } from '@jest/globals';
import type { Role } from '../../../../src/control/contract/vocabulary.ts';
import { newId } from '../../../../src/control/domain/resource-identifiers.ts';
import type { Reach, Scope } from '../../../../src/control/domain/roles.ts';
import { PRUNED_AT_ONCE, VersionConflictError } from '../../../../src/control/store/repositories/records.ts';
import { entry, siteRow, VERSIONED } from '../../../support/control/store-rows.ts';
import { NOW_MS } from '../databases.ts';
import { ALL, type Bench, below, EVERYTHING, pages } from './bench.ts';

const grantRow = (principal: string, { kind, id }: Scope, role: Role = 'viewer') => ({
  id: newId('roleGrant', NOW_MS),
  principal,
  role,
  scopeKind: kind,
  scopeId: id,
  createdAtMs: NOW_MS,
  createdBy: 'bootstrap',
});

const tokenRow = ({ kind, id }: Scope) => {
  const tokenId = newId('accessToken', NOW_MS);
  return {
    id: tokenId,
    name: 'ci',
    tokenHash: `hash-${tokenId}`,
    role: 'operator' as const,
    scopeKind: kind,
    scopeId: id,
    expiresAtMs: null,
    lastUsedAtMs: null,
    ...VERSIONED,
  };
};

export function operatorCases({ read, write, ground }: Bench): void {
  it('role grants and tokens, by scope within reach', async () => {
    const { environmentId, fleetId, siteId } = await ground();
    const scopes: readonly Scope[] = [
      { kind: 'installation', id: '' },
      { kind: 'environment', id: environmentId },
      { kind: 'fleet', id: fleetId },
      { kind: 'site', id: siteId },
    ];
    const principal = `oidc:https://idp.example|${siteId}`;
    const grants = scopes.map((scope) => grantRow(principal, scope));
    const tokens = scopes.map(tokenRow);
    await write(async ({ accessTokens, operators }) => {
      for (const row of grants) await operators.addGrant(row);
      for (const row of tokens) await accessTokens.add(row);
    });
    const reaches = [
      [below({ environmentIds: [environmentId] }), ['environment', 'fleet', 'site']],
      [below({ fleetIds: [fleetId] }), ['fleet', 'site']],
      [below({ siteIds: [siteId] }), ['site']],
      [below({}), []],
    ] as const;
    await read(async ({ accessTokens, operators }) => {
      for (const [reach, kinds] of reaches) {
        const kindsOf = (rows: readonly { readonly scopeKind: string }[]) =>
          rows.map((row) => row.scopeKind).sort();
        expect(kindsOf(await operators.reachedGrants(reach, ALL))).toEqual(kinds);
        expect(kindsOf(await operators.reachedTokens(reach, ALL))).toEqual(kinds);
      }
      const everything = await operators.reachedGrants(EVERYTHING, ALL);
      expect(everything).toEqual(await operators.grants(ALL));
      expect(everything).toEqual(expect.arrayContaining(grants.map((row) => expect.objectContaining(row))));
      expect(await operators.reachedTokens(EVERYTHING, ALL)).toEqual(await accessTokens.list({}, ALL));
      const paged = await pages(
        3,
        (page) => operators.grants(page),
        ({ id }) => id,
      );
      expect(paged.flat()).toEqual(everything.map(({ id }) => id));
      expect(await operators.grantsOf(['group:unknown', principal])).toHaveLength(scopes.length);
      expect(await operators.grantsOf([])).toEqual([]);
      expect(await operators.hasGrant(grantRow(principal, { kind: 'site', id: siteId }))).toBe(true);
      expect(await operators.hasGrant(grantRow(principal, { kind: 'site', id: siteId }, 'admin'))).toBe(
        false,
      );
      expect(await operators.isScopeHeld({ kind: 'site', id: siteId })).toBe(true);
      expect(await operators.isScopeHeld({ kind: 'site', id: 'other' })).toBe(false);
    });
    const twice = write((tx) =>
      tx.operators.addGrant({ ...grants[3], id: 'rg_2' } as (typeof grants)[number]),
    );
    await expect(twice).rejects.toMatchObject({ kind: 'unique' });
    const id = grants[3]?.id ?? '';
    expect(await write((tx) => tx.operators.removeGrant(id))).toBe(true);
    expect(await write((tx) => tx.operators.removeGrant(id))).toBe(false);
    expect(await read((tx) => tx.operators.grant(id))).toBeUndefined();
    expect(await read((tx) => tx.operators.isScopeHeld({ kind: 'site', id: siteId }))).toBe(true);
    await write((tx) => tx.accessTokens.remove(tokens[3]?.id ?? ''));
    expect(await read((tx) => tx.operators.isScopeHeld({ kind: 'site', id: siteId }))).toBe(false);
  });

  it('tokens rotate with a version and are used without one', async () => {
    const token = tokenRow({ kind: 'installation', id: '' });
    await write(async ({ accessTokens, operators }) => {
      await accessTokens.add(token);
      await operators.noteTokensUsed(
        new Map([
          [token.id, NOW_MS + 3],
          ['at_gone', NOW_MS],
        ]),
      );
      await accessTokens.change(token, { tokenHash: `${token.id}-2` }, NOW_MS);
    });
    await expect(write((tx) => tx.accessTokens.change(token, {}, NOW_MS))).rejects.toThrow(
      VersionConflictError,
    );
    await read(async ({ accessTokens, operators }) => {
      expect(await accessTokens.find(token.id)).toMatchObject({ version: 2, lastUsedAtMs: NOW_MS + 3 });
      expect(await operators.tokenByHash(token.tokenHash)).toBeUndefined();
      expect((await operators.tokenByHash(`${token.id}-2`))?.id).toBe(token.id);
    });
    expect(await write((tx) => tx.accessTokens.remove(token.id))).toBe(true);
    expect(await write((tx) => tx.accessTokens.remove(token.id))).toBe(false);
  });

  it('sessions and sign-ins end', async () => {
    const session = (tokenHash: string, expiresAtMs: number) => ({
      tokenHash,
      principal: 'p',
      displayName: 'P',
      groups: '[]',
      createdAtMs: NOW_MS,
      expiresAtMs,
    });
    await write(async ({ operators }) => {
      await operators.addSession(session('old', NOW_MS - 1));
      await operators.addSession(session('new', NOW_MS));
      await operators.addSignIn({ stateHash: 'old', sealed: 's', expiresAtMs: NOW_MS - 1 });
      await operators.addSignIn({ stateHash: 'new', sealed: 's', expiresAtMs: NOW_MS });
      await operators.pruneSessions(NOW_MS);
    });
    expect(await read((tx) => tx.operators.session('old'))).toBeUndefined();
    expect(await read((tx) => tx.operators.session('new'))).toEqual(session('new', NOW_MS));
    expect(await write((tx) => tx.operators.takeSignIn('old'))).toBeUndefined();
    expect(await write((tx) => tx.operators.takeSignIn('new'))).toMatchObject({ sealed: 's' });
    expect(await write((tx) => tx.operators.takeSignIn('new'))).toBeUndefined();
    expect(await write((tx) => tx.operators.removeSession('new'))).toBe(true);
    expect(await write((tx) => tx.operators.removeSession('new'))).toBe(false);
  });

  it('living sessions are found by the beginning of their hash, and listed in its order', async () => {
    const session = (tokenHash: string, principal: string, expiresAtMs = NOW_MS + 1) => ({
      ...{ tokenHash, principal, displayName: 'P', groups: '[]', createdAtMs: NOW_MS, expiresAtMs },
    });
    const begins = ['living-A', 'living-Z', 'living-_', 'living-a', 'living-z'];
    await write(async ({ operators }) => {
      for (const begin of begins.toReversed())
        await operators.addSession(session(`${begin}-and-more`, begin.endsWith('A') ? 'ada' : 'eve'));
      await operators.addSession(session('living-over', 'ada', NOW_MS));
    });
    const list = (principal: string | undefined, after?: string, limit = 10) =>
      read(async ({ operators }) => {
        const rows = await operators.sessions({ principal, nowMs: NOW_MS }, { after, limit });
        return rows.map(({ tokenHash }) => tokenHash.replace('-and-more', ''));
      });
    expect(await list(undefined, 'living', 3)).toEqual(begins.slice(0, 3));
    expect(await list(undefined, 'living-_~')).toEqual(begins.slice(3));
    expect(await list('ada')).toEqual(['living-A']);
    for (const begin of begins) {
      const found = await read((tx) => tx.operators.sessionByPrefix(begin));
      expect(found?.tokenHash).toBe(`${begin}-and-more`);
    }
    expect(await read((tx) => tx.operators.sessionByPrefix('living-B'))).toBeUndefined();
    const removed = await write((tx) => tx.operators.removeSessionsOf('ada'));
    expect(removed.map(({ tokenHash }) => tokenHash).toSorted()).toEqual([
      'living-A-and-more',
      'living-over',
    ]);
    expect(await list(undefined, 'living')).toEqual(begins.slice(1));
  });

  it('the installation keeps its bootstrap hash', async () => {
    expect(await read((tx) => tx.operators.bootstrapTokenHash())).toBeUndefined();
    await write((tx) => tx.operators.setBootstrapTokenHash('hash'));
    expect(await read((tx) => tx.operators.bootstrapTokenHash())).toBe('hash');
    await write((tx) => tx.operators.setBootstrapTokenHash(null));
    expect(await read((tx) => tx.operators.bootstrapTokenHash())).toBeUndefined();
  });

  it('the installation keeps the first master key, until another one replaces it', async () => {
    const kept = () => read((tx) => tx.operators.masterKey());
    expect(await kept()).toBeUndefined();
    const first = { id: 'first', previous: undefined, replacing: undefined };
    expect(await write((tx) => tx.operators.registerMasterKey('first'))).toEqual(first);
    expect(await write((tx) => tx.operators.registerMasterKey('second'))).toEqual(first);
    await write((tx) => tx.operators.replaceMasterKey('other', 'second'));
    expect(await kept()).toEqual(first);
    await write((tx) => tx.operators.replaceMasterKey('first', 'second'));
    expect(await kept()).toEqual({ id: 'second', previous: 'first', replacing: 'first' });
    await write((tx) => tx.operators.finishMasterKeyRotation('first'));
    expect(await kept()).toEqual({ id: 'second', previous: 'first', replacing: 'first' });
    await write((tx) => tx.operators.finishMasterKeyRotation('second'));
    expect(await kept()).toEqual({ id: 'second', previous: 'first', replacing: undefined });
  });

  it('a sign-in gets another sealed text, unless it was taken', async () => {
    await write((tx) => tx.operators.addSignIn({ stateHash: 'b', sealed: 'old', expiresAtMs: 2 }));
    await write((tx) => tx.operators.addSignIn({ stateHash: 'a', sealed: 'old', expiresAtMs: 2 }));
    const page = { after: undefined, limit: 1 };
    expect(await read((tx) => tx.operators.signIns(page))).toMatchObject([{ stateHash: 'a' }]);
    expect(await read((tx) => tx.operators.signIns({ ...page, after: 'a' }))).toMatchObject([
      { stateHash: 'b' },
    ]);
    await write((tx) => tx.operators.resealSignIn('a', 'new'));
    expect(await write((tx) => tx.operators.takeSignIn('a'))).toMatchObject({ sealed: 'new' });
    await write((tx) => tx.operators.resealSignIn('a', 'new'));
    expect(await write((tx) => tx.operators.takeSignIn('a'))).toBeUndefined();
    expect(await write((tx) => tx.operators.takeSignIn('b'))).toMatchObject({ sealed: 'old' });
  });

  it('answers are kept for a while', async () => {
    const answer = (key: string, createdAtMs: number) => ({
      actor: 'a',
      key,
      requestHash: 'h',
      status: 201,
      body: '{}',
      headers: '{}',
      createdAtMs,
    });
    await write(async ({ operators }) => {
      await operators.keepAnswer(answer('old', NOW_MS - 1));
      await operators.keepAnswer(answer('new', NOW_MS));
      await operators.pruneAnswers(NOW_MS);
    });
    expect(await read((tx) => tx.operators.answered('a', 'old'))).toBeUndefined();
    expect(await read((tx) => tx.operators.answered('a', 'new'))).toEqual(answer('new', NOW_MS));
    expect(await read((tx) => tx.operators.answered('b', 'new'))).toBeUndefined();
  });
}

export function auditCases({ read, write, ground }: Bench): void {
  it('the trail, newest first, by place, kind, resource and reach', async () => {
    const a = await ground();
    const b = await ground();
    await write(async ({ audit }) => {
      await audit.append({ ...entry('first', a.siteId), before: { x: 1 }, requestId: 'r' }, NOW_MS);
      await audit.append({ ...entry('second', a.siteId), after: { x: 2 } }, NOW_MS + 1);
      await audit.append(entry('third', b.siteId), NOW_MS + 2);
      await audit.append({ ...entry('fourth'), place: {} }, NOW_MS + 3);
    });
    const verbs = async (filter: object) =>
      (await read((tx) => tx.audit.list({ reach: EVERYTHING, limit: 50, ...filter }))).map(
        ({ resourceId }) => resourceId,
      );
    expect((await verbs({})).slice(0, 4)).toEqual(['fourth', 'third', 'second', 'first']);
    expect(await verbs({ siteId: a.siteId })).toEqual(['second', 'first']);
    expect(await verbs({ fleetId: a.fleetId, kind: 'proofgate.control.test.first' })).toEqual(['first']);
    expect(await verbs({ environmentId: b.environmentId })).toEqual(['third']);
    expect(await verbs({ siteId: a.siteId, resourceId: 'second' })).toEqual(['second']);
    expect(await verbs({ siteId: a.siteId, actor: 'bootstrap' })).toEqual(['second', 'first']);
    expect(await verbs({ siteId: a.siteId, actor: 'control' })).toEqual([]);
    expect(await verbs({ siteId: a.siteId, sinceMs: NOW_MS + 1 })).toEqual(['second']);
    expect(await verbs({ siteId: a.siteId, untilMs: NOW_MS + 1 })).toEqual(['first']);
    expect(await verbs({ reach: below({ fleetIds: [a.fleetId] }) })).toEqual(['second', 'first']);
    expect(await verbs({ reach: below({}) })).toEqual([]);
    const [second, first] = await read((tx) =>
      tx.audit.list({ reach: EVERYTHING, siteId: a.siteId, limit: 2 }),
    );
    expect(first).toMatchObject({ ...a, before: '{"x":1}', after: null, requestId: 'r', actor: 'bootstrap' });
    expect(await verbs({ siteId: a.siteId, beforeSeq: second?.seq })).toEqual(['first']);
    const newestOfSite = second?.seq ?? 0;
    await read(async ({ audit }) => {
      expect(await audit.newestSeqOf(a.siteId)).toBe(newestOfSite);
      expect(await audit.newestSeqOf('elsewhere')).toBe(0);
      expect(await audit.hasAfter(a.siteId, newestOfSite - 1, ['nothing'])).toBe(true);
      expect(await audit.hasAfter(a.siteId, newestOfSite - 1, [second?.resourceKind ?? ''])).toBe(false);
      expect(await audit.hasAfter(a.siteId, newestOfSite, ['nothing'])).toBe(false);
    });
    const newest = await read((tx) => tx.audit.newestSeq());
    const counts = await read((tx) => tx.audit.countsAfter(newest - 3));
    expect(counts.map(({ siteId, events }) => ({ siteId, events }))).toEqual(
      expect.arrayContaining([
        { siteId: a.siteId, events: 1 },
        { siteId: b.siteId, events: 1 },
        { siteId: null, events: 1 },
      ]),
    );
    expect(Math.max(...counts.map(({ newestSeq }) => newestSeq))).toBe(newest);
    expect(await read((tx) => tx.audit.countsAfter(newest))).toEqual([]);
    await write((tx) => tx.audit.prune(NOW_MS + 1));
    expect(await verbs({ siteId: a.siteId })).toEqual(['second']);
  });

  it('events of a site are not visible through a later one of the same identifier', async () => {
    const a = await ground();
    const b = await ground();
    const { siteId } = a;
    const visible = async (reach: Reach) =>
      (await read((tx) => tx.audit.list({ reach, siteId, limit: 50 }))).map(({ resourceId }) => resourceId);
    await write((tx) => tx.audit.append(entry('before', siteId), NOW_MS));
    const toSite = below({ siteIds: [siteId] });
    expect(await visible(toSite)).toEqual(['before']);
    await write(async ({ audit, sites }) => {
      await sites.remove(siteId);
      const place = { environmentId: a.environmentId, fleetId: a.fleetId, siteId };
      await audit.append({ ...entry('deleted'), place }, NOW_MS);
    });
    expect(await visible(toSite)).toEqual([]);
    await write(async ({ audit, sites }) => {
      await sites.add(siteRow(b.fleetId, siteId));
      await audit.append(entry('after', siteId), NOW_MS);
    });
    expect(await visible(toSite)).toEqual(['after']);
    expect(await visible(below({ environmentIds: [b.environmentId] }))).toEqual(['after']);
    expect(await visible(below({ environmentIds: [a.environmentId] }))).toEqual(['deleted', 'before']);
    expect(await visible(EVERYTHING)).toEqual(['after', 'deleted', 'before']);
  });

  it('is pruned so many at once', async () => {
    const longAgoMs = NOW_MS - 1_000_000;
    await write(async ({ audit }) => {
      for (let count = 0; count < PRUNED_AT_ONCE + 1; count++) await audit.append(entry('old'), longAgoMs);
    });
    expect(await write((tx) => tx.audit.prune(longAgoMs + 1))).toBe(PRUNED_AT_ONCE);
    expect(await write((tx) => tx.audit.prune(longAgoMs + 1))).toBe(1);
  });
}
