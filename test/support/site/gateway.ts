/** A real Envoy from the shipped configuration between callers, a verifier process and a recording upstream. */

import type { WireAddress, WireClient } from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { http2Client } from '../../../src/tools/conformance/wire/http2.ts';
import { type RunningEnvoy, startEnvoy } from '../harness/envoy.ts';
import { type ConfigEdit, closeAtOnce, patient, shipped } from '../harness/envoy-config.ts';
import { startUpstream, type Upstream, type UpstreamOptions } from '../harness/upstream.ts';
import { UNBUFFERED_PREFIXES } from './routes.ts';
import type { VerifierProcess } from './verifier.ts';

export interface Gateway {
  readonly envoy: RunningEnvoy;
  readonly upstream: Upstream;
  readonly verifier: VerifierProcess;
  readonly clients: readonly [WireClient, WireClient];
  client(protocol: Protocol): WireClient;
  stop(): Promise<void>;
}

export const PROTOCOLS = ['HTTP/1.1', 'HTTP/2'] as const;
export type Protocol = (typeof PROTOCOLS)[number];

export interface GatewayOptions {
  readonly edits?: readonly ConfigEdit[];
  readonly upstream?: Pick<UpstreamOptions, 'protocol' | 'answerHeaders'>;
  /** Starts the upstream; the gateway stops it. Default: the recording upstream, as {@link upstream} says. */
  readonly openUpstream?: () => Promise<Upstream>;
  /** With the shipped file's optional blocks as they are; how callers connect to them. */
  readonly tls?: NonNullable<WireAddress['tls']>;
  /** With the shipped file's block of TLS towards the verifier. */
  readonly verifierTls?: boolean;
  /** Keeps the shipped time-outs, for tests of those. Default false: {@link patient}. */
  readonly shippedTimeouts?: boolean;
}

/** The started parts of a gateway. */
export interface GatewayParts extends Pick<Gateway, 'envoy' | 'upstream' | 'verifier'> {
  readonly tls: WireAddress['tls'] | undefined;
}

export function gatewayOf({ envoy, upstream, verifier, tls }: GatewayParts): Gateway {
  const address = { host: envoy.host, port: envoy.port, ...(tls && { tls }) };
  const clients = [http1Client(address), http2Client(address)] as const;
  return {
    envoy,
    upstream,
    verifier,
    clients,
    client: (protocol) => clients[protocol === 'HTTP/1.1' ? 0 : 1],
    stop: async () => {
      await envoy.stop();
      await upstream.stop();
    },
  };
}

/** Ends with the gateway; the verifier lives on, for others may use it too. */
export async function startGateway(
  version: string,
  verifier: VerifierProcess,
  options: GatewayOptions = {},
): Promise<Gateway> {
  const {
    edits = [],
    tls,
    upstream: upstreamOptions = {},
    openUpstream = () => startUpstream(upstreamOptions),
    verifierTls = false,
    shippedTimeouts = false,
  } = options;
  const upstream = await openUpstream();
  try {
    const envoy = await startEnvoy(version, {
      verifier: verifier.address,
      upstream: { host: upstream.host, port: upstream.port, http2: upstreamOptions.protocol === 'h2c' },
      optionalBlocks: tls !== undefined,
      verifierTls,
      edits: [
        closeAtOnce,
        ...(shippedTimeouts ? [] : patient),
        ...(tls === undefined ? [unbufferedRoutes] : []),
        ...edits,
      ],
    });
    return gatewayOf({ envoy, upstream, verifier, tls });
  } catch (error) {
    await upstream.stop();
    throw error;
  }
}

/** The shipped file's block for `body: unbound`, and one that uses it where it must not be used. */
const unbufferedRoutes: ConfigEdit = {
  path: [...shipped.virtualHost, 'routes'],
  value: [
    ...UNBUFFERED_PREFIXES.map((prefix) => ({
      match: { prefix },
      route: { cluster: 'upstream', timeout: '0s' },
      typed_per_filter_config: {
        'envoy.filters.http.ext_authz': {
          '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute',
          check_settings: { disable_request_body_buffering: true },
        },
      },
    })),
    { match: { prefix: '/' }, route: { cluster: 'upstream', timeout: '15s' } },
  ],
};
