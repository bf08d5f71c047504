/**
 * Every list of Control's API is a range of an index, for every reach and filter, on both databases: no statement reads a
 * whole table or sorts more than a page. The pages of the audit trail have the rows that a plain condition has.
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Reach } from '../../../src/control/domain/roles.ts';
import { siteSigningProfiles } from '../../../src/control/publishing/signing-profiles.ts';
import type { Page } from '../../../src/control/store/repositories/records.ts';
import type { Transaction } from '../../../src/control/store/transaction.ts';
import { NOW_MS } from './databases.ts';
import { BIG_ENVIRONMENT, BIG_FLEET, BIG_SITE, EVENTS, fill } from './many-rows.ts';
import { type PlannedDatabase, plannedPostgres, plannedSqlite } from './planned-database.ts';
import { below, EVERYTHING } from './repositories/bench.ts';

/** What a handler asks for: one more than the largest page. */
const LIMIT = 201;
/** Of one statement: of the positions of a page or a step, or of the rows at them. */
const MOST_ROWS = 500;

const some = (count: number, name: (n: number) => string) =>
  Array.from({ length: count }, (_, n) => name(n * 3));
const REACHES: Readonly<Record<string, Reach>> = {
  installation: EVERYTHING,
  'one environment': below({ environmentIds: ['env_7'] }),
  'an environment with old events only': below({ environmentIds: ['env_0'] }),
  'several environments': below({ environmentIds: some(5, (n) => `env_${n}`) }),
  'an environment with many fleets': below({ environmentIds: [BIG_ENVIRONMENT] }),
  'one fleet': below({ fleetIds: ['flt_42'] }),
  'a fleet with many sites': below({ fleetIds: [BIG_FLEET] }),
  'one site': below({ siteIds: ['site-777'] }),
  'a site with old events only': below({ siteIds: ['site-3'] }),
  'thirty sites': below({ siteIds: some(30, (n) => `site-${n}`) }),
  'an environment, a fleet and a site in each other': below({
    environmentIds: ['env_7'],
    fleetIds: ['flt_36'],
    siteIds: ['site-730', 'site-1500'],
  }),
  nothing: below({}),
};

const AUDIT_FILTERS = [
  {},
  { siteId: 'site-777' },
  { siteId: 'site-3' },
  { fleetId: 'flt_38' },
  { environmentId: 'env_7' },
  { kind: 'kind3' },
  { kind: 'rare' },
  { resourceId: 'res-777' },
  { siteId: 'site-777', kind: 'kind3' },
  { environmentId: 'env_7', kind: 'rare' },
  { fleetId: 'flt_38', resourceId: 'res-777' },
  { environmentId: 'env_3', siteId: 'site-777' },
  { environmentId: 'env_7', kind: 'unknown' },
  { actor: 'bootstrap' },
  { actor: 'unknown' },
  { siteId: 'site-777', actor: 'unknown' },
  // The events of a short period are few, and PostgreSQL reads them by their age.
  { sinceMs: 0.9 * EVENTS },
  { untilMs: 0.1 * EVENTS },
  { siteId: 'site-777', sinceMs: 0.6 * EVENTS, untilMs: 0.8 * EVENTS },
];

interface Case {
  readonly name: string;
  /** Of the API. */
  readonly operation: string;
  readonly list: (tx: Transaction, page: Page) => Promise<readonly unknown[]>;
  /** A position in the middle. */
  readonly middle: string;
}

function ofSite(
  operation: string,
  middle: string,
  list: (tx: Transaction, siteId: string, page: Page) => Promise<readonly unknown[]>,
): readonly Case[] {
  return ['site-777', BIG_SITE].map((siteId) => ({
    name: `${operation} of ${siteId}`,
    operation,
    list: (tx, page) => list(tx, siteId, page),
    middle,
  }));
}

const KEY_FILTERS = [
  {},
  { clientId: 'client-42' },
  { thumbprint: 'print-1000' },
  { subject: 'app-77' },
  { subject: 'absent' },
  ...(['active', 'expired', 'revoked'] as const).map((status) => ({ state: { status, nowSeconds: 90_000 } })),
  { clientId: 'client-42', state: { status: 'revoked', nowSeconds: 1 } },
] as const;

