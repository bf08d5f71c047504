/** The verifier's own loader and refresh client, which follow the publisher over HTTP. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SigningPurpose } from '../../../src/control/publishing/bundle-signing-keys.ts';
import { BundleLoader } from '../../../src/verifier/loading/bundle-loader.ts';
import { ControlConnection } from '../../../src/verifier/loading/refresh/control-connection.ts';
import { Refresher } from '../../../src/verifier/loading/refresh/refresher.ts';
import { FileMark } from '../../../src/verifier/loading/state/high-water-mark.ts';
import { PersistedBundle } from '../../../src/verifier/loading/state/persisted-bundle.ts';
import type { ControlServer, TestTarget } from './control-server.ts';
import { type ControlWorld, SITE } from './publishing-fixture.ts';

export interface RealTarget {
  /** State directory. */
  readonly directory: string;
  readonly loader: BundleLoader;
  /** Events of the bundle loader. */
  readonly events: string[];
  stop(): Promise<void>;
  /** Stops it, and removes the state directory that it made. */
  remove(): Promise<void>;
}

export interface RealTargetOptions {
  readonly world: ControlWorld;
  readonly control: ControlServer;
  readonly target: TestTarget;
  /** State directory of a verifier that was stopped; undefined for a new one. */
  readonly directory?: string | undefined;
}

/** Pinned public keys. */
async function signersOf(world: ControlWorld, purpose: SigningPurpose) {
  const keys = await world.read((tx) => world.signingKeys.signers(tx, SITE, purpose, world.clock.ms));
  return { keys: keys.map(({ publicKey }) => publicKey), threshold: 1 };
}

export async function startRealTarget(options: RealTargetOptions): Promise<RealTarget> {
  const { control, target, world } = options;
  const stateDirectory = options.directory ?? (await mkdtemp(join(tmpdir(), 'proofgate-target-')));
  const events: string[] = [];
  const persisted = new PersistedBundle(stateDirectory);
  const mark = new FileMark({ stateDirectory, authSite: SITE });
  const nowSeconds = () => world.clock.seconds;
  const loader = new BundleLoader({
    authSite: SITE,
    directory: undefined,
    persisted,
    bundleSigners: await signersOf(world, 'bundle'),
    freshnessSigners: await signersOf(world, 'freshness'),
    mark,
    nowSeconds,
    listener: {
      loaded: ({ revision }) => events.push(`loaded ${revision}`),
      advanced: ({ revision }) => events.push(`advanced ${revision}`),
      refused: ({ code }) => events.push(`refused ${code}`),
      freshnessRefused: ({ code }) => events.push(`freshness refused ${code}`),
    },
  });
  await loader.start();
  const url = new URL(control.url);
  const readToken = async () => target.token;
  const refresher = new Refresher({
    authSite: SITE,
    connection: new ControlConnection({ url, readToken, answerTimeoutMs: 5000 }),
    loader,
    persisted,
    mark,
    nowSeconds,
    secondsUntilStale: () => 10,
    retryFirstMs: 10,
    retryMaxMs: 100,
  });
  refresher.start();
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= refresher.close().then(async () => {
      loader.close();
      await persisted.close();
    });
    return stopped;
  };
  const remove = async () => {
    await stop();
    if (options.directory === undefined) await rm(stateDirectory, { recursive: true });
  };
  return { directory: stateDirectory, loader, events, stop, remove };
}
