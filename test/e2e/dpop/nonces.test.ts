/** Nonces for DPoP, with a real Redis: replicas know each other's, and a client that repeats once never loops. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, it } from '@jest/globals';
import { headerValues, type WireClient } from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { envoyVersions } from '../../support/harness/envoy.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { startApp } from '../../support/points/middleware-apps.ts';
import { openVerifier, untilReady, usualOptions } from '../../support/points/open-middleware.ts';
import { nowSeconds } from '../../support/site/site.ts';
import { useSite } from '../../support/site/site-fixture.ts';
import { waitFor } from '../../support/wait.ts';
import { startRecordedProxy } from '../proxy/proxy-fixture.ts';
import { answerText, NONCED, READ, type Requests, requestsOf } from './dpop-requests.ts';
import { callWithLibrary } from './library-caller.ts';

const fixture = useSite('suite');
const TARGET = '/v1/nonced/4711';
let bundleDirectory = '';
let redis: TestRedisServer;
let requests: Requests;
beforeAll(async () => {
  requests = requestsOf(fixture.site);
  redis = await TestRedisServer.start('--maxmemory-policy', 'noeviction');
  fixture.stops.push(() => redis.stop());
  bundleDirectory = await fixture.site.makeBundle({ moreRoutes: [READ, NONCED], isSingleVerifier: false });
});

const newKey = () => randomBytes(32).toString('base64');

/** Flags of a verifier with these keys, the first of which makes nonces. */
async function flagsWith(...keys: readonly string[]): Promise<readonly string[]> {
  const file = join(fixture.site.directory, `nonce-key-${randomBytes(8).toString('hex')}`);
  await writeFile(file, `${keys.join('\n')}\n`, { mode: 0o600 });
  return ['--redis-timeout', '800ms', '--dpop-nonce-key-file', file];
}

async function startProxy(flags: readonly string[]): Promise<WireClient> {
  const { address, stop } = await startRecordedProxy(fixture.site, {
    bundleDirectory,
    replay: redis.url,
    flags,
  });
  fixture.stops.push(stop);
  return http1Client(address);
}

async function untilOpen(client: WireClient): Promise<void> {
  await waitFor('an allowed request', async () => {
    const { status } = await client.send(requests.dpopRequest());
    return status === 200 || undefined;
  });
}

async function answer(client: WireClient, nonce?: string, issuedAtSeconds = nowSeconds()) {
  const request = requests.dpopRequest({ target: TARGET, proof: { issuedAtSeconds, claims: { nonce } } });
  const response = await client.send(request);
  const [given] = headerValues(response.headers, 'dpop-nonce');
  const [challenge] = headerValues(response.headers, 'www-authenticate');
  return { text: answerText(response), given, challenge };
}

const USE_NONCE = '401 invalid_request_proof/dpop_nonce';

it('passes through Envoy, each time a new one', async () => {
  const options = { bundleDirectory, replay: redis.url, flags: await flagsWith(newKey()) };
  const gateway = await fixture.gateway(envoyVersions[1], await fixture.verifier(options));
  const client = gateway.client('HTTP/1.1');
  await untilOpen(client);
  const first = await answer(client);
  expect(first).toEqual({
    text: USE_NONCE,
    given: expect.stringMatching(/^[\w-]{30}$/),
    challenge: 'DPoP error="use_dpop_nonce", algs="ES256 Ed25519 EdDSA"',
  });
  const used = await answer(client, first.given);
  expect(used).toEqual({ text: '200', given: undefined, challenge: undefined });
  await waitFor('a nonce of the next second', async () => {
    const { given } = await answer(client, 'stale');
    return given !== first.given || undefined;
  });
  // Without a nonce nothing says how old the proof is.
  expect((await answer(client, undefined, nowSeconds() - 3600)).text).toBe(USE_NONCE);
  expect((await answer(client, first.given, nowSeconds() - 3600)).text).toBe(
    '401 invalid_request_proof/proof_expired',
  );
  for (const algorithm of ['Ed25519', 'ES256'] as const) {
    expect(await callWithLibrary(requests, client, algorithm, TARGET)).toBe(200);
  }
});

it('is known to replicas with the key, also while they change it', async () => {
  const [old, next] = [newKey(), newKey()];
  const before = await startProxy(await flagsWith(old, next));
  const after = await startProxy(await flagsWith(next, old));
  const stranger = await startProxy(await flagsWith(newKey()));
  for (const client of [before, after, stranger]) await untilOpen(client);
  for (const [from, to] of [
    [before, after],
    [after, before],
  ] as const) {
    const { given } = await answer(from);
    expect((await answer(to, given)).text).toBe('200');
    expect((await answer(stranger, given)).text).toBe(USE_NONCE);
  }
});

it('is known to the middleware with the key', async () => {
  const flags = await flagsWith(newKey());
  const proxy = await startProxy(flags);
  await untilOpen(proxy);
  const options = {
    ...(await usualOptions(fixture.site, bundleDirectory)),
    replay: redis.url,
    redisTimeoutMs: 800,
  };
  const { given } = await answer(proxy);
  for (const [dpopNonceKeyFile, expected] of [
    [flags.at(-1), '200'],
    [(await flagsWith(newKey())).at(-1), USE_NONCE],
  ] as const) {
    const stateDir = await mkdtemp(join(fixture.site.directory, 'middleware-'));
    const { verifier } = await openVerifier({ ...options, stateDir, dpopNonceKeyFile });
    fixture.stops.push(() => verifier.close());
    const app = await startApp('node', verifier);
    fixture.stops.push(() => app.close());
    await untilReady(verifier);
    expect((await answer(http1Client(app.address), given)).text).toBe(expected);
  }
});

it('ends a client that repeats once, where replicas share no key', async () => {
  const [one, other] = [
    await startProxy(await flagsWith(newKey())),
    await startProxy(await flagsWith(newKey())),
  ];
  for (const client of [one, other]) await untilOpen(client);
  let sent = 0;
  const alternating: WireClient = {
    protocol: 'HTTP/1.1',
    send: (request) => {
      sent += 1;
      return (sent % 2 === 0 ? one : other).send(request);
    },
  };
  await expect(callWithLibrary(requests, alternating, 'Ed25519', TARGET)).rejects.toThrow();
  expect(sent).toBe(2);
});

it('needs the key, unless one verifier serves the site', async () => {
  const start = (directory: string, replay: string) =>
    fixture.verifier({ bundleDirectory: directory, replay, awaited: 'livez' });
  const refusing = await start(bundleDirectory, redis.url);
  expect((await refusing.probe('/readyz')).text).toContain('--dpop-nonce-key-file');
  const verifier = await start(await fixture.site.makeBundle({ moreRoutes: [NONCED] }), 'memory');
  await waitFor('the bundle', async () => (await verifier.probe('/readyz')).status === 200 || undefined);
});
