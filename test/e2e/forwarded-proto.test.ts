/**
 * Tests a gateway behind another proxy, where Envoy takes the scheme from `x-forwarded-proto`: a single value counts, and a
 * value that Envoy joined from several makes the request neither https nor http.
 */
import { describe, it } from '@jest/globals';
import { shipped } from '../support/harness/envoy-config.ts';
import { derivedKeyCaller } from '../support/site/callers.ts';
import { type GatewayVariant, useEnvironment } from '../support/site/environment.ts';
import { PROTOCOLS } from '../support/site/gateway.ts';
import { expectAllowed, expectDenial, observe } from '../support/site/observe.ts';
import { ROUTES } from '../support/site/routes.ts';
import { signedRequest } from '../support/site/signed-request.ts';
import { LANE_ENVOYS } from './lane-envoys.ts';

const environment = useEnvironment(['usual']);

const manager = shipped.connectionManager;
const BEHIND_A_PROXY = { path: [...manager, 'use_remote_address'], value: false };
const BELIEVING: GatewayVariant = {
  name: 'believes x-forwarded-proto',
  edits: [BEHIND_A_PROXY, { path: [...manager, 'scheme_header_transformation'] }],
};
const CONFIGURED: GatewayVariant = { name: 'has its scheme configured', edits: [BEHIND_A_PROXY] };
const SHIPPED: GatewayVariant = { name: 'shipped' };

const JOINED = [['https', 'https'], ['https', 'http'], ['http', 'https'], ['http,https']];

const requestFor = (scheme: 'http' | 'https', forwarded: readonly string[]) =>
  signedRequest(environment.site, {
    caller: derivedKeyCaller(environment.site),
    route: ROUTES.readOrder,
    transcript: { scheme },
    otherHeaders: forwarded.map((value) => ['x-forwarded-proto', value] as const),
  });

const combinations = LANE_ENVOYS.flatMap((version) => PROTOCOLS.map((protocol) => ({ version, protocol })));

describe.each(combinations)('Envoy $version, $protocol', ({ version, protocol }) => {
  async function ask(variant: GatewayVariant, scheme: 'http' | 'https', forwarded: readonly string[]) {
    const gateway = await environment.gateway(version, 'usual', variant);
    const observed = await observe(gateway, gateway.client(protocol), {
      ...requestFor(scheme, forwarded),
      scheme,
    });
    return { gateway, observed };
  }

  it.each(['http', 'https'] as const)('takes one word of the proxy: %s', async (scheme) => {
    const { gateway, observed } = await ask(BELIEVING, scheme, [scheme]);
    await expectAllowed(gateway, observed, { routeId: 'orders-read', subject: 'client:billing' });
  });

  it('denies two, signed as http or as https', async () => {
    for (const forwarded of JOINED) {
      for (const scheme of ['http', 'https'] as const) {
        const { gateway, observed } = await ask(BELIEVING, scheme, forwarded);
        await expectDenial(gateway, observed, { reason: 'bundle_route_missing', detail: 'origin' });
      }
    }
  });

  it.each([SHIPPED, CONFIGURED])('does not see what Envoy replaces: $name', async (variant) => {
    for (const forwarded of [['https'], ...JOINED]) {
      const { gateway, observed } = await ask(variant, 'http', forwarded);
      await expectAllowed(gateway, observed, { routeId: 'orders-read', subject: 'client:billing' });
    }
  });
});
