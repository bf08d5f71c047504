/** Tests what is specific to PostgreSQL: several instances on one database, server failures, connections over TLS. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import {
  type ControlStore,
  type Notice,
  type StoreIncident,
  StoreUnavailableError,
} from '../../../src/control/store/port.ts';
import { openPostgresStore } from '../../../src/control/store/postgres.ts';
import { addGround, clientRow, mutateSite } from '../../support/control/store-rows.ts';
import { makeCertificates, type TestCertificates } from '../../support/harness/certificates.ts';
import { TestPostgresServer } from '../../support/harness/postgres-server.ts';
import { startImpostor } from '../../support/harness/redis-server.ts';
import { waitUntil } from '../../support/wait.ts';
import { NOW_MS } from './databases.ts';
import { DROP_SINCE_KEY_USES } from './reopened-databases.ts';

let server: TestPostgresServer;
let certificates: TestCertificates;
let others: TestCertificates;
let url: string;
const opened: ControlStore[] = [];

beforeAll(async () => {
  certificates = await makeCertificates('localhost', 'spiffe://shop.example/client');
  others = await makeCertificates('localhost', 'spiffe://shop.example/client');
  server = await TestPostgresServer.start({ tls: certificates.server });
  url = await server.createDatabase();
});
afterAll(async () => {
  await server.stop();
  await certificates.remove();
  await others.remove();
});

async function open(overrides: Partial<Parameters<typeof openPostgresStore>[0]> = {}): Promise<ControlStore> {
  const store = await openPostgresStore({ url, nowMs: () => NOW_MS, ...overrides });
  opened.push(store);
  return store;
}

beforeEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
});
afterAll(() => Promise.all(opened.splice(0).map((store) => store.close())));

/** Ends every connection of Control, as a failover or an operator does. */
async function cutConnections(): Promise<void> {
  await server.query(
    server.urlOf('postgres'),
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'proofgate-control'",
  );
}

