/** What one declaration may cost: steps of an apply, bytes in flight, and who waits for a comparison. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { MAX_DECLARATION_BYTES } from '../../../src/api-contract/declaration-contract.ts';
import { registerDeclarationRoute } from '../../../src/control/api/routes/declaration-api.ts';
import { MAX_SINGLE_STEPS, MAX_STEPS } from '../../../src/control/declaration/comparison.ts';
import type { Declared } from '../../../src/control/declaration/declarations.ts';
import { ApiFixture } from '../api/api-fixture.ts';
import { DeclarationFixture, databaseServers, declared, SITE_ID, stepsOf } from './declaration-fixture.ts';

const [server] = databaseServers();
let fixture: DeclarationFixture;
beforeAll(async () => {
  if (server === undefined) throw new Error('missing');
  fixture = await DeclarationFixture.open(server);
  await fixture.put(declared());
  await fixture.settled();
});
afterAll(async () => {
  await fixture.close();
  await server?.stop();
});

it.each([
  [
    'steps',
    MAX_STEPS + 1,
    (site: ReturnType<typeof declared>, count: number) => {
      const names = Array.from({ length: count }, (_, index) => `c${index}`);
      site.clients?.push(...names.map((name) => ({ client_id: name, subject: name })));
    },
  ],
  [
    'steps that run one by one',
    MAX_SINGLE_STEPS + 1,
    (site: ReturnType<typeof declared>, count: number) => {
      site.targets?.push(...Array.from({ length: count }, (_, index) => `t${index}`));
    },
  ],
])('more %s than one apply may take are shown, and refused with their number', async (_, count, add) => {
  const wanted = declared((site) => add(site, count));
  const compared = await fixture.compare(wanted);
  expect(stepsOf(compared)).toHaveLength(count);
  const refused = await fixture.put(wanted, '', { ifMatch: compared.etag });
  expect([refused.status, refused.code]).toEqual([413, 'request_too_large']);
  expect(refused.text).toContain(String(count));
  expect(stepsOf(await fixture.compare(declared()))).toEqual([]);
});

it('a change between comparing and applying is seen, and nothing is applied', async () => {
  const wanted = declared(({ site }) => Object.assign(site, { display_name: 'Mine' }));
  const { etag } = await fixture.compare(wanted);
  const mutate = fixture.api.store.mutate.bind(fixture.api.store);
  // The change is committed right before the lock is taken.
  Object.assign(fixture.api.store, {
    mutate: async (...args: Parameters<typeof mutate>) => {
      Object.assign(fixture.api.store, { mutate });
      await fixture.api.expect(201, 'POST', `/v1/sites/${SITE_ID}/clients`, {
        body: { client_id: 'meanwhile', subject: 'meanwhile' },
      });
      return mutate(...args);
    },
  });
  const answer = await fixture.put(wanted, '', { ifMatch: etag });
  expect(answer.code).toBe('precondition_failed');
  const site = await fixture.read((tx) => tx.sites.find(SITE_ID));
  expect(site?.displayName).not.toBe('Mine');
});

it('declarations in flight are bounded in bytes, and room is given back', async () => {
  const waiting: (() => void)[] = [];
  const answer: Declared = { kind: 'compared', answer: Buffer.from('{}'), tag: '"x"' };
  const api = await ApiFixture.open({
    extend: (app) =>
      registerDeclarationRoute(app, {
        apply: () => new Promise((resolve) => waiting.push(() => resolve(answer))),
      }),
  });
  const body = { padding: 'x'.repeat(MAX_DECLARATION_BYTES - 100) };
  const put = () => api.call('PUT', `/v1/sites/${SITE_ID}/declaration`, { body });
  const held = Array.from({ length: 4 }, put);
  while (waiting.length < 4) await new Promise((resolve) => setImmediate(resolve));
  const refused = await put();
  expect([refused.status, refused.code]).toEqual([429, 'rate_limited']);
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  for (const end of waiting.splice(0)) end();
  expect((await Promise.all(held)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  const again = put();
  while (waiting.length < 1) await new Promise((resolve) => setImmediate(resolve));
  waiting[0]?.();
  expect((await again).status).toBe(200);
  await api.close();
});
