/** Tests the optional outputs of the program: spans to a collector, and gRPC reflection of its services. */
import { expect, it } from '@jest/globals';
import { type CollectedSpan, startOtlpCollector } from '../support/fakes/otlp-collector.ts';
import { openCheckClient, rpcCode } from '../support/harness/check-client.ts';
import { envoyVersions } from '../support/harness/envoy.ts';
import { derivedKeyCaller } from '../support/site/callers.ts';
import { expectAllowed, observe } from '../support/site/observe.ts';
import { ROUTES } from '../support/site/routes.ts';
import { signedRequest } from '../support/site/signed-request.ts';
import { useSite } from '../support/site/site-fixture.ts';
import type { VerifierProcess } from '../support/site/verifier.ts';
import { waitFor } from '../support/wait.ts';

const { readOrder } = ROUTES;
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const REFLECTION = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
/** `list_services`, empty. */
const LIST_SERVICES = Buffer.from([0x3a, 0]);

const fixture = useSite();
const verifierWith = (...flags: readonly string[]) => fixture.verifier({ listen: 'tcp', flags });

async function askForServices({ address }: VerifierProcess): Promise<string> {
  const target = address.kind === 'unix' ? `unix:${address.path}` : `${address.host}:${address.port}`;
  const client = openCheckClient(target);
  try {
    const asked = client.stream(REFLECTION, LIST_SERVICES);
    const code = await rpcCode(asked);
    return code === 'OK' ? (await asked).toString('latin1') : code;
  } finally {
    client.close();
  }
}

const attributeOf = ({ attributes }: CollectedSpan, wanted: string): unknown => {
  const found = attributes.find(({ key }) => key === wanted);
  return found && Object.values(found.value)[0];
};

it('--otlp-endpoint and --grpc-reflection', async () => {
  const collector = await startOtlpCollector();
  fixture.stops.push(collector.stop);
  const { site } = fixture;
  const verifier = await verifierWith('--grpc-reflection', '--otlp-endpoint', collector.url);
  const gateway = await fixture.gateway(envoyVersions.at(-1) ?? '1.40.0', verifier);
  expect(await askForServices(verifier)).toContain('envoy.service.auth.v3.Authorization');

  const traced = (flags: '00' | '01') =>
    signedRequest(site, {
      caller: derivedKeyCaller(site),
      route: readOrder,
      otherHeaders: [['traceparent', `00-${TRACE}-${SPAN}-${flags}`]],
    });
  const allowed = { routeId: readOrder.route_id, subject: 'client:billing' };
  const client = gateway.client('HTTP/1.1');
  await expectAllowed(gateway, await observe(gateway, client, traced('00')), allowed);
  await expectAllowed(gateway, await observe(gateway, client, traced('01')), allowed);

  const check = await waitFor('the span of the check', () =>
    collector.spans.find(({ name }) => name === 'proofgate.check'),
  );
  expect(check).toMatchObject({ traceId: TRACE, parentSpanId: SPAN });
  const events = await verifier.auditEvents();
  expect(events.map(({ trace_id }) => trace_id)).toEqual([TRACE, TRACE]);
  expect(attributeOf(check, 'proofgate.decision_id')).toBe(events.at(-1)?.decision_id);
  expect(attributeOf(check, 'proofgate.route_id')).toBe(readOrder.route_id);
  // The first request was not sampled, so only the second one's span is exported.
  expect(collector.spans.filter(({ name }) => name === 'proofgate.check')).toHaveLength(1);
  expect(collector.spans.map(({ name }) => name).toSorted()).toEqual([
    'proofgate.check',
    'proofgate.pipeline',
    'proofgate.replay',
  ]);
  expect(site.secrets.foundIn(JSON.stringify(collector.spans))).toEqual([]);
});

it('without them does not list its services', async () => {
  expect(await askForServices(await verifierWith())).toBe('UNIMPLEMENTED');
});
