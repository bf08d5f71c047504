/** What one declaration may cost: steps of an apply, bytes in flight, and who waits for a comparison. */
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { registerDeclarationRoute } from '../../../src/control/api/routes/declaration-api.ts';
import { MAX_DECLARATION_BYTES } from '../../../src/control/contract/declaration-contract.ts';
import { MAX_SINGLE_STEPS, MAX_STEPS } from '../../../src/control/declaration/comparison.ts';
import type { Declared } from '../../../src/control/declaration/declarations.ts';
import { ApiFixture } from '../../support/control/api-fixture.ts';
import { waitFor } from '../../support/wait.ts';
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
  const held: ReturnType<typeof put>[] = [];
  // One after the other: a caller has room for two incomplete bodies of this size.
  for (let count = 1; count <= 4; count++) {
    held.push(put());
    await waitFor('a declaration', () => waiting.length === count);
  }
  const refused = await put();
  expect([refused.status, refused.code]).toEqual([429, 'rate_limited']);
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  for (const end of waiting.splice(0)) end();
  expect((await Promise.all(held)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  const again = put();
  await waitFor('room', () => waiting.length === 1);
  waiting[0]?.();
  expect((await again).status).toBe(200);
  await api.close();
});

/** Bodies without a length count as the longest ones. */
const HEAD = ['Host: a', 'Content-Type: application/json', 'Transfer-Encoding: chunked'];
const BODY = '2\r\n{}\r\n0\r\n\r\n';

/** An API whose declarations end when the test says so, and raw connections to it. */
async function heldApi() {
  const waiting: { readonly end: () => void; readonly signal: AbortSignal | undefined }[] = [];
  const answer: Declared = { kind: 'compared', answer: Buffer.from('{}'), tag: '"x"' };
  const api = await ApiFixture.open({
    extend: (app) =>
      registerDeclarationRoute(app, {
        apply: ({ signal }) => new Promise((resolve) => waiting.push({ end: () => resolve(answer), signal })),
      }),
  });
  const connection = () => connect(api.port, '127.0.0.1').on('error', () => undefined);
  const head = [
    `PUT /v1/sites/${SITE_ID}/declaration HTTP/1.1`,
    ...HEAD,
    `Authorization: Bearer ${api.root}`,
  ].join('\r\n');
  return { api, waiting, connection, declaration: `${head}\r\n\r\n${BODY}` };
}

it('a declaration whose client has left keeps its room until its work has ended', async () => {
  const { api, connection, declaration, waiting } = await heldApi();
  const sockets = Array.from({ length: 4 }, connection);
  for (const socket of sockets) socket.write(declaration);
  await waitFor('four declarations', () => waiting.length === 4);
  expect(waiting.map(({ signal }) => signal?.aborted)).toEqual([false, false, false, false]);
  for (const socket of sockets) socket.destroy();
  await waitFor('all to have left', () => waiting.every(({ signal }) => signal?.aborted === true));
  const put = () => api.call('PUT', `/v1/sites/${SITE_ID}/declaration`, { body: {} });
  // Four bodies are still in memory.
  expect((await put()).code).toBe('rate_limited');
  for (const { end } of waiting.splice(0)) end();
  const again = put();
  await waitFor('room', () => waiting.length === 1);
  waiting[0]?.end();
  expect((await again).status).toBe(200);
  await api.close();
});

it('declarations behind an unfinished one of the connection give their room back', async () => {
  const { api, connection, declaration, waiting } = await heldApi();
  const socket = connection();
  socket.write(declaration.repeat(4));
  await waitFor('four declarations', () => waiting.length === 4);
  socket.destroy();
  await waitFor('all to have left', () => waiting.every(({ signal }) => signal?.aborted === true));
  for (const { end } of waiting.splice(0)) end();
  const sockets = Array.from({ length: 4 }, connection);
  for (const next of sockets) next.write(declaration);
  await waitFor('four more', () => waiting.length === 4);
  for (const next of sockets) next.destroy();
  for (const { end } of waiting) end();
  await api.close();
});
