/** The egress proxy of the signer: its settings, their valid combinations, and its start. Source: docs/operate/signer.md. */
import { isIP } from 'node:net';
import { tmpdir } from 'node:os';
import { readCaFile } from '../../../process/files/input-files.ts';
import { openNegotiatedPool } from '../../../process/http-proxy/negotiated-pool.ts';
import { openUpstreamPool, type UpstreamPool } from '../../../process/http-proxy/upstream-pool.ts';
import { usageError } from '../../../process/program/errors.ts';
import { parseHostAndPort } from '../../../process/settings/listen-address.ts';
import {
  integer,
  list,
  optional,
  type SettingValues,
  text,
  withDefault,
} from '../../../process/settings/settings.ts';
import type { Logger } from '../../../process/telemetry/logger.ts';
import { isLoopback } from '../../../protocol/loopback.ts';
import type { Origin } from '../../../protocol/request-target.ts';
import { clockText } from '../../sign/clock-difference.ts';
import type { EgressParts } from '../egress/egress-handler.ts';
import { createEgressMetrics } from '../egress/egress-metrics.ts';
import { parseUpstreamRoutes, type RouteFault, type UpstreamRoute } from '../egress/egress-routes.ts';
import { type EgressServer, openEgressServer } from '../egress/egress-server.ts';
import { localAddress } from './local-address.ts';

export const EGRESS_SETTINGS = {
  listen: optional(
    text('--listen <address>', 'egress proxy: the base URL of applications, unix:PATH or loopback HOST:PORT'),
  ),
  upstream: optional(text('--upstream <origin>', 'where its requests go: https://HOST[:PORT]')),
  routes: list(text('--route <prefix=origin>', 'where requests below this path go, without the prefix')),
  upstreamCaFile: optional(
    text('--upstream-ca-file <file>', 'CA certificates (PEM) for the connections to upstreams'),
  ),
  connectTo: optional(text('--connect-to <host:port>', "where to connect instead of --upstream's host")),
  maxBody: withDefault(
    integer('--max-body <count>', 'maximum size of a request body, bytes', {
      min: 0,
      max: 1_099_511_627_776,
    }),
    '104857600',
  ),
};
export type EgressSettings = SettingValues<typeof EGRESS_SETTINGS>;

export interface EgressPlan {
  readonly listen: string;
  readonly routes: readonly UpstreamRoute[];
  readonly caPem: string | undefined;
  readonly connectTo: { readonly host: string; readonly port: number } | undefined;
  readonly maxBodyBytes: number;
}

const FAULTS: { readonly [F in RouteFault]: string } = {
  none: '--listen needs --upstream or --route',
  prefix: '--route must be /PREFIX=https://HOST[:PORT], the prefix of letters, digits, ".", "_", "~", "-"',
  origin: '--upstream and --route need an origin: https://HOST[:PORT] in lower case, without path',
  repeated: '--route: a prefix is there twice',
};

/** @throws CliError `bad_address`, `listen_not_loopback`, `bad_upstream`, `listen_required`, and for the CA file */
export async function planEgress(settings: EgressSettings): Promise<EgressPlan | undefined> {
  const { connectTo, listen, maxBody, routes, upstream, upstreamCaFile } = settings;
  if (listen === undefined) {
    if (upstream === undefined && routes.length === 0) return undefined;
    throw usageError('listen_required', '--upstream and --route need --listen');
  }
  const parsed = parseUpstreamRoutes(upstream, routes);
  if (typeof parsed === 'string') throw usageError('bad_upstream', FAULTS[parsed]);
  if (connectTo !== undefined && (upstream === undefined || routes.length > 0)) {
    throw usageError('bad_upstream', '--connect-to is for --upstream alone');
  }
  if (connectTo !== undefined && parsed.some(({ origin }) => isIP(hostOf(origin)) !== 0)) {
    throw usageError('bad_upstream', '--connect-to needs an --upstream with a host name');
  }
  return {
    listen: localAddress('listen', listen),
    routes: parsed,
    caPem: await readCaFile(upstreamCaFile),
    connectTo: connectTo === undefined ? undefined : parseHostAndPort('connect-to', connectTo),
    maxBodyBytes: maxBody,
  };
}