describe('several instances', () => {
  it('migrate one empty database at the same time', async () => {
    const fresh = await server.createDatabase();
    const stores = await Promise.all([1, 2, 3].map(() => open({ url: fresh })));
    await Promise.all(stores.map((store) => store.ping()));
    const [row] = await server.query(fresh, 'select count(*)::int as rows from installation');
    expect(row).toEqual({ rows: 1 });
  });

  it('upgrade the schema beside an older one, which holds locks that the upgrade needs, and needs some that it holds', async () => {
    const used = await server.createDatabase();
    await (await open({ url: used })).ping();
    for (const undo of DROP_SINCE_KEY_USES) await server.query(used, undo);
    await server.query(used, "delete from kysely_migration where name >= '0020'");
    const older = new pg.Client(used);
    await older.connect();
    try {
      // As a batch of acknowledgements does: targets first, then keys, to which the upgrade refers before it changes targets.
      await older.query('begin');
      await older.query('update target set last_seen_at_ms = 1');
      const upgraded = open({ url: used });
      const isWaiting = async () =>
        (await older.query('select 1 from pg_locks where not granted')).rows.length > 0;
      await Promise.race([upgraded, waitUntil(isWaiting)]);
      await older.query('update derived_key set revoked_everywhere_at_ms = 1').catch(() => undefined);
      await older.query('rollback');
      await (await upgraded).ping();
    } finally {
      await older.end();
    }
  });

  it('lock a site for each other, and nothing else', async () => {
    const [one, two] = [await open(), await open()];
    const a = await addGround(one);
    const b = await addGround(one);
    const order: string[] = [];
    await mutateSite(one, a.siteId, async () => {
      const same = mutateSite(two, a.siteId, async () => void order.push('same site')).catch(() => {});
      // Other sites, the installation and reads continue while the first site is locked.
      await mutateSite(two, b.siteId, async () => void order.push('other site'));
      await two.writeUnaudited({ kind: 'installation' }, async () => void order.push('installation'));
      await two.read((tx) => tx.sites.find(a.siteId));
      await waitUntil(async () => (await waiting()) === 1);
      order.push('held');
      void same;
    });
    await waitUntil(() => order.length === 4);
    expect(order).toEqual(['other site', 'installation', 'held', 'same site']);
  });

  it('look at the origins of sites one after the other', async () => {
    const [one, two] = [await open(), await open()];
    const [a, b] = [await addGround(one), await addGround(one)];
    const order: string[] = [];
    let second = Promise.resolve();
    await mutateSite(one, a.siteId, async (tx) => {
      await tx.holdOrigins();
      second = mutateSite(two, b.siteId, async (other) => {
        await other.holdOrigins();
        order.push('second');
      });
      await waitUntil(async () => (await waiting()) === 1);
      order.push('first');
    });
    await second;
    expect(order).toEqual(['first', 'second']);
  });

  async function waiting(): Promise<number> {
    const text = "select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock'";
    const [row] = await server.query(url, text);
    return Number(row?.n);
  }

  it('keep connections free for others while many wait for one site', async () => {
    const [one, two] = [await open(), await open({ maxConnections: 3 })];
    const a = await addGround(one);
    const b = await addGround(one);
    let waiters: Promise<unknown> = Promise.resolve();
    await mutateSite(one, a.siteId, async () => {
      waiters = Promise.all(Array.from({ length: 20 }, () => mutateSite(two, a.siteId, async () => {})));
      await waitUntil(async () => (await waiting()) === 1);
      await mutateSite(two, b.siteId, (tx) => tx.clients.add(clientRow(b.siteId, 'billing')));
      await two.ping();
    });
    await waiters;
  });

  it('let a record that refers to a locked site be added', async () => {
    const [one, two] = [await open(), await open()];
    const { siteId } = await addGround(one);
    await mutateSite(one, siteId, () =>
      two.writeUnaudited(undefined, (tx) => tx.clients.add(clientRow(siteId, 'billing'))),
    );
    expect(await two.read((tx) => tx.clients.find(siteId, 'billing'))).toBeDefined();
  });

  it('hear each other, after the commit and only then', async () => {
    const [one, two] = [await open(), await open()];
    const { siteId } = await addGround(one);
    const heard: (Notice & { readonly there: Promise<unknown> })[] = [];
    two.subscribe((notice) => {
      if (notice.reference !== siteId) return;
      heard.push({ ...notice, there: two.read((tx) => tx.clients.find(siteId, 'billing')) });
    });
    const notice: Notice = { topic: 'site_changed', reference: siteId };
    await expect(
      mutateSite(one, siteId, async (tx) => {
        tx.notify(notice);
        throw new Error('no');
      }),
    ).rejects.toThrow('no');
    await mutateSite(one, siteId, async (tx) => {
      tx.notify(notice);
      await tx.clients.add(clientRow(siteId, 'billing'));
    });
    await waitUntil(() => heard.length > 0);
    await mutateSite(one, siteId, async (tx) => tx.notify({ topic: 'site_published', reference: siteId }));
    await waitUntil(() => heard.some(({ topic }) => topic === 'site_published'));
    expect(heard.map(({ topic }) => topic)).toEqual(['site_changed', 'site_published']);
    expect(await heard[0]?.there).toMatchObject({ clientId: 'billing' });
  });

  it('number a change under the lock of its site, whatever lock its transaction began with', async () => {
    const [one, two] = [await open(), await open()];
    const { siteId } = await addGround(one);
    let other: Promise<unknown> = Promise.resolve();
    await mutateSite(one, siteId, async (tx) => {
      other = two.writeUnaudited(undefined, (late) =>
        late.changes.record(siteId, { kind: 'policy' }, NOW_MS),
      );
      await waitUntil(async () => (await waiting()) === 1);
      await tx.changes.record(siteId, { kind: 'client', clientId: 'billing' }, NOW_MS);
    });
    await other;
    const pending = await one.read((tx) => tx.changes.pending(siteId, 10));
    expect(pending.map(({ kind }) => kind)).toEqual(['client', 'policy']);
  });
});

