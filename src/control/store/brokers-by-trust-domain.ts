/**
 * Migration: brokers get the trust domain of their definition as a part of their name. SQLite cannot change a primary key,
 * so the table is replaced.
 */
import { type Kysely, sql } from 'kysely';
import { parsePublicJwk, thumbprintOf } from '../../protocol/public-key.ts';
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';
import type { Dialect } from './first-schema.ts';

/** A broker as 0.3.0 and earlier versions stored it. */
interface StoredBroker {
  readonly site: string;
  readonly issuer: string;
  readonly definition: string;
  readonly version: unknown;
  readonly created: unknown;
  readonly updated: unknown;
}

export async function addBrokerTrustDomain(migrated: Kysely<unknown>, { text }: Dialect): Promise<void> {
  const db = migrated.withoutPlugins();
  await sql
    .raw(
      `create table broker_of_domain (site_id ${text} not null references site (id), issuer ${text} not null,
        trust_domain ${text} not null, url ${text}, definition ${text} not null, key_pins ${text} not null,
        version bigint not null, created_at_ms bigint not null, updated_at_ms bigint not null,
        primary key (site_id, issuer, trust_domain))`,
    )
    .execute(db);
  const { rows } = await sql<StoredBroker>`select site_id as site, issuer, definition, version,
    created_at_ms as created, updated_at_ms as updated from broker`.execute(db);
  for (const { site, issuer, definition, version, created, updated } of rows) {
    const { trustDomain, thumbprints } = readDefinition(definition);
    // The last change at the latest pinned all of its keys.
    const pins = JSON.stringify(Object.fromEntries(thumbprints.map((each) => [each, Number(updated)])));
    await sql`insert into broker_of_domain (site_id, issuer, trust_domain, definition, key_pins, version, created_at_ms,
      updated_at_ms) values (${site}, ${issuer}, ${trustDomain}, ${definition}, ${pins}, ${version}, ${created},
      ${updated})`.execute(db);
  }
  await sql.raw('drop table broker').execute(db);
  await sql.raw('alter table broker_of_domain rename to broker').execute(db);
}

/** @throws Error for a definition that no version of Control stored */
function readDefinition(definition: string): {
  readonly trustDomain: string;
  readonly thumbprints: readonly string[];
} {
  const stored: unknown = JSON.parse(definition);
  if (!isJsonObject(stored) || typeof stored.trust_domain !== 'string') {
    throw new Error('a stored broker has no trust domain');
  }
  const keys: readonly JsonObject[] = Array.isArray(stored.keys) ? stored.keys.filter(isJsonObject) : [];
  const thumbprints = keys.flatMap(({ jwk }) => {
    const key = parsePublicJwk(jwk);
    return key === undefined ? [] : [thumbprintOf(key)];
  });
  return { trustDomain: stored.trust_domain, thumbprints };
}
