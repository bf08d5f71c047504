/** What our signers sign as HTTP messages, through a real Envoy: the command line, the Node SDK and the egress proxy. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Agent, buildConnector, request } from 'undici';
import { KeyFileIdentity } from '../../src/caller/enroll/key-file-identity.ts';
import { Signer } from '../../src/caller/sdk/index.ts';
import { RequestSigner } from '../../src/caller/sign/request-signer.ts';
import { headerValues } from '../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../src/tools/conformance/wire/http1.ts';
import { ORIGIN, writeBillingKey } from '../caller/sdk/billing-key.ts';
import { useEgress } from '../support/caller/egress-fixture.ts';
import { runInProcess } from '../support/cli/in-process.ts';
import { envoyVersions } from '../support/harness/envoy.ts';
import type { Gateway } from '../support/site/gateway.ts';
import { ROUTES, type SiteRoute } from '../support/site/routes.ts';
import { useSite } from '../support/site/site-fixture.ts';
import { waitFor } from '../support/wait.ts';

const fixture = useSite('suite');
const egressTo = useEgress();
const READ: SiteRoute = {
  ...ROUTES.readOrder,
  route_id: 'signed-read',
  path_template: '/v1/signed/{order_id}',
  accepted_proofs: ['http-message-signatures'],
};
const WRITE: SiteRoute = {
  ...READ,
  route_id: 'signed-write',
  method: 'POST',
  path_template: '/v1/signed',
  signed_headers: ['x-tenant'],
};
const READ_URL = `${ORIGIN}/v1/signed/4711?fields=id,%2f`;
const WRITE_URL = `${ORIGIN}/v1/signed?dry=1`;
const BODY = '{"item":"book"}';
const WRITE_HEADERS = { 'Content-Type': 'application/json', 'X-Tenant': 'acme' };

let folder = '';
let keyFile = '';
let gateway: Gateway;
let agent: Agent;
let signer: Signer;
beforeAll(async () => {
  const bundleDirectory = await fixture.site.makeBundle({ moreRoutes: [READ, WRITE] });
  gateway = await fixture.gateway(envoyVersions.at(-1) ?? '', await fixture.verifier({ bundleDirectory }));
  folder = mkdtempSync(join(fixture.site.directory, 'signers'));
  keyFile = writeBillingKey(fixture.site, folder, { keyId: 'dk_billing', routes: [READ, WRITE] });
  signer = await Signer.open({ keyFile, proof: 'http-message-signatures' });
  const { envoy } = gateway;
  const connect = buildConnector({});
  // The requests are for the site's own origin.
  agent = new Agent({
    connect: (options, callback) =>
      connect({ ...options, hostname: envoy.host, port: `${envoy.port}` }, callback),
  });
  // A replay store that has just started refuses proofs of its past.
  await waitFor('an allowed request', async () => (await fetchSigned(READ_URL)).status === 200 || undefined);
});
afterAll(() => agent.close());

const fetchSigned = (url: string, options: object = {}) => {
  // Undici's own types and those of Node.js differ.
  const init: object = { dispatcher: agent, ...options };
  return signer.fetch(url, init);
};

/** What arrived at the API. */
function arrived() {
  const [received] = gateway.upstream.requests;
  gateway.upstream.clear();
  const valuesOf = (name: string) => headerValues(received?.headers ?? [], name);
  const names = ['x-proofgate-proof', 'x-proofgate-key-id', 'signature', 'signature-input', 'authorization'];
  return [received?.url, received?.body.toString(), ...names.map(valuesOf)];
}
const UPSTREAM = [['http-message-signatures'], ['dk_billing'], [], [], []];
const OF_READ = [READ_URL.slice(ORIGIN.length), '', ...UPSTREAM];
const OF_WRITE = [WRITE_URL.slice(ORIGIN.length), BODY, ...UPSTREAM];

const proofgate = async (...args: readonly string[]) => {
  const { envoy } = gateway;
  const flags = ['--key', keyFile, '--proof', 'http-message-signatures'];
  gateway.upstream.clear();
  const run = await runInProcess([...args, ...flags, '--connect-to', `${envoy.host}:${envoy.port}`]);
  return [run.exitCode, run.stderr];
};

