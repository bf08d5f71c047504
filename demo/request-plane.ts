/** The request plane of the demo: a real Envoy with the shipped configuration, the sidecar that it calls, and an upstream. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { envoyVersions, type RunningEnvoy, startEnvoy } from '../test/support/harness/envoy.ts';
import { type Service, startService } from '../test/support/harness/sidecar.ts';
import { startUpstream, type Upstream } from '../test/support/harness/upstream.ts';
import type { DemoFiles } from './files.ts';
import { listeningMember } from './listening.ts';
import type { Parts } from './parts.ts';
import { proofgateChild } from './proofgate-cli.ts';
import { siteId } from './site.ts';

export interface Gateway {
  readonly upstream: Upstream;
  readonly envoy: RunningEnvoy;
  /** The gateway's origin, to which callers send and for which they sign. */
  readonly origin: string;
}

/** @throws SetupError */
export async function startGateway(parts: Parts, files: DemoFiles): Promise<Gateway> {
  const upstream = await parts.start({
    name: 'upstream',
    advice: 'can this machine listen on 127.0.0.1?',
    start: () => startUpstream(),
    stop: (started) => started.stop(),
  });
  const version = envoyVersions[envoyVersions.length - 1] ?? '';
  const envoy = await parts.start({
    name: `Envoy ${version}`,
    start: () =>
      startEnvoy(version, {
        verifier: { kind: 'unix', path: files.socket },
        upstream: { host: upstream.host, port: upstream.port },
      }),
    stop: (started) => started.stop(),
  });
  return { upstream, envoy, origin: `http://${envoy.host}:${envoy.port}` };
}

export interface Sidecar {
  readonly verifier: Service;
  /** `http://HOST:PORT` of /readyz and /metrics. */
  readonly adminUrl: string;
}

/** Returns when it has its first bundle from Control. @throws SetupError */
export async function startSidecar(parts: Parts, files: DemoFiles, controlUrl: string): Promise<Sidecar> {
  const pins = await pinFlags(files);
  const verifier = await parts.start({
    name: 'sidecar (proofgate verifier)',
    start: () =>
      startService({
        ...proofgateChild([
          ...['verifier', '--auth-site', siteId, '--state-dir', files.state, ...pins],
          ...['--control-url', controlUrl, '--control-token-file', files.targetToken],
          ...['--listen', `unix:${files.socket}`, '--admin-listen', '127.0.0.1:0'],
          ...['--replay', 'memory', '--audit-file', files.audit],
        ]),
        readyUrl: (lines) => {
          const address = listeningMember(lines, 'admin_listen');
          return address && `http://${address}/readyz`;
        },
      }),
    stop: (started) => started.stop(),
  });
  return { verifier, adminUrl: `http://${listeningMember(verifier.stderrLines, 'admin_listen')}` };
}

/** Keys are pinned, never taken from what is verified with them. */
async function pinFlags({ pins }: DemoFiles): Promise<readonly string[]> {
  const files = await readdir(pins);
  return files.flatMap((file) => [
    file.startsWith('bundle') ? '--bundle-key' : '--freshness-key',
    join(pins, file),
  ]);
}