const CASES: readonly Case[] = [
  ...Object.entries(REACHES).flatMap(([name, reach]): readonly Case[] => [
    ...AUDIT_FILTERS.map(
      (filter): Case => ({
        name: `listAuditEvents, ${name}, ${JSON.stringify(filter)}`,
        operation: 'listAuditEvents',
        list: (tx, { after, limit }) =>
          tx.audit.list({
            reach,
            ...filter,
            limit,
            beforeSeq: after === undefined ? undefined : Number(after),
          }),
        middle: String(EVENTS / 2),
      }),
    ),
    {
      name: `listEnvironments, ${name}`,
      operation: 'listEnvironments',
      list: (tx, page) => tx.hierarchy.reachedEnvironments(reach, page),
      middle: 'env_5',
    },
    {
      name: `listEnvironments of a name, ${name}`,
      operation: 'listEnvironments',
      list: (tx, page) => tx.hierarchy.reachedEnvironments(reach, page, 'absent'),
      middle: 'env_5',
    },
    {
      name: `listSites, ${name}`,
      operation: 'listSites',
      list: (tx, page) => tx.hierarchy.reachedSites(reach, page),
      middle: 'site-5',
    },
    {
      name: `listRoleGrants, ${name}`,
      operation: 'listRoleGrants',
      list: (tx, page) => tx.operators.reachedGrants(reach, page),
      middle: 'rg_5',
    },
    {
      name: `listAccessTokens, ${name}`,
      operation: 'listAccessTokens',
      list: (tx, page) => tx.operators.reachedTokens(reach, page),
      middle: 'at_5',
    },
    {
      name: `listAccessTokens of a name, ${name}`,
      operation: 'listAccessTokens',
      list: (tx, page) => tx.operators.reachedTokens(reach, page, 'absent'),
      middle: 'at_5',
    },
  ]),
  ...['env_7', BIG_ENVIRONMENT].flatMap((environmentId) =>
    [undefined, 'absent'].map(
      (name): Case => ({
        name: `listFleets of ${environmentId}, ${name}`,
        operation: 'listFleets',
        list: (tx, page) => tx.fleets.list({ environmentId, name }, page),
        middle: 'flt_5',
      }),
    ),
  ),
  ...['flt_42', BIG_FLEET].map(
    (fleetId): Case => ({
      name: `listSitesOfFleet of ${fleetId}`,
      operation: 'listSitesOfFleet',
      list: (tx, page) => tx.sites.list({ fleetId }, page),
      middle: 'site-5',
    }),
  ),
  ...[undefined, 'oidc:7'].map(
    (principal): Case => ({
      name: `listSessions of ${principal ?? 'all'}`,
      operation: 'listSessions',
      list: (tx, page) => tx.operators.sessions({ principal, nowMs: NOW_MS }, page),
      middle: 'hash5',
    }),
  ),
  ...ofSite('listBrokers', 'https://3000 td5', (tx, siteId, page) => tx.brokers.list({ siteId }, page)),
  ...ofSite('listOAuthIssuers', 'https://5', (tx, siteId, page) => tx.oauthIssuers.list({ siteId }, page)),
  ...ofSite('listBlockedCallers', 'n5', (tx, siteId, page) => tx.blockedCallers.list(siteId, page)),
  ...ofSite('listTargets', 'tgt_5', (tx, siteId, page) => tx.targets.list({ siteId }, page)),
  ...ofSite('listTargets', 'tgt_5', (tx, siteId, page) => tx.targets.list({ siteId, name: 'absent' }, page)),
  ...ofSite('listClients', 'client-5', (tx, siteId, page) => tx.clients.list({ siteId }, page)),
  ...ofSite('listSiteGrants', 'client-5', (tx, siteId, { after, limit }) =>
    tx.clients.siteGrantsPage(
      siteId,
      after === undefined ? after : { clientId: after, resource: 'res-5' },
      limit,
    ),
  ),
  ...ofSite('listGrants', 'res-5', (tx, siteId, page) => tx.clients.grantsPage(siteId, 'client-42', page)),
  ...ofSite('listRoutes', 'r-5', (tx, siteId, page) => tx.routes.list({ siteId }, page)),
  ...ofSite('listSources', 'src_5', (tx, siteId, page) => tx.sources.list({ siteId }, page)),
  ...ofSite('listSources', 'src_5', (tx, siteId, page) =>
    tx.sources.list({ siteId, displayName: 'absent' }, page),
  ),
  ...ofSite('listEnrollmentPolicies', 'pol_5', (tx, siteId, page) => tx.policies.ofSite(siteId, page)),
  ...ofSite('listEnrollmentPolicies', 'pol_5', (tx, siteId, page) =>
    tx.policies.ofSite(siteId, page, 'absent'),
  ),
  ...[
    {},
    { state: 'issued' },
    { state: 'pending_approval' },
    { policyId: 'pol_7' },
    { policyId: 'pol_7', state: 'denied' },
  ].flatMap((filter) =>
    ofSite('listEnrollments', 'enr_5', (tx, siteId, page) =>
      tx.enrollments.ofSite(siteId, page, filter as object),
    ),
  ),
  ...KEY_FILTERS.flatMap((filter) =>
    ofSite('listDerivedKeys', 'dk_5', (tx, siteId, page) => tx.keys.ofSite(siteId, page, filter)),
  ),
  ...ofSite('listBlockedSubjects', 'i5', (tx, siteId, { after, limit }) =>
    tx.keys.blockedSubjects(siteId, {
      after: after === undefined ? after : { issuer: after, subject: 's5' },
      limit,
    }),
  ),
  {
    // It also reads the routes of the site, by their index.
    name: 'listSigningProfiles',
    operation: 'listSigningProfiles',
    list: (tx, { after, limit }) => {
      const selection = after === undefined ? {} : { after: { clientId: after, routeId: '' } };
      return siteSigningProfiles(tx, 'site-777', { ...selection, limit });
    },
    middle: 'client-5',
  },
];