describe('transient errors', () => {
  it('make the transaction run again: a deadlock of two sites', async () => {
    const store = await open();
    const [a, b] = [await addGround(store), await addGround(store)];
    let runs = 0;
    const cross = (first: string, second: string, reached: () => void, other: Promise<void>) =>
      mutateSite(store, first, async (tx) => {
        runs += 1;
        reached();
        await other;
        await tx.hierarchy.advance(second, { floorRevision: 1 });
        await tx.clients.add(clientRow(first, 'billing'));
      });
    let reachedA = () => {};
    let reachedB = () => {};
    const hasA = new Promise<void>((resolve) => {
      reachedA = resolve;
    });
    const hasB = new Promise<void>((resolve) => {
      reachedB = resolve;
    });
    await Promise.all([cross(a.siteId, b.siteId, reachedA, hasB), cross(b.siteId, a.siteId, reachedB, hasA)]);
    // PostgreSQL aborts one of the two; more where a busy machine lets a timeout end another.
    expect(runs).toBeGreaterThanOrEqual(3);
    expect(await store.read((tx) => tx.clients.find(a.siteId, 'billing'))).toBeDefined();
    expect(await store.read((tx) => tx.clients.find(b.siteId, 'billing'))).toBeDefined();
  });

  it('make it run again: a connection that is cut before the commit', async () => {
    const store = await open();
    const { siteId } = await addGround(store);
    let runs = 0;
    await mutateSite(store, siteId, async (tx) => {
      runs += 1;
      await tx.clients.add(clientRow(siteId, 'billing'));
      if (runs === 1) await cutConnections();
    });
    expect(runs).toBe(2);
    expect(
      await store.read((tx) => tx.audit.list({ reach: { kind: 'everything' }, siteId, limit: 9 })),
    ).toHaveLength(1);
  });

  it('end in StoreUnavailableError when they do not end', async () => {
    const store = await open();
    const { siteId } = await addGround(store);
    let runs = 0;
    const work = mutateSite(store, siteId, async (tx) => {
      runs += 1;
      await tx.clients.add(clientRow(siteId, 'billing'));
      await cutConnections();
    });
    await expect(work).rejects.toBeInstanceOf(StoreUnavailableError);
    expect(runs).toBe(5);
    expect(await store.read((tx) => tx.clients.find(siteId, 'billing'))).toBeUndefined();
  });
});

describe('a server that goes away', () => {
  it('is a StoreUnavailableError while it is away, and nothing when it is back', async () => {
    const incidents: StoreIncident[] = [];
    const store = await open({ report: (incident) => incidents.push(incident) });
    const { siteId } = await addGround(store);
    const heard: Notice[] = [];
    store.subscribe((notice) => heard.push(notice));
    const inside = mutateSite(store, siteId, async (tx) => {
      await server.kill();
      await tx.clients.add(clientRow(siteId, 'lost'));
    });
    const faults = [await inside.catch((error: unknown) => error)];
    for (const call of [() => store.ping(), () => mutateSite(store, siteId, async () => {})]) {
      faults.push(await call().catch((error: unknown) => error));
    }
    faults.push(await openPostgresStore({ url, nowMs: Date.now }).catch((error: unknown) => error));
    for (const fault of faults) expect(fault).toBeInstanceOf(StoreUnavailableError);
    await server.startAgain();
    await store.ping();
    await mutateSite(store, siteId, (tx) => tx.clients.add(clientRow(siteId, 'kept')));
    const rows = await store.read((tx) => tx.clients.list({ siteId }, { after: undefined, limit: 9 }));
    expect(rows.map(({ clientId }) => clientId)).toEqual(['kept']);
    const other = await open();
    await waitUntil(async () => {
      await mutateSite(other, siteId, async (tx) => tx.notify({ topic: 'site_changed', reference: siteId }));
      return heard.length > 0;
    });
    expect(incidents.map(({ kind }) => kind)).toEqual(['notices_interrupted']);
    const texts = [...faults, ...incidents.map(({ error }) => error)].map(everythingOf);
    for (const text of texts) expect(text).not.toMatch(secretPattern());
  });
});

