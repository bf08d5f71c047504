/** Tests routes that need a fresh bundle: they open with a freshness statement and close without one. */
import { beforeAll, describe, expect, it } from '@jest/globals';
import { derivedKeyCaller } from '../support/site/callers.ts';
import { type Gateway, PROTOCOLS } from '../support/site/gateway.ts';
import { expectAllowed, expectDenial, observe } from '../support/site/observe.ts';
import { ROUTES } from '../support/site/routes.ts';
import { signedRequest } from '../support/site/signed-request.ts';
import { useSite } from '../support/site/site-fixture.ts';
import type { VerifierProcess } from '../support/site/verifier.ts';
import { waitFor } from '../support/wait.ts';
import { LANE_ENVOYS } from './lane-envoys.ts';

const { livePrices, readOrder } = ROUTES;

const fixture = useSite('suite');
let verifier: VerifierProcess;
beforeAll(async () => {
  verifier = await fixture.verifier({ flags: ['--realtime-staleness', '1s'] });
});

const signed = (route: typeof livePrices | typeof readOrder) =>
  signedRequest(fixture.site, { caller: derivedKeyCaller(fixture.site), route });

describe.each(LANE_ENVOYS)('Envoy %s', (version) => {
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await fixture.gateway(version, verifier);
  });

  it.each(PROTOCOLS)('a realtime route, %s', async (protocol) => {
    const client = gateway.client(protocol);
    const status = async () => (await client.send(signed(livePrices))).status;
    const stale = {
      reason: 'stale_bundle_fail_closed',
      detail: 'stale',
      routeId: livePrices.route_id,
    } as const;
    await expectDenial(gateway, await observe(gateway, client, signed(livePrices)), stale);
    await waitFor('the route to open', async () => {
      await fixture.site.freshen(fixture.bundleDirectory);
      return (await status()) === 200 ? true : undefined;
    });
    await waitFor('the route to close', async () => ((await status()) === 503 ? true : undefined));
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
