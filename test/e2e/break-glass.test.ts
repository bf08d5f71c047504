/** A break-glass statement at every enforcement point: one verifier file opens realtime routes, whichever server asks. */
import { mkdtemp, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { WireAddress } from '../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../src/tools/conformance/wire/http1.ts';
import { runInProcess } from '../support/cli/in-process.ts';
import { startApp } from '../support/points/middleware-apps.ts';
import { openVerifier, untilReady, usualOptions } from '../support/points/open-middleware.ts';
import { startGuardedApi } from '../support/proxies/guarded-api.ts';
import { nginx } from '../support/proxies/nginx.ts';
import { derivedKeyCaller } from '../support/site/callers.ts';
import { ROUTES } from '../support/site/routes.ts';
import { signedRequest } from '../support/site/signed-request.ts';
import { AUTH_SITE } from '../support/site/site.ts';
import { useSite } from '../support/site/site-fixture.ts';
import { waitFor } from '../support/wait.ts';
import { LANE_ENVOYS } from './lane-envoys.ts';
import { startRecordedProxy } from './proxy/proxy-fixture.ts';

const fixture = useSite('suite');
const stops: (() => Promise<unknown>)[] = [];
let folder = '';
const at = (name: string) => join(folder, name);
beforeAll(async () => {
  folder = await mkdtemp(join(fixture.site.directory, 'break-glass-'));
  await runInProcess(['keygen', '--out', at('offline.pem'), '--public-out', at('offline.jwk.json')]);
});
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
});

const flags = () => [
  '--break-glass-key',
  at('offline.jwk.json'),
  '--break-glass-file',
  at('break-glass.jws'),
];
/** The bundle of the site was issued too long ago for it. */
const request = () =>
  signedRequest(fixture.site, { caller: derivedKeyCaller(fixture.site), route: ROUTES.livePrices });

it('gRPC, HTTP, the reverse proxy and the middleware', async () => {
  const [version = ''] = LANE_ENVOYS;
  const grpc = await fixture.verifier({ flags: flags() });
  const gateway = await fixture.gateway(version, grpc);
  const guarded = await startGuardedApi(nginx, fixture.site, (listen) =>
    fixture.verifier({ flags: [...flags(), ...listen] }),
  );
  stops.push(() => guarded.stop());
  const proxy = await startRecordedProxy(fixture.site, {
    bundleDirectory: fixture.bundleDirectory,
    flags: flags(),
  });
  stops.push(() => proxy.stop());
  const usual = await usualOptions(fixture.site, fixture.bundleDirectory);
  const more = { breakGlassKeys: [at('offline.jwk.json')], breakGlassFile: at('break-glass.jws') };
  const { decisions, verifier } = await openVerifier({ ...usual, ...more });
  stops.push(() => verifier.close());
  const app = await startApp('node', verifier);
  stops.push(() => app.close());
  await untilReady(verifier);

  const by = (address: WireAddress) => http1Client(address);
  const clients = [gateway.client('HTTP/1.1'), guarded.proxy.http1, by(proxy.address), by(app.address)];
  const statuses = () => Promise.all(clients.map(async (client) => (await client.send(request())).status));
  expect(await statuses()).toEqual([503, 503, 503, 503]);
  const signed = await runInProcess([
    ...['bundle', 'break-glass', '--auth-site', AUTH_SITE, '--key', at('offline.pem'), '--for', '1h'],
    ...['--state-dir', usual.stateDir, '--out', at('new.jws')],
  ]);
  expect(signed).toMatchObject({ exitCode: 0, stderr: '' });
  await rename(at('new.jws'), at('break-glass.jws'));
  await waitFor('all to open', async () => (await statuses()).every((status) => status === 200) || undefined);
  expect((await decisions()).at(-1)).toMatchObject({ outcome: 'allowed', break_glass: true });
  expect(verifier.status().checks).toContainEqual(
    expect.objectContaining({
      name: 'break_glass',
      problem: undefined,
      warning: expect.stringMatching(/until \S+Z$/),
    }),
  );
  const { text } = await grpc.probe('/metrics');
  expect(text).toMatch(/^proofgate_break_glass_active 1$/m);
  expect(text).toMatch(/^proofgate_stale_routes\{freshness_class="realtime"\} 0$/m);
  await writeFile(at('break-glass.jws'), '');
  await waitFor(
    'all to close',
    async () => (await statuses()).every((status) => status === 503) || undefined,
  );
});
