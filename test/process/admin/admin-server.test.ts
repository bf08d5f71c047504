/** Tests the admin listener: it serves probes and metrics only. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type AdminListener,
  type AdminOptions,
  openAdminListener,
  type ReadinessCheck,
} from '../../../src/process/admin/admin-server.ts';
import { freePort } from '../../support/harness/free-port.ts';
import { waitFor } from '../../support/wait.ts';

const opened: AdminListener[] = [];

afterEach(async () => {
  for (const listener of opened.splice(0)) await listener.close();
});

async function open(options: Partial<AdminOptions> = {}): Promise<AdminListener> {
  const listener = await openAdminListener({
    host: '127.0.0.1',
    port: 0,
    readiness: () => [],
    metrics: async () => ({ contentType: 'text/plain; version=0.0.4', text: 'up 1\n' }),
    ...options,
  });
  opened.push(listener);
  return listener;
}

const ask = (listener: AdminListener, path: string, method = 'GET') =>
  fetch(`http://${listener.address}${path}`, { method });

describe('/livez', () => {
  it('is live, ready or not', async () => {
    const listener = await open({ readiness: () => [{ name: 'bundle', problem: 'none' }] });
    const response = await ask(listener, '/livez');
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(await response.json()).toEqual({ status: 'live' });
  });
});

describe('/readyz', () => {
  const sound: ReadinessCheck = { name: 'replay_store', problem: undefined };
  const warned: ReadinessCheck = { name: 'bundle', problem: undefined, warning: 'revision_lower' };
  const failing: ReadinessCheck = { name: 'freshness', problem: 'the bundle has expired' };
  const degraded: ReadinessCheck = { name: 'freshness', problem: undefined, routes: ['prices'] };
  const loaded: ReadinessCheck = {
    name: 'bundle',
    problem: undefined,
    bundle: { authSite: 'shop-eu-1', revision: 7, head: 'h' },
  };
  const loadedJson = { name: 'bundle', ok: true, auth_site: 'shop-eu-1', revision: 7, head: 'h' };
  const soundJson = { name: 'replay_store', ok: true };
  const warnedJson = { name: 'bundle', ok: true, warning: 'revision_lower' };
  const failingJson = { name: 'freshness', ok: false, problem: 'the bundle has expired' };
  const degradedJson = { name: 'freshness', ok: true, routes: ['prices'] };

  it.each<[number, string, readonly ReadinessCheck[], readonly object[]]>([
    [200, 'ready', [], []],
    [200, 'ready', [sound, warned], [soundJson, warnedJson]],
    [200, 'ready', [loaded], [loadedJson]],
    [200, 'degraded', [sound, degraded], [soundJson, degradedJson]],
    [503, 'not_ready', [degraded, failing], [degradedJson, failingJson]],
    [503, 'not_ready', [sound, failing, warned], [soundJson, failingJson, warnedJson]],
    [503, 'not_ready', [{ name: 'bundle', problem: '' }], [{ name: 'bundle', ok: false, problem: '' }]],
  ])('%d %s', async (status, word, readiness, checks) => {
    const response = await ask(await open({ readiness: () => readiness }), '/readyz?verbose');
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual({ status: word, checks });
  });

  it('is asked each time', async () => {
    let problem: string | undefined = 'not yet';
    const listener = await open({ readiness: () => [{ name: 'bundle', problem }] });
    expect((await ask(listener, '/readyz')).status).toBe(503);
    problem = undefined;
    expect((await ask(listener, '/readyz')).status).toBe(200);
  });
});

describe('/metrics', () => {
  it('is what the registry says', async () => {
    const response = await ask(await open(), '/metrics');
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4');
    expect(await response.text()).toBe('up 1\n');
  });
});

describe('anything else', () => {
  it.each(['/', '/livez/', '/LIVEZ', '/admin', '//livez', '/livez%2f'])('%s is not found', async (path) => {
    const response = await ask(await open(), path);
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ error: 'not_found' });
  });

  it.each(['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])('%s is not allowed', async (method) => {
    for (const path of ['/livez', '/readyz', '/metrics', '/other']) {
      const response = await ask(await open(), path, method);
      expect(response.status).toBe(405);
      expect(response.headers.get('allow')).toBe('GET, HEAD');
    }
  });

  it('HEAD is GET without the body', async () => {
    const response = await ask(
      await open({ readiness: () => [{ name: 'x', problem: 'y' }] }),
      '/readyz',
      'HEAD',
    );
    expect(response.status).toBe(503);
    expect(await response.text()).toBe('');
  });

  it('a fault is a 500 that says nothing', async () => {
    const boom = () => {
      throw new Error('secret');
    };
    const listener = await open({ readiness: boom, metrics: () => Promise.reject(new Error('secret')) });
    for (const path of ['/readyz', '/metrics']) {
      const response = await ask(listener, path);
      expect(response.status).toBe(500);
      expect(await response.text()).toBe('');
    }
    expect((await ask(listener, '/livez')).status).toBe(200);
  });
});

describe('its address', () => {
  it('is reported with the real port, IPv6 in brackets', async () => {
    expect((await open()).address).toMatch(/^127\.0\.0\.1:[1-9]\d*$/);
    const six = await open({ host: '::1' });
    expect(six.address).toMatch(/^\[::1\]:[1-9]\d*$/);
    expect((await ask(six, '/livez')).status).toBe(200);
  });

  it('that is taken rejects', async () => {
    const port = Number((await open()).address.split(':')[1]);
    await expect(open({ port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });

  it('is free again after close, also of clients that stay connected', async () => {
    const port = await freePort();
    const listener = await open({ port });
    await (await ask(listener, '/livez')).text();
    await listener.close();
    opened.splice(0);
    const again = createServer();
    await new Promise<void>((resolve) => again.listen(port, '127.0.0.1', resolve));
    await new Promise((resolve) => again.close(resolve));
  });
});

describe('what one client may hold', () => {
  const sockets: Socket[] = [];
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });

  async function dial({ address }: AdminListener): Promise<Socket> {
    const socket = connect(Number(address.split(':')[1]), '127.0.0.1');
    socket.on('error', () => undefined);
    sockets.push(socket);
    await once(socket, 'connect');
    return socket;
  }

  /** All that comes until the other side closes. */
  async function said(socket: Socket): Promise<string> {
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    await once(socket, 'close');
    return Buffer.concat(chunks).toString('latin1');
  }

  it('scrapes at the same time are one', async () => {
    let renderings = 0;
    let finish: () => void = () => undefined;
    const isRendered = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const metrics = async () => {
      renderings += 1;
      const text = `up ${renderings}\n`;
      await isRendered;
      return { contentType: 'text/plain', text };
    };
    const listener = await open({ metrics });
    const socket = await dial(listener);
    socket.write('GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(20));
    const others = [0, 1, 2].map(() => ask(listener, '/metrics'));
    // Answered after those before it on other connections have been read.
    await ask(listener, '/livez');
    finish();
    for (const response of await Promise.all(others)) expect(await response.text()).toBe('up 1\n');
    expect(renderings).toBe(1);
  });

  it('scrapes within a second are one, unless they want no snapshot', async () => {
    let renderings = 0;
    let nowMs = 0;
    const metrics = async () => {
      renderings += 1;
      return { contentType: 'text/plain', text: `up ${renderings}\n` };
    };
    const listener = await open({ metrics, monotonicMs: () => nowMs });
    const scrape = async (headers = {}) =>
      (await fetch(`http://${listener.address}/metrics`, { headers })).text();
    expect(await scrape()).toBe('up 1\n');
    nowMs = 999;
    expect(await scrape()).toBe('up 1\n');
    expect(await scrape({ 'cache-control': 'no-cache' })).toBe('up 2\n');
    nowMs = 1_999;
    expect(await scrape()).toBe('up 3\n');
  });

  it('requests on one connection have an end, also when none is waited for', async () => {
    const listener = await open();
    const socket = await dial(listener);
    socket.write('GET /livez HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(300));
    const answers = await said(socket);
    expect(answers.match(/HTTP\/1\.1 200 /g)).toHaveLength(100);
    expect((await ask(listener, '/livez')).status).toBe(200);
  });

  it('connections have an end, and others wait for none of them', async () => {
    const listener = await open();
    const held = [];
    for (let at = 0; at < 32; at += 1) held.push(await dial(listener));
    expect(await said(await dial(listener))).toBe('');
    held[0]?.destroy();
    await waitFor('room', async () => ((await ask(listener, '/livez')).status === 200 ? true : undefined));
  });

  it('a head has an end', async () => {
    const socket = await dial(await open());
    socket.write(`GET /livez HTTP/1.1\r\nhost: x\r\nx: ${'a'.repeat(9_000)}\r\n\r\n`);
    expect(await said(socket)).toMatch(/^HTTP\/1\.1 431 /);
  });

  it('a head that does not come is not waited for', async () => {
    const socket = await dial(await open());
    socket.write('GET /livez HTTP/1.1\r\n');
    expect(await said(socket)).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('a body is not waited for', async () => {
    const socket = await dial(await open());
    socket.write('POST /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\na');
    expect(await said(socket)).toMatch(/^HTTP\/1\.1 405 /);
  });
});