const MAX_CONNECTIONS = 4_096;
const MAX_REQUESTS = 2_048;
const MAX_UPSTREAM_CONNECTIONS = 1_024;
const MAX_SPOOL_BYTES = 1_073_741_824;
const BODY_TIMEOUT_MS = 60_000;
const RESPONSE_TIMEOUT_MS = 60_000;
const IDLE_TIMEOUT_MS = 300_000;
const QUEUE_TIMEOUT_MS = 10_000;

export interface EgressInputs
  extends Pick<EgressParts, 'onInternalError' | 'onPassed' | 'onSigned' | 'signer' | 'unsigned'> {
  readonly registry: Parameters<typeof createEgressMetrics>[0];
  readonly logger: Logger;
  /** @param code code of a connection or request that was refused */
  readonly onRefused: (code: string) => void;
}

/** @throws ListenError */
export function openEgress(
  plan: EgressPlan,
  { logger, onRefused, registry, ...inputs }: EgressInputs,
): Promise<EgressServer> {
  const pools = new Map<string, UpstreamPool>();
  const poolOf = (origin: Origin): UpstreamPool => {
    const name = `${origin.scheme}://${origin.authority}`;
    const pool = pools.get(name) ?? openPool(plan, origin, logger);
    pools.set(name, pool);
    return pool;
  };
  return openEgressServer({
    ...inputs,
    onWrongClock: logWrongClock(logger),
    listen: plan.listen,
    maxConnections: MAX_CONNECTIONS,
    routes: plan.routes.map((route) => ({ ...route, pool: poolOf(route.origin) })),
    limits: {
      maxRequests: MAX_REQUESTS,
      maxBodyBytes: plan.maxBodyBytes,
      spoolDirectory: tmpdir(),
      maxSpoolBytes: Math.max(MAX_SPOOL_BYTES, plan.maxBodyBytes),
      bodyTimeoutMs: BODY_TIMEOUT_MS,
      idleTimeoutMs: IDLE_TIMEOUT_MS,
      queueTimeoutMs: QUEUE_TIMEOUT_MS,
    },
    metrics: { ...createEgressMetrics(registry), refused: onRefused },
  });
}

function openPool({ caPem, connectTo }: EgressPlan, origin: Origin, logger: Logger): UpstreamPool {
  const { authority, scheme } = origin;
  const place = connectTo === undefined ? authority : formatPlace(connectTo);
  if (scheme === 'http' && !isLoopback(new URL(`http://${place}`).hostname)) {
    logger.warn(
      { event: 'upstream_without_tls', origin: `http://${authority}` },
      'requests are signed and sent without TLS: others on the way can read proofs, and send them first',
    );
  }
  const url = new URL(`${scheme}://${place}`);
  const limits = {
    maxConnections: MAX_UPSTREAM_CONNECTIONS,
    responseTimeoutMs: RESPONSE_TIMEOUT_MS,
    idleTimeoutMs: IDLE_TIMEOUT_MS,
    onConnect: logUpstream(logger, `${scheme}://${authority}`),
  };
  if (scheme === 'http') {
    return openUpstreamPool({ ...limits, address: { kind: 'origin', origin: url }, tls: undefined });
  }
  // The certificate must match the origin, even with another connect address.
  const tls = { ca: caPem, client: undefined, serverName: connectTo && hostOf(origin) };
  return openNegotiatedPool(url, { ...limits, tls });
}

const hostOf = ({ authority }: Origin) => authority.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');

const formatPlace = ({ host, port }: { readonly host: string; readonly port: number }) =>
  `${host.includes(':') ? `[${host}]` : host}:${port}`;

/** Logs when connecting to the upstream begins to fail, fails for another reason, or succeeds again. */
function logUpstream(logger: Logger, origin: string): (errorCode: string | undefined) => void {
  let failing: string | undefined;
  return (code) => {
    if (code === failing) return;
    failing = code;
    if (code === undefined) logger.info({ event: 'upstream_connected', origin }, 'connected to the upstream');
    else logger.warn({ event: 'upstream_unreachable', origin, code }, 'cannot connect to the upstream');
  };
}

const LOG_CLOCK_EVERY_MS = 60_000;

function logWrongClock(logger: Logger): (aheadSeconds: number) => void {
  let loggedAtMs = Number.NEGATIVE_INFINITY;
  return (aheadSeconds) => {
    if (performance.now() - loggedAtMs < LOG_CLOCK_EVERY_MS) return;
    loggedAtMs = performance.now();
    logger.warn(
      { event: 'clock_differs', ahead_seconds: aheadSeconds },
      `a request was denied: ${clockText(aheadSeconds)}`,
    );
  };
}
