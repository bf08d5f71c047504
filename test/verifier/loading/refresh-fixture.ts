/** A verifier's bundle that follows a fake Control, without the rest of a verifier. */
import { afterEach } from '@jest/globals';
import type { BundleContent } from '../../../src/bundle/format/schema.ts';
import { BundleLoader, type BundleLoaderOptions } from '../../../src/verifier/loading/bundle-loader.ts';
import { FileMark } from '../../../src/verifier/loading/high-water-mark.ts';
import { ControlConnection } from '../../../src/verifier/loading/refresh/control-connection.ts';
import { Refresher } from '../../../src/verifier/loading/refresh/refresher.ts';
import { PersistedBundle } from '../../../src/verifier/loading/state/persisted-bundle.ts';
import { AUTH_SITE, bundleContent, NOW_SECONDS, newTestKeys } from '../../fakes/bundle-content.ts';
import { type FakeControl, startFakeControl } from '../../fakes/control-distribution.ts';

export const keys = newTestKeys();

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** The small bundle of the tests, without its place in a chain. */
export function siteContent(
  more: Partial<BundleContent> = {},
): Omit<BundleContent, 'revision' | 'previous_head'> {
  const { revision: _, ...content } = { ...bundleContent(keys), ...more };
  return content;
}

export async function newControl(): Promise<FakeControl> {
  const options = { authSite: AUTH_SITE, signer: keys.bundle, nowSeconds: () => NOW_SECONDS };
  const control = await startFakeControl(options);
  closing.push(() => control.close());
  return control;
}

type RecordedEvent = readonly [event: string, ...details: unknown[]];

export interface Follower {
  readonly loader: BundleLoader;
  readonly refresher: Refresher;
  readonly persisted: PersistedBundle;
  readonly events: RecordedEvent[];
  /** Ends it, as a stop of its process would. */
  stop(): Promise<void>;
}

export interface FollowerOptions extends Partial<BundleLoaderOptions> {
  readonly stateDirectory: string;
  readonly url: string;
  readonly readToken?: () => Promise<string>;
}

/** Starts a holder from its state directory, and a refresher. */
export async function startFollower(options: FollowerOptions): Promise<Follower> {
  const { stateDirectory, url, readToken = async () => 'target-token', ...more } = options;
  const events: RecordedEvent[] = [];
  const persisted = new PersistedBundle(stateDirectory);
  const mark = new FileMark({ stateDirectory, authSite: AUTH_SITE });
  const signers = { keys: [keys.bundle.publicKey], threshold: 1 };
  const nowSeconds = () => NOW_SECONDS;
  const loader = new BundleLoader({
    authSite: AUTH_SITE,
    directory: undefined,
    persisted,
    bundleSigners: signers,
    freshnessSigners: signers,
    mark,
    nowSeconds,
    listener: {
      loaded: ({ revision }, { source }) => events.push(['loaded', revision, source]),
      advanced: ({ revision }, steps) => events.push(['advanced', revision, ...steps]),
      refused: ({ code }, source) => events.push(['refused', code, source]),
      freshnessRefused: ({ code }) => events.push(['freshnessRefused', code]),
    },
    ...more,
  });
  await loader.start();
  const refresher = new Refresher({
    authSite: AUTH_SITE,
    connection: new ControlConnection({ url: new URL(url), readToken, answerTimeoutMs: 2000 }),
    loader,
    persisted,
    mark,
    nowSeconds,
    retryFirstMs: 10,
    retryMaxMs: 100,
    listener: {
      failed: (activity, code) => activity !== 'acknowledge' && events.push(['failed', code]),
      recovered: (activity) => activity !== 'acknowledge' && events.push(['recovered']),
      rebased: (revision) => events.push(['rebased', revision]),
    },
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
  closing.push(stop);
  return { loader, refresher, persisted, events, stop };
}
