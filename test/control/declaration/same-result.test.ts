/** A dry run compares in memory, and applying writes many rows at once: both must say and do the same. Any pair of declarations. */
import { afterAll, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isJsonObject } from '../../../src/protocol/strict-json.ts';
import {
  type Declaration,
  DeclarationFixture,
  databaseServers,
  declared,
  SITE_ID,
  stepsOf,
} from './declaration-fixture.ts';

const RUNS = 25;
const ALL = { after: undefined, limit: 1000 };
const servers = databaseServers();
afterAll(async () => {
  for (const server of servers) await server.stop();
});

const grant = fc.record({
  resource: fc.constantFrom('a', 'b', 'c'),
  access: fc.constantFrom('read' as const, 'write' as const),
});
const client = fc.record({
  client_id: fc.constantFrom('one', 'two', 'three', 'four'),
  subject: fc.constantFrom('client:x', 'client:y', 'client:z'),
  context: fc.constantFrom({}, { team: 'red' }, { team: 'blue', tier: '1' }),
  grants: fc.uniqueArray(grant, { selector: ({ resource }) => resource }),
});
const route = fc.record({
  route_id: fc.constantFrom('r1', 'r2', 'r3'),
  method: fc.constantFrom('GET', 'POST'),
  max_staleness_seconds: fc.constantFrom(10, 20),
  subject: fc.constantFrom('spiffe://shop.example/a', 'spiffe://shop.example/b'),
});
const site = fc.record({
  clients: fc.uniqueArray(client, { selector: ({ client_id: id }) => id }),
  routes: fc.uniqueArray(route, { selector: ({ route_id: id }) => id }),
  prune: fc.boolean(),
});
type Sample = typeof site extends fc.Arbitrary<infer T> ? T : never;

/** The declared site, with these clients and routes beside its own. */
function declaration({ clients, routes }: Sample): Declaration {
  return declared((base) => {
    const [pattern] = base.routes ?? [];
    base.clients?.push(...clients);
    for (const { subject, ...members } of routes) {
      const source = { ...pattern?.allowed_sources[0], subject_prefix: undefined, subject_exact: subject };
      base.routes?.push({
        ...{ ...pattern, ...members, path_template: `/${members.route_id}` },
        allowed_sources: [JSON.parse(JSON.stringify(source))],
      } as never);
    }
  });
}

it.each(servers)(
  '$name',
  async (server) => {
    await server.start();
    const fixture = await DeclarationFixture.open(server);
    await fixture.put(declared());
    await fixture.settled();
    await fc.assert(
      fc.asyncProperty(site, async (sample) => {
        const [wanted, query] = [declaration(sample), `prune=${sample.prune}`];
        const compared = await fixture.compare(wanted, `&${query}&contents=true`);
        expect(compared.status).toBe(200);
        const before = await fixture.read((tx) => tx.audit.newestSeq());
        const applied = await fixture.put(wanted, `?${query}`, { ifMatch: compared.etag });
        expect(applied.status).toBe(200);
        const { contents, ...planned } = compared.json;
        expect(applied.json).toEqual({ ...planned, dry_run: false, activating: expect.anything() });
        // Nothing publishes here, so no event could be of this site.
        expect(contents).not.toHaveProperty('published');
        const again = await fixture.compare(wanted, `&${query}&contents=true`);
        expect(contentOf(again.json.contents, 'before')).toEqual(contentOf(contents, 'before', 'after'));
        const [events, clients] = await fixture.read(async (tx) => [
          await tx.audit.list({ limit: 1000, siteId: SITE_ID, reach: { kind: 'everything' } }),
          await tx.clients.list({ siteId: SITE_ID }, ALL),
        ]);
        expect(events.filter(({ seq }) => seq > before)).toHaveLength(stepsOf(applied).length);
        for (const { client_id: id, subject, context } of sample.clients) {
          const row = clients.find(({ clientId }) => clientId === id);
          expect([row?.subject, JSON.parse(row?.context ?? '')]).toEqual([subject, context]);
        }
        expect(stepsOf(await fixture.compare(wanted, `&${query}`))).toEqual([]);
      }),
      { numRuns: RUNS },
    );
    await fixture.close();
  },
  240_000,
);

/** Members of a bundle, their lists in one order. */
function contentOf(contents: unknown, ...sides: readonly ('before' | 'after')[]): object {
  const members = sides.map((side) => (isJsonObject(contents) ? contents[side] : undefined));
  return Object.fromEntries(
    Object.entries(Object.assign({}, ...members)).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.map(sorted).sort() : value,
    ]),
  );
}

/** Text of an entry, with grants in one order. */
function sorted(entry: unknown): string {
  if (!isJsonObject(entry)) return JSON.stringify(entry);
  const { grants, ...rest } = entry;
  const names = Object.keys(rest).sort();
  const texts = Array.isArray(grants)
    ? grants.map((each) => JSON.stringify(each, ['access', 'resource'])).sort()
    : [];
  return JSON.stringify([names.map((name) => [name, rest[name]]), texts]);
}
