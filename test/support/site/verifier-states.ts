/** Verifiers in each state that the suite needs: one process each, started together, stopped together. */
import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TestRedisServer } from '../harness/redis-server.ts';
import { newHolder, nowSeconds, type Site } from './site.ts';
import { startVerifier, type VerifierOptions, type VerifierProcess } from './verifier.ts';

/** The condition of a verifier; the first three are healthy. */
export type VerifierState =
  | 'usual'
  | 'redis'
  /** A second verifier on the Redis of the first. */
  | 'redis_twin'
  | 'redis_gone'
  | 'small_quota'
  | 'no_bundle'
  | 'expired_bundle'
  | 'future_bundle'
  | 'full_disk'
  /** The verifier is configured for an Envoy that sends no bodies. */
  | 'bodies_unseen';

export interface StartedVerifiers {
  readonly verifiers: ReadonlyMap<VerifierState, VerifierProcess>;
  of(state: VerifierState): VerifierProcess;
  stop(): Promise<void>;
}

export async function startVerifiers(
  site: Site,
  wanted: readonly VerifierState[],
): Promise<StartedVerifiers> {
  const stops: (() => Promise<void>)[] = [];
  const stop = async () => {
    for (const stopOne of stops.splice(0)) await stopOne();
  };
  const bundleDirectory = await site.makeBundle();
  let shared: Promise<GuardedRedis> | undefined;
  const sharedRedis = () => {
    shared ??= startRedis({ site, stops });
    return shared;
  };
  const start = async (state: VerifierState) => {
    const verifier = await STARTS[state]({ site, bundleDirectory, sharedRedis, stops });
    stops.unshift(verifier.stop);
    return [state, verifier] as const;
  };
  const started = await Promise.allSettled(wanted.map(start));
  const failure = started.find((result) => result.status === 'rejected');
  if (failure !== undefined) {
    await stop();
    throw failure.reason;
  }
  const verifiers = new Map(
    started.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : [])),
  );
  return {
    verifiers,
    of: (state) => {
      const verifier = verifiers.get(state);
      if (verifier === undefined) throw new Error(`no verifier was started for ${state}`);
      return verifier;
    },
    stop,
  };
}

interface StartInputs {
  readonly site: Site;
  /** Signed a while ago, good for an hour. */
  readonly bundleDirectory: string;
  readonly sharedRedis: () => Promise<GuardedRedis>;
  readonly stops: (() => Promise<unknown>)[];
}

type Start = (inputs: StartInputs) => Promise<VerifierProcess>;

const inMemory =
  (options: Partial<VerifierOptions> = {}): Start =>
  ({ site, bundleDirectory }) =>
    startVerifier(site, { replay: 'memory', bundleDirectory, ...options });

const STARTS: { readonly [C in VerifierState]: Start } = {
  usual: inMemory(),
  small_quota: inMemory({ flags: ['--holder-quota', '1'] }),
  full_disk: inMemory({ audit: 'full_disk' }),
  bodies_unseen: inMemory({ flags: ['--envoy-body', 'none'] }),
  redis: async (inputs) => startOnRedis(inputs, await inputs.sharedRedis()),
  redis_twin: async (inputs) => startOnRedis(inputs, await inputs.sharedRedis()),
  redis_gone: async (inputs) => {
    const redis = await startRedis(inputs);
    const verifier = await startOnRedis(inputs, redis);
    await redis.server.kill();
    return verifier;
  },
  no_bundle: async ({ site }) => {
    const bundleDirectory = await mkdtemp(join(site.directory, 'no-bundle-'));
    return startVerifier(site, { replay: 'memory', bundleDirectory, awaited: 'livez' });
  },
  expired_bundle: startWithTimes(-100, -50),
  future_bundle: startWithTimes(1000, 2000),
};

/** @param issuedInSeconds from now, like the other */
function startWithTimes(issuedInSeconds: number, expiresInSeconds: number): Start {
  return async ({ site }) => {
    const bundleDirectory = await site.makeBundle({
      issuedAtSeconds: nowSeconds() + issuedInSeconds,
      expiresAtSeconds: nowSeconds() + expiresInSeconds,
    });
    return startVerifier(site, { replay: 'memory', bundleDirectory, awaited: 'livez' });
  };
}

export interface GuardedRedis {
  readonly server: TestRedisServer;
  /** With the password in it. */
  readonly url: string;
  /** With the password alone. */
  readonly passwordFile: string;
}

/** A Redis with a password that must not appear in any output. */
export async function startRedis({
  site,
  stops,
}: Pick<StartInputs, 'site' | 'stops'>): Promise<GuardedRedis> {
  const password = newHolder(site.secrets).publicKey.thumbprint;
  site.secrets.add('the Redis password', password);
  const server = await TestRedisServer.start(
    ...['--maxmemory-policy', 'noeviction', '--requirepass', password],
  );
  stops.push(() => server.stop());
  const passwordFile = join(site.directory, `redis-${new URL(server.url).port}.password`);
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  return { server, url: server.url.replace('//', `//:${password}@`), passwordFile };
}

function startOnRedis(
  { site, bundleDirectory }: StartInputs,
  { server, passwordFile }: GuardedRedis,
): Promise<VerifierProcess> {
  // The other arrangement: TCP, and audit events on standard output. The time-out is for machines that are busy testing.
  const flags = ['--redis-timeout', '400ms', '--redis-password-file', passwordFile];
  const other = { listen: 'tcp', audit: 'best_effort_stdout', flags } as const;
  return startVerifier(site, { replay: server.url, bundleDirectory, ...other });
}
