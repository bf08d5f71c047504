/**
 * Tests requests while the verifier, or a service that it depends on, dies, stops or is overloaded: none is allowed. Each case
 * runs over each protocol of the lane's Envoys at once.
 */
import { describe, expect, it } from '@jest/globals';
import {
  headerValues,
  type WireClient,
  type WireRequest,
} from '../../src/tools/conformance/wire/exchange.ts';
import { shipped } from '../support/harness/envoy-config.ts';
import { derivedKeyCaller } from '../support/site/callers.ts';
import { leaks } from '../support/site/environment.ts';
import type { Gateway, GatewayOptions } from '../support/site/gateway.ts';
import { expectDenial, observe } from '../support/site/observe.ts';
import { ROUTES } from '../support/site/routes.ts';
import { signedRequest } from '../support/site/signed-request.ts';
import { useSite } from '../support/site/site-fixture.ts';
import { startTraffic } from '../support/site/traffic.ts';
import type { VerifierProcess } from '../support/site/verifier.ts';
import { startRedis } from '../support/site/verifier-states.ts';
import { waitFor } from '../support/wait.ts';
import { LANE_ENVOYS } from './lane-envoys.ts';

const { readOrder } = ROUTES;

const fixture = useSite();

const signed = () =>
  signedRequest(fixture.site, { caller: derivedKeyCaller(fixture.site), route: readOrder });

/** One path to the verifier: a version of Envoy, and a protocol. */
interface Way {
  readonly gateway: Gateway;
  readonly client: WireClient;
}

async function waysTo(verifier: VerifierProcess, options?: GatewayOptions): Promise<readonly Way[]> {
  const ways: Way[] = [];
  for (const version of LANE_ENVOYS) {
    const gateway = await fixture.gateway(version, verifier, options);
    ways.push(...gateway.clients.map((client) => ({ gateway, client })));
  }
  return ways;
}

const gatewaysOf = (ways: readonly Way[]) => [...new Set(ways.map(({ gateway }) => gateway))];
const forwardedBy = (ways: readonly Way[]) => gatewaysOf(ways).flatMap(({ upstream }) => upstream.requests);
const statusOf = async ({ client }: Way, request: WireRequest) => (await client.send(request)).status;

/** Round and round, so that every way has its share. */
function trafficOver(ways: readonly Way[]) {
  let turn = 0;
  return startTraffic(() => {
    turn += 1;
    const way = ways[turn % ways.length];
    return way === undefined ? Promise.reject(new Error('no way')) : statusOf(way, signed());
  });
}

const atOrders = { routeId: readOrder.route_id, callerVerified: true };
const allowedAmong = (statuses: readonly number[]) => statuses.filter((status) => status === 200).length;

async function expectOpenAgain(ways: readonly Way[]): Promise<void> {
  for (const way of ways) {
    await waitFor('requests to be let through again', async () =>
      (await statusOf(way, signed())) === 200 ? true : undefined,
    );
  }
}

describe('a verifier without Redis', () => {
  it('that is killed under traffic lets nothing through, and its successor no replay', async () => {
    const verifier = await fixture.verifier();
    const ways = await waysTo(verifier);
    const consumed = signed();
    for (const [at, way] of ways.entries()) expect(await statusOf(way, consumed)).toBe(at === 0 ? 200 : 403);
    const traffic = trafficOver(ways);
    await traffic.more(100);
    verifier.signal('SIGKILL');
    await verifier.exited;
    // Requests in flight when it died may have been allowed before.
    await traffic.more(16);
    const before = traffic.statuses.length;
    await traffic.more(100);
    await traffic.stop();
    expect(new Set(traffic.statuses.slice(before))).toEqual(new Set([503]));
    expect(new Set(traffic.statuses)).toEqual(new Set([200, 503]));
    expect(forwardedBy(ways)).toHaveLength(allowedAmong(traffic.statuses) + 1);

    const successor = await fixture.verifier({ successorOf: verifier });
    await expectOpenAgain(ways);
    for (const way of ways) {
      const gateway = { ...way.gateway, verifier: successor };
      const observed = await observe(gateway, way.client, consumed);
      const reason = 'replay_store_unavailable';
      await expectDenial(gateway, observed, { ...atOrders, reason, detail: 'fenced' });
    }
  });

  it('that is asked to stop under traffic ends in order, every answer recorded', async () => {
    const verifier = await fixture.verifier();
    const ways = await waysTo(verifier);
    const traffic = trafficOver(ways);
    await traffic.more(100);
    verifier.signal('SIGTERM');
    expect(await verifier.exited).toEqual({ code: 0, signal: null });
    await traffic.more(100);
    await traffic.stop();
    expect(new Set(traffic.statuses)).toEqual(new Set([200, 503]));
    const allowed = allowedAmong(traffic.statuses);
    expect(forwardedBy(ways)).toHaveLength(allowed);
    const events = await verifier.auditEvents();
    expect(events.filter(({ outcome }) => outcome === 'allowed')).toHaveLength(allowed);
  });
});

