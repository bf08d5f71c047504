/** Fetches through an HTTP proxy: a real one on loopback, which records where it is asked to connect to. */
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { createSecureContext } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { GuardedConnection } from '../../../src/process/outbound-fetch/guarded-connection.ts';
import { GOOD_ADDRESS, GOOD_HOST, IssuerEnvironment } from '../../support/control/issuers-fixture.ts';
import type { ServiceAccountIssuer } from '../../support/fakes/service-account-issuer.ts';
import { waitFor } from '../../support/wait.ts';

let world: IssuerEnvironment;
let issuer: ServiceAccountIssuer;
let server: Server;
let proxy: URL;
let asked: string[] = [];
/** Answers in place of a tunnel. */
let refusal: number | undefined;
/** Answers nothing. */
let isSilent = false;

beforeAll(async () => {
  world = await IssuerEnvironment.start();
  issuer = await world.issuer({ hostname: GOOD_HOST });
  server = createServer();
  server.on('connect', ({ url = '' }, client) => {
    asked.push(url);
    if (isSilent) return client.on('end', () => client.end()).resume();
    if (refusal !== undefined) return client.end(`HTTP/1.1 ${refusal} No\r\n\r\n`);
    const { hostname, port } = new URL(`tcp://${url}`);
    const upstream = connect(Number(port), hostname, () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n');
      upstream.pipe(client).pipe(upstream);
    });
    for (const socket of [upstream, client]) socket.on('error', () => upstream.destroy());
    return undefined;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  proxy = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await world.close();
});
afterEach(() => {
  asked = [];
  refusal = undefined;
  isSilent = false;
});

const resolveName = async () => [GOOD_ADDRESS];

it('asks for the address that was checked, and checks the certificate for the name', async () => {
  const fetched = await world.fetcher({ proxy, resolveName }).fetchJson(issuer.jwksUri);
  expect(fetched).toMatchObject({ kind: 'fetched', value: issuer.keySet() });
  expect(asked).toEqual([`${GOOD_ADDRESS}:${new URL(issuer.jwksUri).port}`]);
});

it.each(['169.254.169.254', '10.0.0.1', '::1'])('asks for nothing at %s', async (address) => {
  const fetcher = world.fetcher({ proxy, resolveName: async () => [GOOD_ADDRESS, address] });
  expect(await fetcher.fetchJson(issuer.jwksUri)).toMatchObject({ code: 'address_forbidden' });
  const literal = `https://${address.includes(':') ? `[${address}]` : address}/keys`;
  expect(await fetcher.fetchJson(literal)).toMatchObject({ code: 'address_forbidden' });
  expect(asked).toEqual([]);
});

it('says what the proxy answered, and for which URL', async () => {
  refusal = 403;
  const failed = await world.fetcher({ proxy, resolveName }).fetchJson(issuer.jwksUri);
  expect(failed).toMatchObject({ kind: 'failed', code: 'connection_failed' });
  expect(failed).toMatchObject({ detail: expect.stringContaining('403') });
  expect(failed).toMatchObject({ detail: expect.stringContaining(issuer.jwksUri) });
});

it('fails when the proxy is not there', async () => {
  const fetcher = world.fetcher({ proxy: new URL('http://127.0.0.1:1'), resolveName });
  expect(await fetcher.fetchJson(issuer.jwksUri)).toMatchObject({ code: 'connection_failed' });
});

describe('a fetch that has ended', () => {
  const ADDRESSES = ['93.184.216.1', '93.184.216.2', '93.184.216.3'];
  const open = () => {
    isSilent = true;
    const connection = new GuardedConnection({
      openedNetworks: [],
      resolveName: async () => ADDRESSES,
      secureContext: createSecureContext(),
      flags: { network: '--network', caFile: '--ca-file', proxy: '--proxy' },
      proxy,
    });
    const url = new URL('https://idp.example');
    const target = { hostname: url.hostname, host: url.host, protocol: url.protocol, port: url.port };
    const failure = new Promise((resolve) => connection.connector(target, (...answer) => resolve(answer[0])));
    return { connection, failure };
  };
  it('asks the proxy for no other address', async () => {
    const { connection, failure } = open();
    await waitFor('the first address', () => asked[0]);
    connection.close();
    expect(await failure).toBeInstanceOf(Error);
    expect(asked).toEqual([`${ADDRESSES[0]}:443`]);
  });

  it('leaves no connection that it was about to open', async () => {
    const { connection, failure } = open();
    // Node.js tells the socket of a request on its next tick, which comes after every microtask.
    for (let hops = 0; hops < 50; hops++) await undefined;
    connection.close();
    expect(await failure).toBeInstanceOf(Error);
    expect(asked).toEqual([]);
  });
});

it('names the URL in every failure', async () => {
  const fetcher = world.fetcher({ resolveName });
  const gone = `${new URL(issuer.jwksUri).origin}/nowhere`;
  expect(await fetcher.fetchJson(gone)).toMatchObject({
    code: 'http_status',
    detail: expect.stringContaining(gone),
  });
  const nowhere = 'https://nowhere.example/keys';
  expect(await world.fetcher({ resolveName: async () => [] }).fetchJson(nowhere)).toMatchObject({
    code: 'name_not_found',
    detail: expect.stringContaining(nowhere),
  });
});
