import { setImmediate as nextTurn } from 'node:timers/promises';
import { sql } from 'kysely';
import { inParts, type RowOf } from './records.ts';
import { Repository } from './repository.ts';

export type KeyUse = Pick<RowOf<'keyUse'>, 'keyId' | 'usedAtSeconds'>;

/** When derived keys were last used: one row a key and target, as targets reported it. */
export class KeyUses extends Repository {
  /**
   * Takes the uses of derived keys of the target's site, if the target is attached; others are ignored. No time goes back.
   * @param uses one for each key
   */
  async put(targetId: string, uses: readonly KeyUse[]): Promise<void> {
    // In one order, so that two transactions never wait for each other.
    const ordered = uses.toSorted((a, b) => (a.keyId < b.keyId ? -1 : 1));
    for (const part of inParts(ordered)) {
      const reported = part.map(({ keyId, usedAtSeconds }) => sql`(${keyId}, ${usedAtSeconds})`);
      // SQLite joins in this order; it would otherwise read every key. PostgreSQL takes untyped parameters for text.
      await sql`with reported (key_id, used_at) as (values ${sql.join(reported)})
        insert into key_use (key_id, target_id, used_at_seconds)
        select derived_key.key_id, target.id, cast(reported.used_at as bigint)
          from target cross join reported cross join derived_key
          where target.id = ${targetId} and target.state = 'attached'
            and derived_key.key_id = reported.key_id and derived_key.site_id = target.site_id
          order by derived_key.key_id
        on conflict (key_id, target_id) do update set used_at_seconds = excluded.used_at_seconds
          where excluded.used_at_seconds > key_use.used_at_seconds`.execute(this.db);
      if (part.length < ordered.length) await nextTurn();
    }
  }

  /** The last use of each of the keys at any target; none of a key without a reported use. */
  async lastOf(keyIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>();
    for (const ids of inParts(keyIds)) {
      const rows = await this.db
        .selectFrom('keyUse')
        .select(['keyId', (of) => of.fn.max('usedAtSeconds').as('usedAtSeconds')])
        .where('keyId', 'in', ids)
        .groupBy('keyId')
        .execute();
      for (const { keyId, usedAtSeconds } of rows) found.set(keyId, Number(usedAtSeconds));
    }
    return found;
  }

  /** The last use of the key at each target that reported one, the newest first. */
  byTarget(keyId: string) {
    return this.db
      .selectFrom('keyUse')
      .innerJoin('target', 'target.id', 'keyUse.targetId')
      .select(['target.id as targetId', 'target.name', 'keyUse.usedAtSeconds'])
      .where('keyUse.keyId', '=', keyId)
      .orderBy('keyUse.usedAtSeconds', 'desc')
      .orderBy('target.id')
      .execute();
  }
}
