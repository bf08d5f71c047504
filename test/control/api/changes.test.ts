/** Tests the stream of changes: who learns of what, bounds, and what ends it. */
import { type ClientRequest, request as httpRequest } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type ChangeRouteParts, registerChangeRoutes } from '../../../src/control/api/routes/changes-api.ts';
import { INSTALLATION } from '../../../src/control/domain/roles.ts';
import { ChangeFeed } from '../../../src/control/operators/change-feed.ts';
import { ApiFixture, PUBLIC_ORIGIN } from '../../support/control/api-fixture.ts';
import { waitFor } from '../../support/wait.ts';

const opened: ClientRequest[] = [];
let fixture: ApiFixture;
let reads = 0;
let subscribed = 0;

async function openFixture(parts: Partial<ChangeRouteParts> = {}, roundMs = 20): Promise<void> {
  fixture = await ApiFixture.open({
    extend: (app, { store, operators, nowMs }) => {
      const counted: Pick<typeof store, 'read'> = {
        read: (work) => {
          reads += 1;
          return store.read(work);
        },
      };
      const report = (error: unknown) => {
        throw error;
      };
      const feed = new ChangeFeed({ store: counted, nowMs, report, roundMs });
      registerChangeRoutes(app, {
        feed: {
          subscribe: async (listener) => {
            const unsubscribe = await feed.subscribe(listener);
            subscribed += 1;
            return () => {
              subscribed -= 1;
              unsubscribe();
            };
          },
        },
        operators,
        sessionCookieName: 'proofgate_session',
        checkMs: 20,
        ...parts,
      });
    },
  });
  reads = 0;
}

beforeEach(() => openFixture());
afterEach(async () => {
  for (const request of opened.splice(0)) request.destroy();
  await fixture.close();
});

interface Follower {
  readonly status: number;
  readonly type: string;
  /** Code of a problem. */
  readonly text: () => string;
  readonly events: () => readonly { readonly name: string; readonly data: unknown }[];
  readonly hasEnded: () => boolean;
  readonly close: () => void;
}

function follow(headers: { readonly [name: string]: string }): Promise<Follower> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ port: fixture.port, path: '/v1/changes', agent: false, headers });
    opened.push(request);
    request.on('error', reject);
    request.on('response', (response) => {
      let text = '';
      let hasEnded = false;
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      response.on('error', () => {});
      response.on('close', () => {
        hasEnded = true;
      });
      resolve({
        status: response.statusCode ?? 0,
        type: String(response.headers['content-type']),
        text: () => text,
        events: () =>
          [...text.matchAll(/event: (\w+)\ndata: (.*)\n\n/g)].map(([, name = '', data = '']) => ({
            name,
            data: JSON.parse(data),
          })),
        hasEnded: () => hasEnded,
        close: () => request.destroy(),
      });
    });
    request.end();
  });
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const cookie = (token: string) => ({ cookie: `proofgate_session=${token}` });

test('each operator learns of what they may read, and of nothing else', async () => {
  const [one, other] = [await fixture.shop('one'), await fixture.shop('other')];
  const site = (siteId: string) => ({ kind: 'site', id: siteId }) as const;
  const all = await follow(bearer(fixture.root));
  const ofOne = await follow(bearer(fixture.operator('one', 'viewer', site('one'))));
  const ofFleet = await follow(
    bearer(fixture.operator('fleet', 'viewer', { kind: 'fleet', id: other.fleetId })),
  );
  const elsewhere = await follow(bearer(fixture.operator('elsewhere', 'viewer', site('none'))));
  expect(all).toMatchObject({ status: 200, type: 'text/event-stream' });
  for (const siteId of [one.siteId, other.siteId]) {
    await fixture.expect(201, 'POST', `/v1/sites/${siteId}/clients`, {
      body: { client_id: 'c', subject: 'client:c' },
    });
  }
  await fixture.expect(201, 'POST', '/v1/environments', { body: { name: 'more' } });
  const changeOf = (site_id: string, kind: string) => ({ name: 'change', data: { site_id, kinds: [kind] } });
  const environment = { name: 'change', data: { kinds: ['environment'] } };
  await waitFor('all changes', () => all.events().length === 3);
  expect(all.events()).toEqual(
    expect.arrayContaining([changeOf('one', 'client'), changeOf('other', 'client'), environment]),
  );
  await waitFor('the change of a site', () => ofOne.events().length > 0);
  expect(ofOne.events()).toEqual([changeOf('one', 'client')]);
  await waitFor('the change of the fleet', () => ofFleet.events().length > 0);
  expect(ofFleet.events()).toEqual([changeOf('other', 'client')]);
  expect(elsewhere.events()).toEqual([]);
  await waitFor('a heartbeat', () => elsewhere.text().includes('\n:\n\n'));
});

