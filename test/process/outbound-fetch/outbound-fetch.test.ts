import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { connect } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { IssuerFetcher, readIssuerCa } from '../../../src/process/outbound-fetch/outbound-fetch.ts';
import {
  ConnectionRecord,
  GOOD_ADDRESS,
  GOOD_HOST,
  IssuerEnvironment,
  networks,
  Trap,
  withEnvironment,
} from '../../support/control/issuers-fixture.ts';
import type { ServiceAccountIssuer } from '../../support/fakes/service-account-issuer.ts';

let world: IssuerEnvironment;
let issuer: ServiceAccountIssuer;
let named: ServiceAccountIssuer;
let record: ConnectionRecord;

beforeAll(async () => {
  world = await IssuerEnvironment.start();
  issuer = await world.issuer({ path: '/id/4F2A' });
  named = await world.issuer({ hostname: GOOD_HOST });
  record = new ConnectionRecord();
});

afterAll(async () => {
  record.close();
  await world.close();
});

afterEach(() => {
  issuer.setFault('discovery', undefined);
  issuer.setFault('keys', undefined);
  record.attempts.length = 0;
});

describe('a good issuer', () => {
  it('is fetched by address', async () => {
    expect(await world.fetcher().fetchJson(issuer.jwksUri)).toEqual({
      kind: 'fetched',
      text: JSON.stringify(issuer.keySet()),
      value: issuer.keySet(),
    });
  });

  it('is fetched by name, whose answer is the only one asked for', async () => {
    const asked: string[] = [];
    const resolveName = (name: string) => {
      asked.push(name);
      return Promise.resolve([GOOD_ADDRESS]);
    };
    const fetched = await record.watch(() => world.fetcher({ resolveName }).fetchJson(named.jwksUri));
    expect(fetched.kind).toBe('fetched');
    expect(asked).toEqual([GOOD_HOST]);
    expect(record.attempts).toEqual([GOOD_ADDRESS]);
  });

  it.each(['application/json', 'Application/JSON; charset=utf-8', 'application/jwk-set+json'])(
    'may say %s',
    async (contentType) => {
      issuer.setFault('keys', { kind: 'content_type', contentType });
      expect((await world.fetcher().fetchJson(issuer.jwksUri)).kind).toBe('fetched');
    },
  );

  it('gets a connection of its own each time, and no cookie back', async () => {
    issuer.setFault('keys', { kind: 'header', name: 'set-cookie', value: 'a=b' });
    const before = issuer.connections;
    const fetcher = world.fetcher();
    await fetcher.fetchJson(issuer.jwksUri);
    await fetcher.fetchJson(issuer.jwksUri);
    expect(issuer.connections - before).toBe(2);
    expect(issuer.lastRequestHeaders).not.toHaveProperty('cookie');
    expect(issuer.lastRequestHeaders).not.toHaveProperty('authorization');
    expect(issuer.lastRequestHeaders).toMatchObject({ 'accept-encoding': 'identity', connection: 'close' });
  });

  it('that takes part of the time is waited for', async () => {
    issuer.setFault('keys', { kind: 'delay', delayMs: 50 });
    expect((await world.fetcher().fetchJson(issuer.jwksUri)).kind).toBe('fetched');
  });
});

describe('rebinding', () => {
  it('never reaches the forbidden address, however often the name changes its mind', async () => {
    const port = Number(new URL(named.jwksUri).port);
    const trap = await Trap.listen(port, '127.10.0.2');
    let asked = 0;
    const resolveName = () => Promise.resolve([asked++ % 2 === 0 ? GOOD_ADDRESS : '127.10.0.2']);
    const fetcher = world.fetcher({ resolveName });
    const outcomes: string[] = [];
    for (let i = 0; i < 20; i++) {
      const fetched = await record.watch(() => fetcher.fetchJson(named.jwksUri));
      outcomes.push(fetched.kind === 'failed' ? fetched.code : fetched.kind);
    }
    expect(outcomes).toEqual(Array.from({ length: 10 }, () => ['fetched', 'address_forbidden']).flat());
    // One look-up a fetch: there is no second answer for a connection to follow.
    expect(asked).toBe(20);
    expect(record.attempts).toEqual(Array.from({ length: 10 }, () => GOOD_ADDRESS));
    expect(trap.accepted).toBe(0);
    await trap.close();
  });

  it('is noticed even when the socket ends up elsewhere than was judged; not a byte is sent', async () => {
    const trap = await Trap.listen(0, GOOD_ADDRESS);
    const onSocket = (message: unknown) => {
      const { socket } = message as { socket: Socket };
      Object.defineProperty(socket, 'remoteAddress', { get: () => '10.0.0.1' });
    };
    subscribe('net.client.socket', onSocket);
    const fetched = await world
      .fetcher({ timeoutMs: 2_000 })
      .fetchJson(`https://${GOOD_ADDRESS}:${trap.port}/`);
    unsubscribe('net.client.socket', onSocket);
    expect(fetched).toMatchObject({ kind: 'failed', code: 'address_forbidden' });
    await trap.close();
    expect(trap.accepted).toBe(1);
    expect(trap.receivedBytes).toBe(0);
  });
});

