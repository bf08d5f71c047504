/** Tests the owners of credentials with a real database. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { Role } from '../../../src/control/contract/vocabulary.ts';
import { ApiProblem } from '../../../src/control/domain/api-problem.ts';
import { newId } from '../../../src/control/domain/resource-identifiers.ts';
import { INSTALLATION, type Scope } from '../../../src/control/domain/roles.ts';
import type { Credentials, Operators, Principal } from '../../../src/control/operators/operators.ts';
import {
  createOperators,
  createTokenUsage,
  pruneOperatorRecords,
  startOperatorJobs,
  type TokenUsage,
} from '../../../src/control/operators/operators.ts';
import { createSessions } from '../../../src/control/operators/sessions.ts';
import { newToken, tokenHash } from '../../../src/control/secrets/bearer-token.ts';
import type { ControlStore } from '../../../src/control/store/port.ts';
import { waitFor } from '../../support/wait.ts';
import { databaseKinds, NOW_MS } from '../store/databases.ts';

const SITE: Scope = { kind: 'site', id: 'shop-eu-1' };
const ADA = { issuer: 'https://idp.example', subject: 'ada', displayName: 'Ada', groups: ['platform'] };

describe.each(databaseKinds().map((kind) => [kind.name, kind] as const))('on %s', (_name, kind) => {
  let store: ControlStore;
  let operators: Operators;
  let usage: TokenUsage;
  let nowMs = NOW_MS;
  const now = () => nowMs;

  beforeAll(() => kind.start());
  afterAll(() => kind.stop());
  beforeEach(async () => {
    nowMs = NOW_MS;
    store = await (await kind.fresh())({ nowMs: now });
    usage = createTokenUsage(store, now);
    operators = createOperators({ store, tokenUsage: usage, nowMs: now });
  });
  afterEach(() => store.close());

  function bearer(token: string): Promise<Principal> {
    return operators.authenticate({ authorization: `Bearer ${token}`, sessionCookie: undefined });
  }

  async function problem(credentials: Partial<Credentials>): Promise<string> {
    const all = { authorization: undefined, sessionCookie: undefined, ...credentials };
    const error: unknown = await operators.authenticate(all).catch((thrown: unknown) => thrown);
    if (error instanceof ApiProblem) return error.code;
    throw error;
  }

  async function addAccessToken(
    role: Role,
    scope: Scope,
    expiresAtMs: number | null,
  ): Promise<{ id: string; token: string }> {
    const token = newToken('access');
    const id = newId('accessToken', nowMs);
    const versioned = { version: 1, createdAtMs: nowMs, updatedAtMs: nowMs };
    await store.writeUnaudited(undefined, (tx) =>
      tx.accessTokens.add({
        id,
        name: 'deploy',
        tokenHash: tokenHash(token),
        role,
        scopeKind: scope.kind,
        scopeId: scope.id,
        expiresAtMs,
        lastUsedAtMs: null,
        createdBy: null,
        ...versioned,
      }),
    );
    return { id, token };
  }

  test('the bootstrap token is admin of the installation', async () => {
    const token = newToken('bootstrap');
    await store.writeUnaudited(undefined, (tx) => tx.operators.setBootstrapTokenHash(tokenHash(token)));
    expect(await bearer(token)).toEqual({
      actor: 'bootstrap',
      displayName: 'bootstrap token',
      via: 'bootstrap',
      roles: [{ role: 'admin', scope: INSTALLATION }],
    });
    expect(await problem({ authorization: `Bearer ${newToken('bootstrap')}` })).toBe(
      'authentication_required',
    );
    await store.writeUnaudited(undefined, (tx) => tx.operators.setBootstrapTokenHash('disabled'));
    expect(await problem({ authorization: `Bearer ${token}` })).toBe('authentication_required');
  });

  test('an access token has its role and scope, until it ends', async () => {
    const { id, token } = await addAccessToken('operator', SITE, NOW_MS + 1000);
    expect(await bearer(token)).toEqual({
      actor: `token:${id}`,
      displayName: 'deploy',
      via: 'access_token',
      roles: [{ role: 'operator', scope: SITE }],
      expiresAtMs: NOW_MS + 1000,
    });
    nowMs += 999;
    expect((await bearer(token)).actor).toBe(`token:${id}`);
    nowMs += 1;
    expect(await problem({ authorization: `Bearer ${token}` })).toBe('authentication_required');
  });

  test('an access token that was removed or rotated is refused from the next request on', async () => {
    const { id, token } = await addAccessToken('viewer', SITE, null);
    await bearer(token);
    await store.writeUnaudited(undefined, async (tx) => {
      const row = await tx.accessTokens.find(id);
      if (row !== undefined)
        await tx.accessTokens.change(row, { tokenHash: tokenHash(newToken('access')) }, nowMs);
    });
    expect(await problem({ authorization: `Bearer ${token}` })).toBe('authentication_required');
  });

  test('when access tokens were used is written in batches, and leaves their version alone', async () => {
    const { id, token } = await addAccessToken('viewer', SITE, null);
    const other = await addAccessToken('viewer', SITE, null);
    const lastUsed = async (of: string) => (await store.read((tx) => tx.accessTokens.find(of)))?.lastUsedAtMs;
    nowMs += 5000;
    await bearer(token);
    await bearer(token);
    expect(await lastUsed(id)).toBeNull();
    await usage.flush();
    expect(await lastUsed(id)).toBe(NOW_MS + 5000);
    expect(await lastUsed(other.id)).toBeNull();
    expect((await store.read((tx) => tx.accessTokens.find(id)))?.version).toBe(1);
    await store.writeUnaudited(undefined, (tx) => tx.accessTokens.remove(id));
    usage.note(id);
    await usage.flush();
    expect(await store.read((tx) => tx.accessTokens.find(id))).toBeUndefined();
  });

  test('the jobs write it too, and once more when they stop', async () => {
    const { id, token } = await addAccessToken('viewer', SITE, null);
    const failures: unknown[] = [];
    const stop = startOperatorJobs({
      store,
      nowMs: now,
      tokenUsage: usage,
      report: (error) => failures.push(error),
      usageRoundMs: 20,
    });
    const lastUsed = async () =>
      (await store.read((tx) => tx.accessTokens.find(id)))?.lastUsedAtMs ?? undefined;
    await bearer(token);
    expect(await waitFor('the first batch', lastUsed)).toBe(NOW_MS);
    nowMs += 1000;
    await bearer(token);
    await stop();
    expect(await lastUsed()).toBe(NOW_MS + 1000);
    expect(failures).toEqual([]);
  });

  test('a session has the roles of its operator and groups, and no others', async () => {
    const sessions = createSessions({ store, lifetimeMs: 60_000, nowMs: now });
    const { token, expiresAtMs } = await sessions.start(ADA, 'browser', 'req_1');
    const grant = (principal: string, role: Role, scope: Scope) => ({
      id: newId('roleGrant', nowMs),
      principal,
      role,
      scopeKind: scope.kind,
      scopeId: scope.id,
      createdAtMs: nowMs,
      createdBy: 'bootstrap',
    });
    await store.writeUnaudited(undefined, async (tx) => {
      await tx.operators.addGrant(grant('oidc:https://idp.example|ada', 'viewer', INSTALLATION));
      await tx.operators.addGrant(grant('group:platform', 'operator', SITE));
      await tx.operators.addGrant(grant('group:ada', 'admin', INSTALLATION));
      await tx.operators.addGrant(grant('oidc:https://idp.example|platform', 'admin', INSTALLATION));
    });
    const principal = await operators.authenticate({ authorization: undefined, sessionCookie: token });
    expect(principal).toMatchObject({ actor: 'oidc:https://idp.example|ada', via: 'session', expiresAtMs });
    expect(principal.roles).toHaveLength(2);
    expect(principal.roles).toEqual(
      expect.arrayContaining([
        { role: 'viewer', scope: INSTALLATION },
        { role: 'operator', scope: SITE },
      ]),
    );
    nowMs += 60_000;
    expect(await problem({ sessionCookie: token })).toBe('authentication_required');
  });

  test('nothing else is a credential', async () => {
    const { token } = await addAccessToken('admin', INSTALLATION, null);
    const target = newToken('target');
    const refused: readonly Partial<Credentials>[] = [
      {},
      { authorization: '' },
      { authorization: token },
      { authorization: `Basic ${token}` },
      { authorization: `Bearer ${token} ` },
      { authorization: `Bearer ${token},x` },
      { authorization: `Bearer ${token}\u0000` },
      { authorization: `Bearer ${token.toUpperCase()}` },
      { authorization: `Bearer ${token.replace('pga_', 'pgs_')}` },
      { authorization: `Bearer ${tokenHash(token)}` },
      { authorization: `Bearer ${target}` },
      { authorization: 'Proofgate-Key 1.x' },
      { sessionCookie: token },
      { sessionCookie: '' },
      { sessionCookie: newToken('session') },
      // A valid cookie does not make up for an invalid header.
      { authorization: 'Bearer x', sessionCookie: newToken('session') },
    ];
    for (const credentials of refused) expect(await problem(credentials)).toBe('authentication_required');
    expect((await bearer(token)).via).toBe('access_token');
  });

  test('sessions and sign-ins that are over are removed, living ones stay', async () => {
    const sessions = createSessions({ store, lifetimeMs: 60_000, nowMs: now });
    const first = await sessions.start(ADA, 'browser', 'req_1');
    nowMs += 30_000;
    const second = await sessions.start(ADA, 'browser', 'req_2');
    await store.writeUnaudited(undefined, async (tx) => {
      await tx.operators.addSignIn({ stateHash: 'over', sealed: 'x', expiresAtMs: nowMs });
      await tx.operators.addSignIn({ stateHash: 'living', sealed: 'x', expiresAtMs: nowMs + 60_000 });
    });
    nowMs += 30_001;
    await pruneOperatorRecords(store, nowMs);
    const left = await store.writeUnaudited(undefined, async (tx) => ({
      first: await tx.operators.session(tokenHash(first.token)),
      second: await tx.operators.session(tokenHash(second.token)),
      over: await tx.operators.takeSignIn('over'),
      living: await tx.operators.takeSignIn('living'),
    }));
    expect(left).toMatchObject({ first: undefined, over: undefined });
    expect(left.second?.principal).toBe('oidc:https://idp.example|ada');
    expect(left.living?.sealed).toBe('x');
  });
});
