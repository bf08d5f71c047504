/** Runs every query on both databases. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ControlStore } from '../../../src/control/store/port.ts';
import { databaseKinds } from './databases.ts';
import { MethodRecord } from './method-record.ts';
import { benchOf } from './repositories/bench.ts';
import {
  clientCases,
  oauthIssuerCases,
  policyCases,
  routeCases,
  signingKeyCases,
  targetCases,
} from './repositories/configuration.ts';
import { enrollmentCases, keyCases } from './repositories/enrollment.ts';
import { hierarchyCases } from './repositories/hierarchy.ts';
import { auditCases, operatorCases } from './repositories/operators.ts';
import {
  blockedCallerCases,
  changeCases,
  distributionCases,
  publicationCases,
} from './repositories/publishing.ts';
import { sourceCases } from './repositories/sources.ts';

/** Inherited from the class of versioned tables; the program calls none of them. */
const UNUSED = [
  'AccessTokenTable.addAll',
  ...['AccessTokenTable', 'BrokerTable'].flatMap(writesMany),
  ...['Enrollments.changeAll', 'Enrollments.list', 'Enrollments.remove', 'Enrollments.removeAll'],
  ...['Keys.changeAll', 'Keys.list', 'Keys.remove', 'Keys.removeAll'],
  ...['OAuthIssuerTable.addAll', 'OAuthIssuerTable.changeAll', 'OAuthIssuerTable.removeAll'],
  ...['Policies.changeAll', 'Policies.list', 'Policies.remove', 'Policies.removeAll'],
  'Sites.addAll',
  ...['Sites', 'Sources'].flatMap(writesMany),
  ...['Targets.changeAll', 'Targets.remove', 'Targets.removeAll'],
];

function writesMany(table: string): readonly string[] {
  return [`${table}.changeAll`, `${table}.removeAll`];
}

const record = new MethodRecord();

describe.each(databaseKinds())('$name', (database) => {
  let store: ControlStore;
  beforeAll(async () => {
    record.reset();
    await database.start();
    store = await (await database.fresh())();
  });
  afterAll(async () => {
    await store.close();
    await database.stop();
  });

  const bench = benchOf(() => store);
  describe('hierarchy', () => hierarchyCases(bench));
  describe('clients', () => clientCases(bench));
  describe('OAuth issuers', () => oauthIssuerCases(bench));
  describe('routes', () => routeCases(bench));
  describe('targets', () => targetCases(bench));
  describe('signing keys', () => signingKeyCases(bench));
  describe('policies', () => policyCases(bench));
  describe('sources', () => sourceCases(bench));
  describe('enrollments', () => enrollmentCases(bench));
  describe('keys', () => keyCases(bench));
  describe('blocked callers', () => blockedCallerCases(bench));
  describe('changes', () => changeCases(bench));
  describe('distribution', () => distributionCases(bench));
  describe('publication', () => publicationCases(bench));
  describe('operators', () => operatorCases(bench));
  describe('audit', () => auditCases(bench));

  // Service tests run queries on SQLite only, so each new query needs a case here.
  it('every method that the program uses of every repository was called', () => {
    expect(record.known.size).toBeGreaterThan(100);
    expect(record.missing).toEqual(UNUSED);
  });
});