describe('proofgate request', () => {
  it('reads', async () => {
    expect(await proofgate('request', 'GET', READ_URL)).toEqual([0, '']);
    expect(arrived()).toEqual(OF_READ);
  });

  it('writes, with other headers than the signed ones', async () => {
    const bodyFile = join(folder, 'order.json');
    writeFileSync(bodyFile, BODY);
    const headers = Object.entries({
      ...WRITE_HEADERS,
      'X-Note': 'unsigned',
      'Content-Digest': 'sha-256=:AAAA:',
    }).flatMap(([name, value]) => ['--header', `${name}: ${value}`]);
    expect(await proofgate('request', 'POST', WRITE_URL, '--body-file', bodyFile, ...headers)).toEqual([
      0,
      '',
    ]);
    expect(arrived()).toEqual(OF_WRITE);
  });
});

describe('the Node SDK', () => {
  const write = { method: 'POST' as const, body: BODY, headers: WRITE_HEADERS };
  const SENDS = {
    fetch: async (url: string, init: object) => (await fetchSigned(url, init)).status,
    interceptor: async (url: string, init: object) => {
      const { body, statusCode } = await request(url, {
        dispatcher: agent.compose(signer.interceptor()),
        ...init,
      });
      await body.dump();
      return statusCode;
    },
    sign: async (url: string, init: Partial<typeof write>) => {
      const headers = { ...init.headers, ...(await signer.sign({ url, ...init })) };
      const { body, statusCode } = await request(url, { dispatcher: agent, ...init, headers });
      await body.dump();
      return statusCode;
    },
  };

  it.each(Object.entries(SENDS))('with %s', async (_name, send) => {
    gateway.upstream.clear();
    expect(await send(READ_URL, {})).toBe(200);
    expect(arrived()).toEqual(OF_READ);
    expect(await send(WRITE_URL, write)).toBe(200);
    expect(arrived()).toEqual(OF_WRITE);
  });

  it('signs the type that the client chooses, and replaces an old digest', async () => {
    gateway.upstream.clear();
    const headers = { 'x-tenant': 'acme' };
    const body = new Blob([BODY], { type: 'a/b' });
    expect(await SENDS.fetch(WRITE_URL, { method: 'POST', body: BODY, headers })).toBe(200);
    expect(await SENDS.fetch(WRITE_URL, { method: 'POST', body, headers })).toBe(200);
    expect(await SENDS.interceptor(WRITE_URL, { method: 'POST', body, headers })).toBe(200);
    const stale = { ...headers, 'content-digest': 'sha-256=:AAAA:' };
    expect(await SENDS.fetch(WRITE_URL, { method: 'POST', body: BODY, headers: stale })).toBe(200);
    expect(await SENDS.interceptor(WRITE_URL, { method: 'POST', body, headers: stale })).toBe(200);
    const types = gateway.upstream.requests.map((received) => headerValues(received.headers, 'content-type'));
    const text = ['text/plain;charset=UTF-8'];
    expect(types).toEqual([text, ['a/b'], ['a/b'], text, ['a/b']]);
  });
});

it('the egress proxy signs, in place of an earlier signature of the application', async () => {
  const engine = new RequestSigner({ proof: 'http-message-signatures' });
  engine.replaceIdentity(await new KeyFileIdentity(keyFile).current());
  const { envoy } = gateway;
  const egress = await egressTo(`http://${envoy.host}:${envoy.port}`, fixture.site, { signer: engine });
  const earlier = await signer.sign({ url: WRITE_URL, method: 'POST', body: 'x', headers: WRITE_HEADERS });
  gateway.upstream.clear();
  const answer = await http1Client(egress.address).send({
    method: 'POST',
    authority: `${egress.address.host}:${egress.address.port}`,
    target: WRITE_URL.slice(ORIGIN.length),
    headers: Object.entries({ ...WRITE_HEADERS, ...earlier }),
    body: BODY,
  });
  expect(answer.status).toBe(200);
  expect(arrived()).toEqual(OF_WRITE);
});
