/**
 * A real Envoy with a configuration other than the shipped file, between callers, a verifier process and a recording upstream.
 */

import type { WireAddress } from '../../../src/tools/conformance/wire/exchange.ts';
import { startEnvoyWith } from '../../support/harness/envoy.ts';
import type { VerifierAddress } from '../../support/harness/envoy-config.ts';
import { startUpstream } from '../../support/harness/upstream.ts';
import { type Gateway, gatewayOf } from '../../support/site/gateway.ts';
import type { VerifierProcess } from '../../support/site/verifier.ts';

export interface Parties {
  readonly verifier: VerifierAddress;
  readonly upstream: { readonly host: string; readonly port: number };
}

export interface Configured {
  /** A bootstrap for these parties; admin interface and listener on free loopback ports. */
  bootstrap(parties: Parties): string;
  /** Name of the listener that callers reach. */
  readonly listener: string;
  /** How they connect to it. */
  readonly tls?: NonNullable<WireAddress['tls']>;
}

/** Ends with the gateway; the verifier lives on. */
export async function startConfigured(
  version: string,
  verifier: VerifierProcess,
  { bootstrap, listener, tls }: Configured,
): Promise<Gateway> {
  const upstream = await startUpstream();
  try {
    const yaml = bootstrap({ verifier: verifier.address, upstream });
    const envoy = await startEnvoyWith(version, yaml, { listener });
    return gatewayOf({ envoy, upstream, verifier, tls });
  } catch (error) {
    await upstream.stop();
    throw error;
  }
}
