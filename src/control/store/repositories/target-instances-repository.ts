import { inParts, type RowOf } from './records.ts';
import { Repository } from './repository.ts';

type Instance = RowOf<'targetInstance'>;

/** The verifiers that share a target's token, as they reported themselves. */
export class TargetInstances extends Repository {
  /** Those that sent a request after the time, or may use a bundle now. */
  ofSite(siteId: string, sinceMs: number, nowMs = sinceMs): Promise<readonly Instance[]> {
    return this.db
      .selectFrom('targetInstance')
      .selectAll()
      .where('siteId', '=', siteId)
      .where((of) => of.or([of('lastSeenAtMs', '>', sinceMs), of('freshUntilMs', '>', nowMs)]))
      .orderBy('instanceId')
      .execute();
  }

  /** Of the attached ones among the targets. */
  async ofAttached(targetIds: readonly string[]): Promise<ReadonlyMap<string, readonly Instance[]>> {
    const found = new Map<string, Instance[]>();
    for (const ids of inParts(targetIds)) {
      const attached = await this.db
        .selectFrom('target')
        .select('id')
        .where('id', 'in', ids)
        .where('state', '=', 'attached')
        .execute();
      for (const { id } of attached) found.set(id, []);
      const rows = await this.db
        .selectFrom('targetInstance')
        .selectAll()
        .where('targetId', 'in', ids)
        .execute();
      for (const row of rows) found.get(row.targetId)?.push(row);
    }
    return found;
  }

  /** Leaves acknowledgements as they are: another transaction may write them. */
  async put(rows: readonly Instance[]): Promise<void> {
    const seen = rows.map(
      ({ ackedAtMs: _, ackedHead: __, ackedRevision: ___, signedAtMs: ____, ...row }) => row,
    );
    await this.putAll('targetInstance', ['targetId', 'instanceId'], seen);
  }

  /** As {@link put}, with acknowledgements. */
  async putAcknowledged(rows: readonly Instance[]): Promise<void> {
    await this.putAll('targetInstance', ['targetId', 'instanceId'], rows);
  }

  async removeAll(targetId: string): Promise<void> {
    await this.delete('targetInstance', { targetId });
  }

  async remove({ instanceId, targetId }: Instance): Promise<void> {
    await this.delete('targetInstance', { targetId, instanceId });
  }
}
