/** Tests flags of the verifier that change what is allowed: each has its effect on real requests. */
import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { derivedKeyCaller } from './environment/callers.ts';
import { type Gateway, startGateway } from './environment/gateway.ts';
import { expectAllowed, expectDenial, observe } from './environment/observe.ts';
import { ROUTES } from './environment/routes.ts';
import { signedRequest } from './environment/signed-request.ts';
import { createSite, type Site } from './environment/site.ts';
import { startVerifier, type VerifierProcess } from './environment/verifier.ts';
import { envoyVersions } from './harness/envoy.ts';
import { waitFor } from './harness/wait.ts';

const { createOrder, readOrder } = ROUTES;
const version = envoyVersions.at(-1) ?? '1.40.0';

let site: Site;
let bundleDirectory: string;
beforeAll(async () => {
  site = await createSite();
  bundleDirectory = await site.makeBundle();
});
afterAll(() => site.remove());

/** A gateway before a verifier with these flags, for as long as the test runs. */
async function withFlags(
  flags: readonly string[],
  test: (gateway: Gateway, verifier: VerifierProcess) => Promise<void>,
): Promise<void> {
  const verifier = await startVerifier(site, { replay: 'memory', bundleDirectory, flags });
  try {
    const gateway = await startGateway(version, verifier);
    try {
      await test(gateway, verifier);
    } finally {
      await gateway.stop();
    }
  } finally {
    await verifier.stop();
  }
}

const read = () => signedRequest(site, { caller: derivedKeyCaller(site), route: readOrder });
const allowed = { routeId: readOrder.route_id, subject: 'client:billing' };

it('--external-origin replaces what the gateway says', async () => {
  await withFlags(['--external-origin', 'https://elsewhere.example'], async (gateway) => {
    const seen = await observe(gateway, gateway.client('HTTP/1.1'), read());
    await expectDenial(gateway, seen, { reason: 'bundle_route_missing', detail: 'origin' });
  });
});

it('--max-message-bytes denies what is larger, and nothing else', async () => {
  await withFlags(['--max-message-bytes', '65536'], async (gateway) => {
    const client = gateway.client('HTTP/1.1');
    const caller = derivedKeyCaller(site);
    const body = Buffer.alloc(65_536, 'a');
    const large = await observe(gateway, client, signedRequest(site, { caller, route: createOrder, body }));
    await expectDenial(gateway, large, { reason: 'bundle_route_missing', detail: 'path_not_canonical' });
    await expectAllowed(gateway, await observe(gateway, client, read()), allowed);
  });
});

it('--freshness-key alone may sign statements, the bundle key no longer', async () => {
  const file = join(site.directory, 'freshness.jwk.json');
  await writeFile(file, JSON.stringify(generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })));
  await withFlags(['--freshness-key', file], async (gateway, verifier) => {
    await site.freshen(bundleDirectory);
    const refused = await waitFor('the statement to be refused', 10_000, async () => {
      const { text } = await verifier.probe('/metrics');
      return /^proofgate_bundle_refused_total\{code="([a-z_]+)"\} [1-9]/m.exec(text)?.[1];
    });
    expect(refused).toBe('signatures_insufficient');
    await expectAllowed(gateway, await observe(gateway, gateway.client('HTTP/1.1'), read()), allowed);
  });
});
