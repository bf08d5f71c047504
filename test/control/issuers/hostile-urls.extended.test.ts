import { connect } from 'node:net';
import { createSecureContext } from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { validateSource } from '../../../src/control/issuers/validate-source.ts';
import { GuardedConnection } from '../../../src/process/outbound-fetch/guarded-connection.ts';
import { resolveBySystem } from '../../../src/process/outbound-fetch/outbound-fetch.ts';
import { HOSTILE_URLS, type HostileUrl } from '../../support/control/hostile-urls.ts';
import {
  AUDIENCE,
  ConnectionRecord,
  GOOD_ADDRESS,
  IssuerEnvironment,
  networks,
  Trap,
} from '../../support/control/issuers-fixture.ts';
import type { ServiceAccountIssuer } from '../../support/fakes/service-account-issuer.ts';
import { waitFor } from '../../support/wait.ts';

let env: IssuerEnvironment;
let issuer: ServiceAccountIssuer;
let trap: Trap;
let record: ConnectionRecord;

beforeAll(async () => {
  env = await IssuerEnvironment.start();
  issuer = await env.issuer();
  trap = await Trap.listen();
  record = new ConnectionRecord();
});

afterAll(async () => {
  record.close();
  await trap.close();
  await env.close();
});

beforeEach(() => {
  trap.accepted = 0;
  record.attempts.length = 0;
  issuer.discoveryOverrides = {};
});

function fetcherFor({ addresses }: Pick<HostileUrl, 'addresses'>) {
  return addresses === undefined
    ? env.fetcher()
    : env.fetcher({ resolveName: () => Promise.resolve(addresses) });
}

const withPort = (url: string) => url.replaceAll('PORT', String(trap.port));

it('the table is as long as it should be', () => {
  expect(new Set(HOSTILE_URLS.map(({ url }) => url)).size).toBe(HOSTILE_URLS.length);
  expect(HOSTILE_URLS.length).toBeGreaterThanOrEqual(150);
});

it('trap and record see a connection where one is allowed', async () => {
  const fetcher = env.fetcher({ openedNetworks: networks('127.0.0.0/8'), timeoutMs: 300 });
  await record.watch(() => fetcher.fetchJson(`https://127.0.0.1:${trap.port}/`));
  expect(record.attempts).toEqual(['127.0.0.1']);
  await waitFor('the trap accepts', () => (trap.accepted === 1 ? true : undefined));
  const socket = connect(trap.port, '::1');
  await waitFor('the trap accepts over IPv6', () => (trap.accepted === 2 ? true : undefined));
  socket.destroy();
});

describe('a hostile issuer fails its draft and no connection is made', () => {
  it.each(HOSTILE_URLS.map((hostile) => [JSON.stringify(hostile.url), hostile] as const))(
    '%s',
    async (_, hostile) => {
      const source = { issuer: withPort(hostile.url), jwksUri: issuer.jwksUri, audience: AUDIENCE };
      const result = await record.watch(() => validateSource(source, fetcherFor(hostile), Date.now));
      expect(result).toEqual({ kind: 'invalid', code: hostile.code, detail: expect.any(String) });
      expect(record.attempts).toEqual([]);
      expect(trap.accepted).toBe(0);
    },
  );
});

describe('a hostile JWKS URI that its issuer vouches for fails its draft; only the issuer is connected to', () => {
  it.each(HOSTILE_URLS.map((hostile) => [JSON.stringify(hostile.url), hostile] as const))(
    '%s',
    async (_, hostile) => {
      const jwksUri = withPort(hostile.url);
      issuer.discoveryOverrides = { jwks_uri: jwksUri };
      const source = { issuer: issuer.issuer, jwksUri, audience: AUDIENCE };
      const result = await record.watch(() => validateSource(source, fetcherFor(hostile), Date.now));
      expect(result).toEqual({ kind: 'invalid', code: hostile.code, detail: expect.any(String) });
      expect(record.attempts.filter((address) => address !== GOOD_ADDRESS)).toEqual([]);
      expect(trap.accepted).toBe(0);
    },
  );
});

describe('the connection judges what the URL rules would let through, with the system resolver', () => {
  const spellings = [
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '127.1',
    '0x7f.1',
    '0',
    'localhost',
    'LOCALHOST',
    '::1',
    '[::1]',
  ];

  function guarded(...openedNetworks: readonly string[]) {
    const connection = new GuardedConnection({
      openedNetworks: networks(...openedNetworks),
      resolveName: resolveBySystem,
      secureContext: createSecureContext(),
      flags: { network: '--allow-issuer-network', caFile: '--issuer-ca-file' },
    });
    const connect = (hostname: string) =>
      new Promise<Error | null>((resolve) => {
        const target = { hostname, protocol: 'https:', port: String(trap.port) };
        record.watch(() => connection.connector(target, (...[fault]) => resolve(fault)));
      });
    return { connection, connect };
  }

  it('the record sees a connection where one is allowed', async () => {
    const { connect, connection } = guarded('127.0.0.0/8', '::1/128');
    const connected = connect('localhost');
    await waitFor('an attempt', () => record.attempts[0]);
    connection.close();
    expect(await connected).not.toBeNull();
  });

  it.each([...spellings, '::ffff:127.0.0.1', '0:0:0:0:0:ffff:7f00:1', '::127.0.0.1', 'fe80::1%lo', '::1%lo'])(
    '%s',
    async (hostname) => {
      const { connect, connection } = guarded(`${GOOD_ADDRESS}/32`);
      const error = await connect(hostname);
      connection.close();
      expect(error).not.toBeNull();
      expect(connection.failure?.code).toBe('address_forbidden');
      expect(record.attempts).toEqual([]);
      expect(trap.accepted).toBe(0);
    },
  );
});