it('covers every list of the API', () => {
  const { paths } = JSON.parse(readFileSync('docs/reference/openapi.json', 'utf8'));
  const operations: readonly {
    readonly operationId?: string;
    readonly parameters?: readonly { name?: string }[];
  }[] = Object.values(paths).flatMap((path) => Object.values(path as object));
  const lists = operations.flatMap(({ operationId, parameters = [] }) =>
    operationId !== undefined && parameters.some(({ name }) => name === 'cursor') ? [operationId] : [],
  );
  expect(new Set(CASES.map(({ operation }) => operation))).toEqual(new Set(lists));
});

/** SQLite plans without statistics, so its plans are those of few rows, too. */
const DATABASES = [
  ['sqlite', plannedSqlite, 0.1],
  ['postgres', plannedPostgres, 1],
] as const;

describe.each(DATABASES)('%s', (_name, open, share) => {
  let database: PlannedDatabase;
  beforeAll(async () => {
    database = await open();
    await fill(database, share);
  });
  afterAll(() => database?.close());

  it('every statement reads a range of an index', async () => {
    const faults: string[] = [];
    for (const { list, middle, name } of CASES) {
      for (const after of [undefined, middle]) {
        const { statements } = await database.read((tx) => list(tx, { after, limit: LIMIT }));
        for (const statement of statements) {
          const found = await database.faultsOf(statement, MOST_ROWS);
          if (found.length > 0) faults.push(`${name}, after ${after}: ${found.join('; ')}: ${statement.sql}`);
        }
      }
    }
    expect(faults).toEqual([]);
  });

  it('last uses find each key by its ID, and read no other key', async () => {
    const uses = some(300, (n) => `dk_${n}`).map((keyId) => ({ keyId, usedAtSeconds: 60 }));
    const { statements } = await database.read((tx) => tx.keyUses.put('tgt_5', uses));
    // libsql keeps an explained INSERT open, so that no later transaction commits. What it selects is the same.
    const selections = statements.map(({ parameters, sql }) => ({
      parameters,
      sql: sql.replace(/insert into key_use \([^)]*\)/, '').replace(/on conflict.*/s, ''),
    }));
    expect(selections.map(({ sql }) => /insert|conflict/.test(sql))).toEqual([false]);
    for (const selection of selections) {
      const faults = await database.faultsOf(selection, MOST_ROWS);
      expect(faults.filter((fault) => /derived_key|: \d+ rows/.test(fault))).toEqual([]);
    }
  });

  it('pages of the audit trail have the rows of the plain condition, in order, each once', async () => {
    let rows = 0;
    for (const [name, reach] of Object.entries(REACHES)) {
      for (const filter of AUDIT_FILTERS) {
        const expected = await plainly(database, reach, filter);
        expect([name, filter, await followed(database, reach, filter)]).toEqual([name, filter, expected]);
        rows += expected.length;
      }
    }
    expect(rows).toBeGreaterThan(3_000);
  });
});

const WANTED = 150;

/** The newest events, by one statement over the whole table. */
async function plainly(
  database: PlannedDatabase,
  reach: Reach,
  filter: Readonly<Record<string, string | number>>,
): Promise<readonly number[]> {
  const list = (ids: readonly string[]) => [...ids, ''].map((id) => `'${id}'`).join(', ');
  const bounds: Readonly<Record<string, string>> = { sinceMs: 'at_ms >=', untilMs: 'at_ms <' };
  const conditions = Object.entries(filter).map(
    ([name, value]) => `${bounds[name] ?? `${name.replace('Id', '_id')} =`} '${value}'`,
  );
  if (reach.kind === 'below') {
    conditions.push(
      `(environment_id in (${list(reach.environmentIds)}) or fleet_id in (${list(reach.fleetIds)})
        or site_uid in (select uid from site where id in (${list(reach.siteIds)})))`,
    );
  }
  const where = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`;
  const rows = await database.rows(
    `select seq from audit_event ${where} order by seq desc limit ${WANTED}`,
    [],
  );
  return rows.map(({ seq }) => Number(seq));
}

/** The newest events, page by page, as the API lists them. */
async function followed(
  database: PlannedDatabase,
  reach: Reach,
  filter: Readonly<Record<string, string | number>>,
): Promise<readonly number[]> {
  const found: number[] = [];
  for (let beforeSeq: number | undefined; found.length < WANTED; ) {
    const before = beforeSeq;
    const { result } = await database.read((tx) =>
      tx.audit.list({ reach, ...filter, limit: 40, beforeSeq: before }),
    );
    found.push(...result.map(({ seq }) => seq));
    const next = result.stoppedAt ?? (result.length === 40 ? found.at(-1) : undefined);
    if (next === undefined) break;
    expect(Number(next)).toBeLessThan(beforeSeq ?? Number.POSITIVE_INFINITY);
    beforeSeq = Number(next);
  }
  return found.slice(0, WANTED);
}
