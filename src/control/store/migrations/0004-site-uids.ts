/**
 * Gives each Auth Site a unique ID that is never reused, unlike its identifier, and adds it to audit events. Events of
 * deleted sites get none.
 */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from './0001-first.ts';

/** An event belongs to a site if it is of its fleet and not older than the site; older ones are of a deleted site. */
const STATEMENTS = ({ text }: Dialect): readonly string[] => [
  `alter table site add column uid ${text}`,
  `update site set uid = id || '@' || created_at_ms`,
  'create unique index site_uid on site (uid)',
  `alter table audit_event add column site_uid ${text}`,
  `update audit_event set site_uid = (select site.uid from site where site.id = audit_event.site_id
    and site.fleet_id = audit_event.fleet_id and site.created_at_ms <= audit_event.at_ms) where site_id is not null`,
  'create index audit_event_site_uid on audit_event (site_uid, seq)',
];

export function siteUids(dialect: Dialect) {
  return {
    async up(db: Kysely<unknown>): Promise<void> {
      for (const statement of STATEMENTS(dialect)) await sql.raw(statement).execute(db);
    },
  };
}
