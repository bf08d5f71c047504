/** Runs `proofgate proxy`: a verifier with the reverse proxy as its enforcement point. */

import { followTlsFiles } from '../../../process/connections/listener-tls.ts';
import { openUpstreamPool } from '../../../process/http-proxy/upstream-pool.ts';
import type { CliContext } from '../../../process/program/output.ts';
import type { Logger } from '../../../process/telemetry/log.ts';
import { createProxyMetrics } from '../../reverse-proxy/proxy-metrics.ts';
import { openProxyServer } from '../../reverse-proxy/proxy-server.ts';
import {
  type PlannedServer,
  type PointServer,
  runEnforcement,
  type ServerInputs,
} from '../enforcement-process.ts';
import { type ProxyPlan, planProxy } from './proxy-plan.ts';
import type { ProxySettings } from './proxy-settings.ts';

/** Maximum time that a request waits for a free connection to the upstream. */
const QUEUE_TIMEOUT_MS = 10_000;

/** Runs until SIGTERM or SIGINT; returns after requests in progress are answered. */
export function runProxy(settings: ProxySettings, context: CliContext): Promise<void> {
  return runEnforcement({ settings, context, planServers: async () => [await planProxyServer(settings)] });
}

async function planProxyServer(settings: ProxySettings): Promise<PlannedServer> {
  const plan = await planProxy(settings);
  return { name: 'listen', listen: settings.listen, open: (inputs) => openProxy(settings, plan, inputs) };
}

async function openProxy(
  settings: ProxySettings,
  plan: ProxyPlan,
  { logger, metrics, ...inputs }: ServerInputs,
): Promise<PointServer> {
  const { idleTimeoutMs } = settings;
  const pool = openUpstreamPool({
    address: settings.upstream,
    tls: plan.upstreamTls,
    maxConnections: settings.upstreamConnections,
    responseTimeoutMs: settings.upstreamTimeoutMs,
    idleTimeoutMs,
    onConnect: logUpstream(logger),
  });
  const server = await openProxyServer({
    ...inputs,
    pool,
    metrics: createProxyMetrics(metrics.registry),
    limits: {
      maxRequests: settings.maxRequests,
      maxBodyBytes: settings.maxBody,
      spoolDirectory: plan.spoolDirectory,
      maxSpoolBytes: settings.maxSpool,
      bodyTimeoutMs: settings.bodyTimeoutMs,
      idleTimeoutMs,
      queueTimeoutMs: QUEUE_TIMEOUT_MS,
    },
    listen: settings.listen,
    tls: plan.tls,
    maxConnections: settings.maxConnections,
    externalOrigin: settings.externalOrigin,
    upstreamHost: settings.upstreamHost,
  });
  const { tls, upstreamCertificate, upstreamTls } = plan;
  const followers = [
    tls &&
      followTlsFiles({
        plan: tls,
        take: (material) => server.setTlsMaterial(material),
        metrics: metrics.extAuthz,
        logger,
      }),
    upstreamTls &&
      upstreamCertificate &&
      followTlsFiles({
        plan: upstreamCertificate,
        take: (client) => pool.setTls({ ...upstreamTls, client }),
        // The gauge shows only the listener's certificate.
        metrics: { ...metrics.extAuthz, certificateExpires: () => undefined },
        logger,
      }),
  ].filter((follower) => follower !== undefined);
  return {
    address: server.address,
    checks: () => followers.map((follower) => follower.check()),
    drain: async (timeoutMs) => {
      for (const follower of followers) follower.close();
      await server.drain(timeoutMs);
    },
  };
}

/** Logs when connecting to the upstream begins to fail, fails for another reason, or succeeds again. */
function logUpstream(logger: Logger): (errorCode: string | undefined) => void {
  let failing: string | undefined;
  return (code) => {
    if (code === failing) return;
    failing = code;
    if (code === undefined) logger.info('connected to the upstream again');
    else logger.warn({ code }, 'cannot connect to the upstream; check --upstream and its certificate');
  };
}
