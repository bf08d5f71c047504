/** Tests the migration of brokers from 0.3.0, which kept one for each issuer. */
import { describe, expect, it } from '@jest/globals';
import { addGround } from '../../support/control/store-rows.ts';
import { DROP_FROM_BLOCKED_CALLERS, reopenedDatabases } from './reopened-databases.ts';

const DATABASES = reopenedDatabases();

/** The table of 0.3.0, as its first migration created it. */
const TABLE_OF_0_3_0 = `create table broker (site_id text not null references site (id), issuer text not null, definition text not null,
  version bigint not null, created_at_ms bigint not null, updated_at_ms bigint not null, primary key (site_id, issuer))`;
const UNDO = [
  ...DROP_FROM_BLOCKED_CALLERS,
  'drop table broker',
  TABLE_OF_0_3_0,
  "delete from kysely_migration where name >= '0006-brokers-by-trust-domain'",
];

const ISSUER = 'https://broker.shop.example';
const DEFINITION = JSON.stringify({
  issuer: ISSUER,
  trust_domain: 'shop.example',
  subject_prefixes: ["spiffe://shop.example/o'hara/"],
  key_binding: 'attested_workload',
  keys: [
    {
      kid: 'broker-1',
      alg: 'Ed25519',
      jwk: { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' },
    },
  ],
});

describe.each(['sqlite', 'postgres'] as const)('%s', (name) => {
  const { open, run } = DATABASES[name];

  it('keeps a broker with its version, names it by its trust domain and dates its keys', async () => {
    const before = await open();
    const { siteId } = await addGround(before);
    const other = await addGround(before);
    await before.close();
    for (const statement of UNDO) await run(statement);
    for (const site of [siteId, other.siteId]) {
      await run(
        `insert into broker values ('${site}', '${ISSUER}', '${DEFINITION.replaceAll("'", "''")}', 7, 1000, 2000)`,
      );
    }

    const after = await open();
    const broker = {
      siteId,
      issuer: ISSUER,
      trustDomain: 'shop.example',
      url: null,
      definition: DEFINITION,
      // Its RFC 7638 thumbprint is in RFC 8037 appendix A.3.
      keyPins: '{"kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k":2000}',
      version: 7,
      createdAtMs: 1000,
      updatedAtMs: 2000,
    };
    const found = await after.read((tx) => tx.brokers.ofIssuer(siteId, ISSUER));
    expect(found).toEqual([broker]);
    const second = { ...broker, trustDomain: 'partner.example' };
    await after.writeUnaudited({ kind: 'site', siteId }, (tx) => tx.brokers.add(second));
    await after.close();

    // Another start migrates nothing.
    const again = await open();
    const brokers = await again.read((tx) => tx.brokers.ofIssuer(siteId, ISSUER));
    expect(brokers.map(({ trustDomain }) => trustDomain)).toEqual(['partner.example', 'shop.example']);
    await again.close();
  });
});
