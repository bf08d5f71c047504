import type { Page, RowOf } from './records.ts';
import type { Having } from './repository.ts';
import { VersionedTable } from './versioned-table.ts';

/** A broker's position in the order of lists, by issuer and trust domain. Neither contains a space, which sorts first. */
export function brokerPlace({
  issuer,
  trustDomain,
}: Pick<RowOf<'broker'>, 'issuer' | 'trustDomain'>): string {
  return `${issuer} ${trustDomain}`;
}

export class BrokerTable extends VersionedTable<'broker'> {
  /** The brokers of an issuer, ordered by trust domain. */
  ofIssuer(siteId: string, issuer: string): Promise<readonly RowOf<'broker'>[]> {
    return this.rows('broker', { siteId, issuer }, 'trustDomain');
  }

  /** Pages follow {@link brokerPlace}. */
  override async list(having: Having<'broker'>, { after, limit }: Page): Promise<readonly RowOf<'broker'>[]> {
    let query = this.db
      .selectFrom('broker')
      .selectAll()
      .where((is) => is.and(having));
    if (after !== undefined) {
      const [issuer = '', trustDomain = ''] = after.split(' ');
      query = query.where((is) =>
        is(is.refTuple('issuer', 'trustDomain'), '>', is.tuple(issuer, trustDomain)),
      );
    }
    return query.orderBy('issuer').orderBy('trustDomain').limit(limit).execute();
  }
}
