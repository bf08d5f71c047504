/**
 * Tests an Envoy that allows requests when the verifier does not answer (`failure_mode_allow`): a call that the verifier
 * rejects, for too many calls or too many bytes, is denied all the same. The verifier runs in this process, because its limit
 * of calls is not a setting.
 */
import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { ExtAuthzServer } from '../../src/enforcement/ext-authz-grpc/ext-authz-server.ts';
import { CALL_LIMITS } from '../../src/process/ext-authz/open-calls.ts';
import { headerValues } from '../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../src/tools/conformance/wire/http1.ts';
import { CHECK_PATH } from '../support/harness/check-client.ts';
import { type RunningEnvoy, startEnvoy } from '../support/harness/envoy.ts';
import { closeAtOnce, patient, shipped } from '../support/harness/envoy-config.ts';
import { startUpstream, type Upstream } from '../support/harness/upstream.ts';
import { useExtAuthzServers } from '../support/points/check-servers.ts';
import { waitFor } from '../support/wait.ts';
import { LANE_ENVOYS } from './lane-envoys.ts';

const MAX_MESSAGE_BYTES = 64 * 1024;
const get = { method: 'GET', target: '/', authority: 'api.example' } as const;
const post = { ...get, method: 'POST' } as const;
/** Over the limit, but not over Envoy's. */
const large = { ...post, body: Buffer.alloc(512 * 1024) };

const { metrics, open: openExtAuthz } = useExtAuthzServers(MAX_MESSAGE_BYTES);
let upstream: Upstream;
beforeAll(async () => {
  upstream = await startUpstream();
});
afterAll(() => upstream.stop());

const opened: { envoys: RunningEnvoy[]; sessions: ClientHttp2Session[] } = { envoys: [], sessions: [] };
afterEach(async () => {
  for (const session of opened.sessions.splice(0)) session.destroy();
  for (const envoy of opened.envoys.splice(0)) await envoy.stop();
});

/** Also without the filter that asks for a decision ID. */
async function startAllowingEnvoy(version: string, { address }: ExtAuthzServer): Promise<RunningEnvoy> {
  const [host = '', port] = address.split(':');
  const envoy = await startEnvoy(version, {
    verifier: { kind: 'tcp', host, port: Number(port) },
    upstream: { host: upstream.host, port: upstream.port },
    edits: [
      closeAtOnce,
      ...patient,
      { path: [...shipped.extAuthz, 'failure_mode_allow'], value: true },
      { path: [...shipped.connectionManager, 'route_config', 'typed_per_filter_config'] },
    ],
  });
  opened.envoys.push(envoy);
  return envoy;
}

type Request = Parameters<ReturnType<typeof http1Client>['send']>[0];

async function outcome(envoy: RunningEnvoy, request: Request): Promise<string> {
  upstream.clear();
  const { body, headers, status } = await http1Client(envoy).send(request);
  const [reason] = headerValues(headers, 'x-proofgate-reason');
  if (upstream.requests.length > 0 || reason === undefined) return `forwarded, ${status}`;
  const { detail }: { readonly detail: string } = JSON.parse(body.toString());
  return `${status} ${reason}/${detail}`;
}

/** Another client's incomplete calls, until one more is too many. */
async function fill({ address }: ExtAuthzServer, calls: number): Promise<void> {
  const session = connect(`http://${address}`);
  opened.sessions.push(session);
  session.on('error', () => undefined);
  const before = await started();
  for (let call = 0; call < calls; call += 1) {
    const stream = session.request({
      ':method': 'POST',
      ':path': CHECK_PATH,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    stream.on('error', () => undefined);
  }
  await once(session, 'remoteSettings');
  await waitFor('the calls to begin', async () => ((await started()) >= before + calls ? true : undefined));
}

async function started(): Promise<number> {
  const text = await metrics.registry.getSingleMetricAsString('grpc_server_started_total');
  return Number(/grpc_method="Check"\} (\d+)/.exec(text)?.[1] ?? 0);
}

describe.each(LANE_ENVOYS)('Envoy %s under failure_mode_allow', (version) => {
  it('forwards a request without an answer from the verifier', async () => {
    const extAuthz = await openExtAuthz();
    const envoy = await startAllowingEnvoy(version, extAuthz);
    await extAuthz.drain(0);
    expect(await outcome(envoy, get)).toBe('forwarded, 200');
  });

  it('denies calls over the limit, whatever their size', async () => {
    const extAuthz = await openExtAuthz({
      callLimits: { ...CALL_LIMITS, maxCalls: 3, transferTimeoutMs: 60_000 },
    });
    await fill(extAuthz, 3);
    const envoy = await startAllowingEnvoy(version, extAuthz);
    for (const request of [get, { ...post, body: 'abc' }, large]) {
      expect(await outcome(envoy, request)).toBe('503 verifier_unavailable/overloaded');
    }
  });

  it('denies a Check of too many bytes, unread', async () => {
    const envoy = await startAllowingEnvoy(version, await openExtAuthz());
    expect(await outcome(envoy, large)).toBe('403 bundle_route_missing/path_not_canonical');
    expect(await outcome(envoy, get)).toBe('403 bundle_route_missing/origin');
  });
});
