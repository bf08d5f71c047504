/** Tests metrics: names and labels are an interface, and no label names a caller. */
import { describe, expect, it } from '@jest/globals';
import { Counter, Registry } from 'prom-client';
import { renderMetrics } from '../../../src/process/telemetry/instruments.ts';
import { createAuditMetrics } from '../../../src/verifier/audit/audit-metrics.ts';
import {
  createReplayMetrics,
  createVerifierMetrics,
  type ReplayReading,
} from '../../../src/verifier/verifier-metrics.ts';
import { type SignedRequest, signRequest } from '../../support/fixtures/signed-request.ts';
import { compileSite, KEY_ID, newSiteKeys, siteContent } from '../../support/fixtures/snapshot.ts';
import { createTestVerifier } from '../../support/fixtures/test-verifier.ts';

const samples = async ({ registry }: { readonly registry: Registry }) => {
  const text = await registry.metrics();
  return text.split('\n').filter((line) => /^(?:proofgate_|grpc_)/.test(line));
};

describe('metrics of the verifier', () => {
  it('have these names and labels', async () => {
    const metrics = createVerifierMetrics(() => ({
      revision: 7,
      ageSeconds: 3,
      isBreakGlass: true,
      staleRoutes: { bounded: 0, realtime: 2 },
    }));
    metrics.decided('allowed', '', '', 'orders-read');
    metrics.decided('denied', 'stale_bundle_fail_closed', 'stale', 'orders-read');
    metrics.decided('denied', 'jti_replay', '', 'orders-read');
    metrics.decided('denied', 'jti_replay', '', 'orders-read');
    metrics.stepTook('pipeline', 0.0002);
    metrics.stepTook('replay', 0.02);
    metrics.replayUnavailable('fenced');
    metrics.bundleRefused('revision_lower');
    metrics.allowedByBreakGlass();
    const check = metrics.rpc('/envoy.service.auth.v3.Authorization/Check', 'unary');
    check.started();
    check.started();
    check.received();
    check.sent();
    check.handled('OK', 0.0003);
    metrics.extAuthz.refused('tls');
    metrics.extAuthz.connections(2);
    metrics.extAuthz.calls(1);
    metrics.extAuthz.certificateExpires(1_900_000_000);
    metrics.extAuthz.certificateReloaded('failed');
    const found = (await samples(metrics)).filter((line) => !line.includes('_bucket'));
    const withoutSums = found.filter((line) => !line.includes('_sum'));
    const rpc = 'grpc_type="unary",grpc_service="envoy.service.auth.v3.Authorization",grpc_method="Check"';
    expect(withoutSums).toEqual([
      'proofgate_decisions_total{outcome="allowed",reason="",detail="",route_id="orders-read"} 1',
      'proofgate_decisions_total{outcome="denied",reason="stale_bundle_fail_closed",detail="stale",route_id="orders-read"} 1',
      'proofgate_decisions_total{outcome="denied",reason="jti_replay",detail="",route_id="orders-read"} 2',
      'proofgate_step_duration_seconds_count{step="pipeline"} 1',
      'proofgate_step_duration_seconds_count{step="replay"} 1',
      'proofgate_replay_unavailable_total{why="store"} 0',
      'proofgate_replay_unavailable_total{why="fenced"} 1',
      'proofgate_replay_unavailable_total{why="quota"} 0',
      'proofgate_bundle_refused_total{code="revision_lower"} 1',
      'proofgate_break_glass_decisions_total 1',
      'proofgate_bundle_revision 7',
      'proofgate_bundle_age_seconds 3',
      'proofgate_break_glass_active 1',
      'proofgate_stale_routes{freshness_class="bounded"} 0',
      'proofgate_stale_routes{freshness_class="realtime"} 2',
      `grpc_server_started_total{${rpc}} 2`,
      `grpc_server_handled_total{${rpc},grpc_code="OK"} 1`,
      `grpc_server_msg_received_total{${rpc}} 1`,
      `grpc_server_msg_sent_total{${rpc}} 1`,
      `grpc_server_handling_seconds_count{${rpc}} 1`,
      'proofgate_grpc_refused_total{why="tls"} 1',
      'proofgate_grpc_connections 2',
      'proofgate_grpc_calls_in_flight 1',
      'proofgate_tls_certificate_expiry_timestamp_seconds 1900000000',
      'proofgate_tls_reloads_total{outcome="succeeded"} 0',
      'proofgate_tls_reloads_total{outcome="failed"} 1',
    ]);
  });

  it('say so while no bundle is loaded', async () => {
    const found = await samples(createVerifierMetrics(() => undefined));
    expect(found).toContain('proofgate_bundle_revision 0');
    expect(found).toContain('proofgate_bundle_age_seconds Nan');
    expect(found).toContain('proofgate_stale_routes{freshness_class="realtime"} 0');
  });

  it('name no caller, key, passport or jti', async () => {
    const metrics = createVerifierMetrics(() => undefined);
    const keys = newSiteKeys();
    const snapshot = await compileSite(siteContent(keys));
    const { verifier } = createTestVerifier({ snapshot, metrics });
    const requests: SignedRequest[] = [
      signRequest(keys, { caller: 'billing', route: 'orders-read' }),
      signRequest(keys, { caller: 'broker', route: 'orders-read' }, { passportKey: keys.billing }),
      signRequest(keys, { caller: 'reporting', route: 'orders-write' }),
    ];
    for (const { facts } of requests) await verifier.check(facts);
    const text = (await samples(metrics)).join('\n');
    expect(text).toContain('outcome="allowed"');
    const names = ['client:', 'spiffe:', 'control.shop.example', ...Object.values(KEY_ID)];
    for (const { jti, jws } of requests) names.push(jti, jws);
    expect(names.filter((name) => text.includes(name))).toEqual([]);
  });
});