describe('a server that answers and takes no writes', () => {
  it('fails a trial write, until it takes writes again', async () => {
    const store = await open();
    await store.tryWrite();
    const full = "begin raise exception 'no space left' using errcode = 'disk_full'; end";
    await server.query(url, `create function full_disk() returns trigger language plpgsql as $$${full}$$`);
    await server.query(url, 'create trigger full_disk before insert on sign_in execute function full_disk()');
    await store.ping();
    await expect(store.tryWrite()).rejects.toBeInstanceOf(StoreUnavailableError);
    await server.query(url, 'drop trigger full_disk on sign_in');
    await store.tryWrite();
    expect(await server.query(url, 'select * from sign_in')).toEqual([]);
  });
});

/** The password, and parts of the connection string that lead to it. */
const secretPattern = () => new RegExp(`${server.password}|postgres://|${server.port}`);

function everythingOf(error: unknown): string {
  if (!(error instanceof Error)) throw new Error('not an error');
  return `${error.stack} ${error.cause} ${JSON.stringify(error, Object.getOwnPropertyNames(error))}`;
}

describe('a URL', () => {
  it.each([
    ['of a wrong password', () => url.replace(server.password, `${server.password}x`)],
    ['of no database', () => server.urlOf('nothing_here')],
    ['of a closed port', () => `postgres://u:${server.password}@127.0.0.1:1/x`],
    ['of a host that is not there', () => `postgres://u:${server.password}@nowhere.invalid/x`],
    ['that is none', () => `postgres://u:${server.password}@[::/x`],
    ['with a certificate file that is not there', () => `${url}?sslmode=verify-full&sslrootcert=/nowhere`],
  ])('%s is a StoreUnavailableError that tells no secret', async (_, makeUrl) => {
    const opening = openPostgresStore({ url: makeUrl(), nowMs: Date.now });
    const error = await opening.catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(everythingOf(error)).not.toMatch(secretPattern());
  });
});

describe('TLS', () => {
  const tlsUrl = (host: string, ca: string) =>
    `${url.replace('127.0.0.1', host)}?sslmode=verify-full&sslrootcert=${ca}`;

  it('is used when the URL asks for it, also for notices', async () => {
    const fresh = await open({ url: tlsUrl('localhost', certificates.ca.certPath) });
    await fresh.ping();
    const rows = await server.query(
      url,
      "select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'proofgate-control'",
    );
    expect(rows.length).toBeGreaterThanOrEqual(2);
    expect(rows.every(({ ssl }) => ssl === true)).toBe(true);
  });

  it.each([
    ['of another authority', () => tlsUrl('localhost', others.ca.certPath)],
    ['of another name', () => tlsUrl('127.0.0.1', certificates.ca.certPath)],
  ])('with a certificate %s is refused', async (_, makeUrl) => {
    const opening = openPostgresStore({ url: makeUrl(), nowMs: Date.now });
    await expect(opening).rejects.toBeInstanceOf(StoreUnavailableError);
  });

  it('is not given up when the server has none: nothing is said but the question', async () => {
    const said: Buffer[] = [];
    // Answer of a server without TLS to an SSLRequest (PostgreSQL's protocol, "SSL Session Encryption").
    const plain = await startImpostor((socket) => {
      socket.on('data', (bytes) => {
        said.push(bytes);
        socket.write('N');
      });
    });
    try {
      const target = `${plain.url.replace('redis://', `postgres://u:${server.password}@`)}/x?sslmode=verify-full`;
      const opening = openPostgresStore({ url: target, nowMs: Date.now });
      await expect(opening).rejects.toBeInstanceOf(StoreUnavailableError);
    } finally {
      await plain.stop();
    }
    expect(Buffer.concat(said).toString('hex')).toBe('0000000804d2162f');
  });
});
