/**
 * Tests the migration of audit events from 0.2.4: events of existing sites get the site's uid, events of deleted sites get
 * none.
 */
import { describe, expect, it } from '@jest/globals';
import { addGround, entry } from '../../support/control/store-rows.ts';
import { NOW_MS } from './databases.ts';
import { DROP_FROM_BLOCKED_CALLERS, reopenedDatabases } from './reopened-databases.ts';

const DATABASES = reopenedDatabases();

/** Reverts the schema to that of 0.2.4. */
const UNDO = [
  'alter table enrollment drop column token_key_thumbprint',
  ...DROP_FROM_BLOCKED_CALLERS,
  'drop index site_uid',
  'drop index audit_event_site_uid',
  'alter table site drop column uid',
  'alter table audit_event drop column site_uid',
  'alter table target drop column ahead_revision',
  'alter table target drop column ahead_since_ms',
  'alter table target drop column raised_revisions',
  "delete from kysely_migration where name > '0002-policy-keys'",
];

describe.each(['sqlite', 'postgres'] as const)('%s', (name) => {
  const { open, run } = DATABASES[name];

  it('keeps events of a living site, and not those of one that had its identifier before', async () => {
    const before = await open();
    const former = await addGround(before);
    const living = await addGround(before);
    const { siteId } = living;
    await before.writeUnaudited(undefined, async ({ audit }) => {
      await audit.append(entry('elsewhere', siteId), NOW_MS + 1);
      await audit.append(entry('earlier', siteId), NOW_MS - 1);
      await audit.append(entry('own', siteId), NOW_MS + 2);
      await audit.append(entry('gone', 'gone'), NOW_MS + 3);
    });
    await before.close();
    for (const statement of UNDO) await run(statement);
    await run(`update audit_event set fleet_id = '${former.fleetId}' where resource_id = 'elsewhere'`);

    const after = await open();
    const visible = async (siteIds: readonly string[]) => {
      const reach = { kind: 'below', environmentIds: [], fleetIds: [], siteIds } as const;
      const events = await after.read((tx) => tx.audit.list({ reach, limit: 50 }));
      return events.map(({ resourceId }) => resourceId);
    };
    expect(await visible([siteId])).toEqual(['own']);
    expect(await visible(['gone'])).toEqual([]);
    const everything = await after.read((tx) => tx.audit.list({ reach: { kind: 'everything' }, limit: 50 }));
    expect(everything).toHaveLength(4);
    const uids = await after.read(async ({ sites }) =>
      Promise.all([former.siteId, siteId].map(async (id) => (await sites.find(id))?.uid)),
    );
    expect(new Set(uids).size).toBe(2);
    await after.close();
  });
});
