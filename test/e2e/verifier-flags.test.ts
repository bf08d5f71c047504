/** Tests flags of the verifier that change what is allowed: each has its effect on real requests. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { runInProcess } from '../support/cli/in-process.ts';
import { envoyVersions } from '../support/harness/envoy.ts';
import { derivedKeyCaller } from '../support/site/callers.ts';
import { expectAllowed, expectDenial, observe } from '../support/site/observe.ts';
import { ROUTES } from '../support/site/routes.ts';
import { type RequestPlan, signedRequest } from '../support/site/signed-request.ts';
import { useSite } from '../support/site/site-fixture.ts';
import { waitFor } from '../support/wait.ts';

const { createOrder, readOrder } = ROUTES;
const version = envoyVersions.at(-1) ?? '1.40.0';

const fixture = useSite();

/** A gateway in front of a verifier with these flags. */
async function withFlags(...flags: readonly string[]) {
  const verifier = await fixture.verifier({ flags });
  const gateway = await fixture.gateway(version, verifier);
  return { gateway, verifier, client: gateway.client('HTTP/1.1') };
}

const signed = (plan: Pick<RequestPlan, 'route' | 'body'>) =>
  signedRequest(fixture.site, { caller: derivedKeyCaller(fixture.site), ...plan });
const allowed = { routeId: readOrder.route_id, subject: 'client:billing' };

it('--external-origin replaces what the gateway says', async () => {
  const { client, gateway } = await withFlags('--external-origin', 'https://elsewhere.example');
  const observed = await observe(gateway, client, signed({ route: readOrder }));
  await expectDenial(gateway, observed, { reason: 'bundle_route_missing', detail: 'origin' });
});

it('--max-message-bytes denies what is larger, and nothing else', async () => {
  const { client, gateway } = await withFlags('--max-message-bytes', '65536');
  const body = Buffer.alloc(65_536, 'a');
  const large = await observe(gateway, client, signed({ route: createOrder, body }));
  await expectDenial(gateway, large, { reason: 'bundle_route_missing', detail: 'path_not_canonical' });
  await expectAllowed(gateway, await observe(gateway, client, signed({ route: readOrder })), allowed);
});

it('--freshness-key alone may sign statements, the bundle key no longer', async () => {
  const { bundleDirectory, site } = fixture;
  const file = join(site.directory, 'freshness.jwk.json');
  await writeFile(file, JSON.stringify(generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })));
  const { client, gateway, verifier } = await withFlags('--freshness-key', file);
  await site.freshen(bundleDirectory);
  const refused = await waitFor('the statement to be refused', async () => {
    const { text } = await verifier.probe('/metrics');
    return /^proofgate_bundle_refused_total\{code="([a-z_]+)"\} [1-9]/m.exec(text)?.[1];
  });
  expect(refused).toBe('signatures_insufficient');
  await expectAllowed(gateway, await observe(gateway, client, signed({ route: readOrder })), allowed);
});

it('--capture-denied keeps denied requests for explain, and no credentials', async () => {
  const directory = join(fixture.site.directory, 'denied');
  await mkdir(directory);
  const { client, gateway } = await withFlags('--capture-denied', directory);
  const sent = { ...signed({ route: readOrder }), target: '/v1/orders/4712' };
  const expected = {
    reason: 'request_binding_mismatch',
    detail: 'target',
    routeId: readOrder.route_id,
  } as const;
  const observed = await observe(gateway, client, sent);
  const decisionId = await expectDenial(gateway, observed, { ...expected, callerVerified: false });
  const file = join(directory, `${decisionId}.json`);
  const text = await waitFor('the capture', () => readFile(file, 'utf8').catch(() => undefined));
  const explained = await runInProcess(['explain', '--request', file, '--output', 'json']);
  expect(explained).toMatchObject({ exitCode: 1, stderr: '' });
  const { decision, recorded, transcript } = JSON.parse(explained.stdout);
  expect(decision).toMatchObject({ reason: expected.reason, detail: 'target' });
  expect(recorded).toMatchObject({ comparison: 'agrees', decision_id: decisionId });
  const different = transcript.filter(({ equal }: { readonly equal: boolean }) => !equal);
  expect(different).toMatchObject([{ line: 'target', difference: { place: 'path segment 3' } }]);
  const credentials = (sent.headers ?? []).map(([, value]) => value.split(' ').at(-1) ?? '');
  expect(credentials).toHaveLength(3);
  expect(credentials.filter((value) => text.includes(value))).toEqual([]);
});