test('one reader serves every stream, and rests without one', async () => {
  await fixture.close();
  await openFixture({}, 3_600_000);
  const followers = await Promise.all(Array.from({ length: 10 }, () => follow(bearer(fixture.root))));
  expect(reads).toBe(1);
  for (const { close } of followers) close();
  await waitFor('the end of all', () => subscribed === 0);
  await follow(bearer(fixture.root));
  expect(reads).toBe(2);
});

describe('ends', () => {
  test('with its session', async () => {
    const token = fixture.operator('browser', 'admin', INSTALLATION, 'session');
    const follower = await follow(cookie(token));
    fixture.operators.remove(token);
    await waitFor('the end', follower.hasEnded);
    expect(follower.events()).toEqual([{ name: 'session_ended', data: {} }]);
  });

  test('with Control', async () => {
    const follower = await follow(bearer(fixture.root));
    await fixture.app.close();
    await waitFor('the end', follower.hasEnded);
  });

  test('without a reader', async () => {
    const kind = 'x'.repeat(1_000_000);
    await fixture.close();
    let report = () => {};
    let isCut = false;
    await openFixture({
      feed: {
        subscribe: async (listener) => {
          report = () => listener([{ place: {}, siteId: undefined, resourceKind: kind }]);
          return () => {
            isCut = true;
          };
        },
      },
    });
    const request = httpRequest({ port: fixture.port, path: '/v1/changes', headers: bearer(fixture.root) });
    opened.push(request);
    request.on('error', () => {});
    request.on('response', (response) => response.pause());
    request.end();
    await waitFor('that it is cut', () => {
      report();
      return isCut;
    });
  });
});

test('a withdrawn role is withdrawn from the stream', async () => {
  await fixture.shop('one');
  const token = fixture.operator('viewer', 'viewer', { kind: 'site', id: 'one' });
  const follower = await follow(bearer(token));
  fixture.operator('viewer', 'viewer', { kind: 'site', id: 'another' });
  const checks = () => follower.text().split('\n:\n').length;
  const before = checks();
  await waitFor('a check', () => checks() > before + 1);
  await fixture.expect(201, 'POST', '/v1/sites/one/clients', {
    body: { client_id: 'c', subject: 'client:c' },
  });
  const all = await follow(bearer(fixture.root));
  await fixture.expect(201, 'POST', '/v1/environments', { body: { name: 'last' } });
  await waitFor('a later change', () => all.events().length > 0);
  expect(follower.events()).toEqual([]);
});

test.each([
  ['each operator', { maxStreamsPerOperator: 2 }],
  ['all', { maxStreams: 2 }],
])('streams of %s are bounded, and a closed one gives its place back', async (_of, limits) => {
  await fixture.close();
  await openFixture(limits);
  const [first] = [await follow(bearer(fixture.root)), await follow(bearer(fixture.root))];
  const refused = await follow(bearer(fixture.root));
  await waitFor('the problem', refused.hasEnded);
  expect([refused.status, JSON.parse(refused.text()).code]).toEqual([429, 'too_many_streams']);
  if ('maxStreamsPerOperator' in limits) {
    const other = fixture.operator('other', 'viewer', INSTALLATION);
    expect((await follow(bearer(other))).status).toBe(200);
  }
  first.close();
  await waitFor('a place', async () => (await follow(bearer(fixture.root))).status === 200);
});

test('pages of other origins and requests without credentials may not follow', async () => {
  const token = fixture.operator('browser', 'admin', INSTALLATION, 'session');
  for (const site of ['cross-site', 'same-site']) {
    expect((await follow({ ...cookie(token), 'sec-fetch-site': site })).status).toBe(403);
  }
  const own = { 'sec-fetch-site': 'same-origin', origin: PUBLIC_ORIGIN };
  expect((await follow({ ...cookie(token), ...own })).status).toBe(200);
  expect((await follow({})).status).toBe(401);
  expect((await fixture.call('HEAD', '/v1/changes')).status).toBe(405);
  expect((await fixture.call('GET', `/v1/changes?token=${token}`, { token: '' })).status).toBe(401);
});
