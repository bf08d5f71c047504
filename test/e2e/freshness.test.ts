/** Tests routes that need a fresh bundle: they open with a freshness statement and close without one. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { derivedKeyCaller } from './environment/callers.ts';
import { type Gateway, PROTOCOLS, startGateway } from './environment/gateway.ts';
import { expectAllowed, expectDenial, observe } from './environment/observe.ts';
import { ROUTES } from './environment/routes.ts';
import { signedRequest } from './environment/signed-request.ts';
import { createSite, type Site } from './environment/site.ts';
import { startVerifier, type VerifierProcess } from './environment/verifier.ts';
import { waitFor } from './harness/wait.ts';
import { LANE_ENVOYS } from './lane-envoys.ts';

const { livePrices, readOrder } = ROUTES;

let site: Site;
let bundleDirectory: string;
let verifier: VerifierProcess;
beforeAll(async () => {
  site = await createSite();
  bundleDirectory = await site.makeBundle();
  const flags = ['--realtime-staleness', '1s'];
  verifier = await startVerifier(site, { replay: 'memory', bundleDirectory, flags });
});
afterAll(async () => {
  await verifier.stop();
  await site.remove();
});

const signed = (route: typeof livePrices | typeof readOrder) =>
  signedRequest(site, { caller: derivedKeyCaller(site), route });

describe.each(LANE_ENVOYS)('Envoy %s', (version) => {
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await startGateway(version, verifier);
  });
  afterAll(() => gateway.stop());

  it.each(PROTOCOLS)('a realtime route, %s', async (protocol) => {
    const client = gateway.client(protocol);
    const status = async () => (await client.send(signed(livePrices))).status;
    const stale = {
      reason: 'stale_bundle_fail_closed',
      detail: 'stale',
      routeId: livePrices.route_id,
    } as const;
    await expectDenial(gateway, await observe(gateway, client, signed(livePrices)), stale);
    await waitFor('the route to open', 10_000, async () => {
      await site.freshen(bundleDirectory);
      return (await status()) === 200 ? true : undefined;
    });
    await waitFor('the route to close', 10_000, async () => ((await status()) === 503 ? true : undefined));
    await expectDenial(gateway, await observe(gateway, client, signed(livePrices)), stale);
    const { status: httpStatus, text } = await verifier.probe('/readyz');
    const { checks, status: word } = JSON.parse(text);
    expect([httpStatus, word]).toEqual([200, 'degraded']);
    const routes = expect.arrayContaining([livePrices.route_id]);
    expect(checks).toContainEqual(expect.objectContaining({ name: 'freshness', ok: true, routes }));
    const { text: metrics } = await verifier.probe('/metrics');
    expect(metrics).toMatch(/^proofgate_stale_routes\{freshness_class="realtime"\} [1-9]/m);
    const bounded = await observe(gateway, client, signed(readOrder));
    await expectAllowed(gateway, bounded, { routeId: readOrder.route_id, subject: 'client:billing' });
  });
});
