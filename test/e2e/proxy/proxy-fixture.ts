/** `proofgate proxy` as a process of its own, between callers and a recording upstream. */

import type { WireAddress } from '../../../src/tools/conformance/wire/exchange.ts';
import { startUpstream, type Upstream } from '../../support/harness/upstream.ts';
import type { Site } from '../../support/site/site.ts';
import { startVerifier, type VerifierOptions, type VerifierProcess } from '../../support/site/verifier.ts';

export interface RunningProxy {
  readonly process: VerifierProcess;
  readonly address: WireAddress;
  stop(): Promise<void>;
}

export interface ProxyOptions extends Partial<Omit<VerifierOptions, 'program' | 'listen'>> {
  /** Value of `--upstream`. */
  readonly upstream: string;
  /** How callers connect, when flags configure TLS. */
  readonly tls?: NonNullable<WireAddress['tls']>;
}

export async function startProxy(site: Site, options: ProxyOptions): Promise<RunningProxy> {
  const { flags = [], tls, upstream, ...verifier } = options;
  const process = await startVerifier(site, {
    bundleDirectory: verifier.bundleDirectory ?? (await site.makeBundle()),
    replay: 'memory',
    ...verifier,
    program: 'proxy',
    listen: 'tcp',
    flags: ['--upstream', upstream, ...flags],
  });
  const { address } = process;
  if (address.kind !== 'tcp') throw new Error('the proxy does not listen on TCP');
  const { host, port } = address;
  return { process, address: { host, port, ...(tls && { tls }) }, stop: () => process.stop() };
}

export interface ProxiedUpstream extends RunningProxy {
  readonly upstream: Upstream;
}

/** With a recording upstream that ends with it. */
export async function startRecordedProxy(
  site: Site,
  options: Omit<ProxyOptions, 'upstream'> = {},
): Promise<ProxiedUpstream> {
  const upstream = await startUpstream();
  try {
    const proxy = await startProxy(site, {
      ...options,
      upstream: `http://${upstream.host}:${upstream.port}`,
    });
    return {
      ...proxy,
      upstream,
      stop: async () => {
        await proxy.stop();
        await upstream.stop();
      },
    };
  } catch (error) {
    await upstream.stop();
    throw error;
  }
}
