/** Tests the migration of access tokens, which takes their makers from the audit trail. */
import { describe, expect, it } from '@jest/globals';
import { newVersion } from '../../../src/control/resource/change.ts';
import { NOW_MS } from './databases.ts';
import { DROP_FROM_TOKEN_MAKERS, reopenedDatabases } from './reopened-databases.ts';

const DATABASES = reopenedDatabases();

describe.each(['sqlite', 'postgres'] as const)('%s', (name) => {
  const { open, run } = DATABASES[name];

  it('names the maker that the trail knows, and none for a token whose event was pruned', async () => {
    const before = await open();
    await before.writeUnaudited(undefined, async ({ accessTokens, audit }) => {
      for (const id of ['at_known', 'at_pruned']) {
        await accessTokens.add({
          ...{ id, name: id, tokenHash: id, role: 'viewer', scopeKind: 'installation', scopeId: '' },
          ...{ expiresAtMs: null, lastUsedAtMs: null, createdBy: 'lost', ...newVersion(NOW_MS) },
        });
      }
      const event = { resource: { kind: 'access_token', id: 'at_known' }, place: {} };
      await audit.append({ ...event, kind: 'proofgate.control.access_token.create', actor: 'maker' }, NOW_MS);
      await audit.append({ ...event, kind: 'proofgate.control.access_token.rotate', actor: 'other' }, NOW_MS);
    });
    await before.close();
    for (const statement of DROP_FROM_TOKEN_MAKERS) await run(statement);
    await run("delete from kysely_migration where name >= '0012-access-token-makers'");
    const after = await open();
    const makers = await after.read(async ({ accessTokens }) =>
      Promise.all(['at_known', 'at_pruned'].map(async (id) => (await accessTokens.find(id))?.createdBy)),
    );
    expect(makers).toEqual(['maker', null]);
    await after.close();
  });
});