describe('a verifier that waits for its Redis', () => {
  async function patientVerifier(flags: readonly string[] = []) {
    const { server: redis, url } = await startRedis(fixture);
    const verifier = await fixture.verifier({ replay: url, flags: ['--redis-timeout', '5s', ...flags] });
    const ways = await waysTo(verifier);
    const awaitWaiting = async (count: number) => {
      await waitFor(`${count} requests to wait for Redis`, async () =>
        (await verifier.examined()) >= count ? true : undefined,
      );
    };
    return { redis, verifier, ways, awaitWaiting };
  }

  it('answers what is in flight before it stops', async () => {
    const { awaitWaiting, redis, verifier, ways } = await patientVerifier();
    redis.freeze();
    const answers = Promise.all([...ways, ...ways].map((way) => statusOf(way, signed())));
    await awaitWaiting(2 * ways.length);
    verifier.signal('SIGTERM');
    await waitFor('the drain', async () =>
      (await verifier.outputs()).get('the log')?.includes('"msg":"draining"') ? true : undefined,
    );
    redis.thaw();
    expect(new Set(await answers)).toEqual(new Set([200]));
    expect(await verifier.exited).toEqual({ code: 0, signal: null });
  });

  it('verifier_unavailable/overloaded: refuses more than may wait', async () => {
    const { awaitWaiting, redis, ways } = await patientVerifier(['--max-in-flight', '1']);
    const [first, ...others] = ways;
    if (first === undefined) throw new Error('no way');
    redis.freeze();
    const waiting = statusOf(first, signed());
    await awaitWaiting(1);
    for (const { client, gateway } of [first, ...others]) {
      const observed = await observe(gateway, client, signed());
      await expectDenial(gateway, observed, { reason: 'verifier_unavailable', detail: 'overloaded' });
    }
    redis.thaw();
    expect(await waiting).toBe(200);
  });

  it('in vain refuses, until Redis is back', async () => {
    const { server: redis, url } = await startRedis(fixture);
    const verifier = await fixture.verifier({ replay: url });
    const ways = await waysTo(verifier);
    redis.freeze();
    for (const { client, gateway } of ways) {
      const observed = await observe(gateway, client, signed());
      const reason = 'replay_store_unavailable';
      await expectDenial(gateway, observed, { ...atOrders, reason, detail: 'store' });
    }
    redis.thaw();
    await expectOpenAgain(ways);
  });
});

describe('secrets', () => {
  it('are in no output, a wrong Redis password neither', async () => {
    const { url } = await startRedis(fixture);
    const verifier = await fixture.verifier({ replay: url.replace('@', 'x@'), awaited: 'livez' });
    const ways = await waysTo(verifier);
    for (const { client } of ways) {
      const { headers } = await client.send(signed());
      // A new verifier loads no bundle until Redis has returned the site's shared mark.
      expect(headerValues(headers, 'x-proofgate-reason')).toEqual(['bundle_policy_missing']);
    }
    const readiness = await verifier.probe('/readyz');
    expect([readiness.status, fixture.site.secrets.foundIn(readiness.text)]).toEqual([503, []]);
    expect(readiness.text).toContain('mark_unavailable');
    expect(await leaks(fixture.site, [verifier], gatewaysOf(ways))).toEqual([]);
  });

  it('are not in the refusal of a Redis URL that cannot be used', async () => {
    const { url } = await startRedis(fixture);
    const started = fixture.verifier({ replay: `${url}/nowhere` });
    const message = await started.then(
      () => 'it started',
      (error: Error) => error.message,
    );
    expect(message).toContain('bad_replay_store');
    expect(fixture.site.secrets.foundIn(message)).toEqual([]);
  });

  it('would be found: a passport in the access log', async () => {
    const format = [...shipped.connectionManager, 'access_log', 0, 'typed_config', 'log_format'];
    const verifier = await fixture.verifier();
    const ways = await waysTo(verifier, {
      edits: [{ path: [...format, 'json_format', 'who'], value: '%REQ(AUTHORIZATION)%' }],
    });
    for (const way of ways) {
      await statusOf(way, { ...signed(), target: '/v1/orders/1' });
      const { accessLog } = way.gateway.envoy;
      await waitFor('the access log', () => (accessLog.length > 0 ? true : undefined));
    }
    for (const gateway of gatewaysOf(ways)) {
      expect(await leaks(fixture.site, [verifier], [gateway])).toContain('a passport in the access log');
    }
  });
});