describe('metrics of the replay store', () => {
  it('count fences by reason, each from the start', async () => {
    const registry = new Registry();
    const metrics = createReplayMetrics(registry, ['start', 'clock'], () => undefined);
    metrics.fenceRaised('clock');
    metrics.fenceRaised('clock');
    expect(await samples({ registry })).toEqual([
      'proofgate_replay_fences_total{why="start"} 0',
      'proofgate_replay_fences_total{why="clock"} 2',
      'proofgate_replay_fence_seconds 0',
    ]);
  });

  it('show the state at each scrape', async () => {
    const registry = new Registry();
    let reading: ReplayReading = { fenceSecondsLeft: 17, links: { serving: 2, unfit: 1 } };
    createReplayMetrics(registry, [], () => reading);
    expect(await samples({ registry })).toEqual([
      'proofgate_replay_fence_seconds 17',
      'proofgate_replay_links{state="serving"} 2',
      'proofgate_replay_links{state="unfit"} 1',
    ]);
    reading = { fenceSecondsLeft: 0, links: { serving: 3, unfit: 0 } };
    expect(await samples({ registry })).toEqual([
      'proofgate_replay_fence_seconds 0',
      'proofgate_replay_links{state="serving"} 3',
      'proofgate_replay_links{state="unfit"} 0',
    ]);
  });
});

it('metrics of the audit trail count events by sink', async () => {
  const registry = new Registry();
  const metrics = createAuditMetrics(registry);
  const file = metrics.forSink('file', () => 12);
  metrics.forSink('http', () => 0);
  file.written(3);
  file.dropped(2);
  file.failed('enospc');
  const found = await samples({ registry });
  expect(found).toEqual(
    expect.arrayContaining([
      'proofgate_audit_written_total{sink="file"} 3',
      'proofgate_audit_written_total{sink="http"} 0',
      'proofgate_audit_dropped_total{sink="file"} 2',
      'proofgate_audit_dropped_total{sink="http"} 0',
      'proofgate_audit_failures_total{sink="file",code="enospc"} 1',
      'proofgate_audit_queue_bytes{sink="file"} 12',
      'proofgate_audit_last_success_timestamp_seconds{sink="http"} Nan',
    ]),
  );
  const [, seconds] = /last_success_timestamp_seconds\{sink="file"\} ([0-9.]+)/.exec(found.join('\n')) ?? [];
  expect(Math.abs(Number(seconds) - Date.now() / 1000)).toBeLessThan(60);
});

const METRICS = 20;

function registryOf(count: number): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ worker: '1' });
  for (let at = 0; at < count; at += 1) {
    new Counter({ name: `counter_${at}`, help: 'One', labelNames: ['of'], registers: [registry] }).inc({
      of: 'x',
    });
  }
  return registry;
}

it('renders the same text as the library', async () => {
  for (const registry of [registryOf(METRICS), registryOf(0)]) {
    expect(await renderMetrics(registry)).toBe(await registry.metrics());
  }
});

it('yields after each metric', async () => {
  let turns = 0;
  let isDone = false;
  const turn = () => {
    turns += 1;
    if (!isDone) setImmediate(turn);
  };
  setImmediate(turn);
  await renderMetrics(registryOf(METRICS));
  isDone = true;
  expect(turns).toBeGreaterThanOrEqual(METRICS - 1);
});
