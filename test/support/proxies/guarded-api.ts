/** A real verifier behind a real proxy with the shipped configuration, in front of a recording API. */
import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { AUTHORITY } from '../site/routes.ts';
import type { Site } from '../site/site.ts';
import { startVerifier, type VerifierOptions, type VerifierProcess } from '../site/verifier.ts';
import { type ForwardProxy, type ProxyKind, SECRET } from './proxy.ts';

export interface GuardedApi {
  readonly verifier: VerifierProcess;
  readonly proxy: ForwardProxy;
  readonly upstream: Upstream;
  /** Where the proxy asks. */
  readonly socketPath: string;
  stop(): Promise<void>;
}

export type HttpVerifierStart = (flags: readonly string[]) => Promise<VerifierProcess>;

/** The flags of the shipped configuration's verifier. */
export async function httpFlags(
  kind: Pick<ProxyKind, 'profile' | 'bodyMode'>,
  folder: string,
): Promise<{ readonly socketPath: string; readonly flags: readonly string[] }> {
  const socketPath = join(folder, 'h.sock');
  const secretFile = join(folder, 'nginx-secret');
  await writeFile(secretFile, `${SECRET}\n`, { mode: 0o600 });
  return {
    socketPath,
    flags: [
      ...['--external-origin', `http://${AUTHORITY}`, '--http-listen', `unix:${socketPath}`],
      ...['--http-profile', kind.profile, '--http-body', kind.bodyMode],
      ...(kind.profile === 'nginx' ? ['--http-secret-file', secretFile] : []),
    ],
  };
}

/** @param start starts the verifier with these flags */
export async function startGuardedApi(
  kind: ProxyKind,
  site: Site,
  start: HttpVerifierStart,
  openUpstream: () => Promise<Upstream> = startUpstream,
): Promise<GuardedApi> {
  const { flags, socketPath } = await httpFlags(kind, await mkdtemp(join(site.directory, 'http-')));
  const stops: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (const stopOne of stops.splice(0).reverse()) await stopOne();
  };
  try {
    const verifier = await start(flags);
    stops.push(() => verifier.stop());
    const upstream = await openUpstream();
    stops.push(() => upstream.stop());
    const proxy = await kind.start({ socketPath, upstream, authority: AUTHORITY });
    stops.push(() => proxy.stop());
    return { verifier, proxy, upstream, socketPath, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

export function usualVerifier(
  site: Site,
  options: Partial<VerifierOptions> & Pick<VerifierOptions, 'bundleDirectory'>,
): HttpVerifierStart {
  return (flags) =>
    startVerifier(site, { replay: 'memory', ...options, flags: [...(options.flags ?? []), ...flags] });
}