describe('connections that fail', () => {
  it('name the reason: connection refused', async () => {
    const trap = await Trap.listen(0, GOOD_ADDRESS);
    const url = `https://${GOOD_ADDRESS}:${trap.port}/`;
    await trap.close();
    expect(await world.fetcher().fetchJson(url)).toMatchObject({ code: 'connection_failed' });
  });

  it('name the reason: a peer that never greets', async () => {
    const trap = await Trap.listen(0, GOOD_ADDRESS);
    const url = `https://${GOOD_ADDRESS}:${trap.port}/`;
    expect(await world.fetcher({ timeoutMs: 200 }).fetchJson(url)).toMatchObject({
      code: 'response_too_slow',
    });
    await trap.close();
  });

  it('name the reason: a name service that never answers', async () => {
    const fetcher = world.fetcher({ timeoutMs: 200, resolveName: () => new Promise(() => {}) });
    expect(await fetcher.fetchJson(named.jwksUri)).toMatchObject({ code: 'response_too_slow' });
  });

  it('name the reason: a name service that fails', async () => {
    const fetcher = world.fetcher({ resolveName: () => Promise.reject(new Error('SERVFAIL')) });
    expect(await fetcher.fetchJson(named.jwksUri)).toMatchObject({ code: 'name_not_found' });
  });

  it('name the reason: an unknown CA, whatever the environment says', async () => {
    await withEnvironment({ NODE_TLS_REJECT_UNAUTHORIZED: '0' }, async () => {
      // What has no word of its own heeds the variable: the test can fail.
      expect(await greets(issuer.issuer)).toBe(true);
      const fetcher = new IssuerFetcher({ openedNetworks: networks(`${GOOD_ADDRESS}/32`) });
      expect(await fetcher.fetchJson(issuer.jwksUri)).toMatchObject({ code: 'tls_failed' });
    });
    expect(await greets(issuer.issuer)).toBe(false);
  });

  it('name the reason: a certificate for another name', async () => {
    const fetcher = world.fetcher({ resolveName: () => Promise.resolve([GOOD_ADDRESS]) });
    const url = named.jwksUri.replace(GOOD_HOST, 'other.example');
    expect(await fetcher.fetchJson(url)).toMatchObject({ code: 'tls_failed' });
  });
});

it('no proxy of the environment is used', async () => {
  const trap = await Trap.listen(0, '127.0.0.1');
  const names = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy', 'ALL_PROXY'];
  const proxies = Object.fromEntries(names.map((name) => [name, `http://127.0.0.1:${trap.port}`]));
  await withEnvironment({ ...proxies, NODE_USE_ENV_PROXY: '1' }, async () => {
    expect((await world.fetcher().fetchJson(issuer.jwksUri)).kind).toBe('fetched');
  });
  expect(trap.accepted).toBe(0);
  await trap.close();
});

/** Whether a TLS client without settings accepts the server's certificate. */
function greets(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port) });
    socket.once('error', () => resolve(false));
    socket.once('secureConnect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}

describe('a private CA', () => {
  it('may stand with others in one file', () => {
    expect(readIssuerCa(`# ours\n${world.caPem}\n${world.caPem}`)).toHaveLength(2);
  });

  it.each([
    ['nothing', ''],
    ['a key', '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----'],
    ['no certificate inside', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----'],
  ])('is refused when it is %s', (_, pem) => {
    expect(readIssuerCa(pem)).toBeUndefined();
  });
});
