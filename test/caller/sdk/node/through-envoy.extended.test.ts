/** `@proofgate/client` through a real Envoy and verifier: keys that are replaced under load, and routes with `passport_header`. */
import { mkdtempSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Agent, buildConnector, request } from 'undici';
import { PairFolders } from '../../../../src/caller/agent/pair-folders.ts';
import { statePathOf } from '../../../../src/caller/enroll/state-file.ts';
import { Signer } from '../../../../src/caller/sdk/index.ts';
import { headerValues } from '../../../../src/tools/conformance/wire/exchange.ts';
import { envoyVersions } from '../../../support/harness/envoy.ts';
import type { Echo } from '../../../support/harness/upstream.ts';
import { useEnvironment } from '../../../support/site/environment.ts';
import { ROUTES } from '../../../support/site/routes.ts';
import { waitFor } from '../../../support/wait.ts';
import { ORIGIN, writeBillingKey } from '../billing-key.ts';

const CONNECTIONS = 32;
const REPLACEMENTS = 10;
const { bearer, readOrder } = ROUTES;

const environment = useEnvironment(['usual']);
let agent: Agent;
beforeAll(async () => {
  const { envoy } = await environment.gateway(envoyVersions.at(-1) ?? '');
  const connect = buildConnector({});
  // The requests are for the site's own origin.
  agent = new Agent({
    connections: CONNECTIONS,
    connect: (options, callback) =>
      connect({ ...options, hostname: envoy.host, port: `${envoy.port}` }, callback),
  });
});
afterAll(() => agent.close());

const folderOf = (name: string) => mkdtempSync(join(environment.site.directory, name));

it(`signs with keys that an agent replaces while ${CONNECTIONS} connections send`, async () => {
  const keyFile = join(folderOf('replaced'), 'key.pem');
  const folders = new PairFolders(keyFile, statePathOf);
  const install = async (number: number) => {
    const keyId = number % 2 === 0 ? 'dk_billing' : 'dk_billing_p256';
    writeBillingKey(environment.site, dirname(await folders.nextKeyFile()), { keyId, routes: [readOrder] });
    await folders.publishNext();
    return keyId;
  };
  await install(0);
  const warnings: string[] = [];
  const signer = await Signer.open({ keyFile, onWarning: (text) => warnings.push(text) });
  const dispatcher = agent.compose(signer.interceptor());
  const refused: string[] = [];
  let sentWith: string[] = [];
  let isDone = false;
  const send = async () => {
    while (!isDone) {
      const { body, statusCode } = await request(`${ORIGIN}/v1/orders/7`, { dispatcher });
      const text = await body.text();
      // Whatever the key: a busy machine.
      const isOverloaded = statusCode === 503 && text.includes('"overloaded"');
      if (statusCode !== 200 && !isOverloaded) refused.push(text);
      else if (statusCode === 200)
        sentWith.push(...headerValues((JSON.parse(text) as Echo).headers, 'x-proofgate-key-id'));
    }
  };
  const senders = Array.from({ length: CONNECTIONS }, send);
  try {
    for (let number = 1; number <= REPLACEMENTS; number++) {
      const keyId = await install(number);
      sentWith = [];
      await waitFor(
        `requests with ${keyId}, pair ${number}`,
        () => refused.length > 0 || sentWith.filter((used) => used === keyId).length >= 2 * CONNECTIONS,
      );
    }
  } finally {
    isDone = true;
    await Promise.all(senders);
  }
  expect({ refused, warnings }).toEqual({ refused: [], warnings: [] });
});

describe("a route with `passport_header` gets the application's own Authorization", () => {
  const url = `${ORIGIN}${bearer.path_template}`;
  const authorization = 'Bearer of-the-application';

  const signerOf = () => {
    const routes = [bearer, readOrder];
    const keyFile = writeBillingKey(environment.site, folderOf('bearer'), { keyId: 'dk_billing', routes });
    return Signer.open({ keyFile });
  };
  const SENDS = {
    fetch: async (signer: Signer, headers?: Record<string, string>) => {
      // Undici's own types and those of Node.js differ.
      const init: object = { dispatcher: agent, ...(headers && { headers }) };
      return (await signer.fetch(url, init)).text();
    },
    interceptor: async (signer: Signer, headers: Record<string, string> = {}) => {
      const dispatcher = agent.compose(signer.interceptor());
      return (await request(url, { dispatcher, headers })).body.text();
    },
    sign: async (signer: Signer, headers: Record<string, string> = {}) => {
      const signed = await signer.sign({ url, headers });
      return (await request(url, { dispatcher: agent, headers: { ...headers, ...signed } })).body.text();
    },
  };

  it.each(Object.entries(SENDS))('with %s', async (_name, send) => {
    const signer = await signerOf();
    const arrived = async (headers?: Record<string, string>) =>
      (JSON.parse(await send(signer, headers)) as Echo).headers;
    const headers = await arrived({ authorization });
    expect(headerValues(headers, 'authorization')).toEqual([authorization]);
    expect(headerValues(headers, 'x-proofgate-passport')).toEqual([]);
    expect(headerValues(headers, 'x-proofgate-route-id')).toEqual([bearer.route_id]);
    expect(headerValues(await arrived(), 'authorization')).toEqual([]);
  });
});
