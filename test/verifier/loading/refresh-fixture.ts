/** A verifier's bundle that follows a fake Control, without the rest of a verifier. */
import type { BundleContent } from '../../../src/bundle/format/schema.ts';
import { secondsUntilStale } from '../../../src/verifier/decision/steps/freshness.ts';
import type { BundleLoaderOptions } from '../../../src/verifier/loading/bundle-loader.ts';
import { ControlConnection } from '../../../src/verifier/loading/refresh/control-connection.ts';
import { Refresher, type RefresherOptions } from '../../../src/verifier/loading/refresh/refresher.ts';
import { PersistedBundle } from '../../../src/verifier/loading/state/persisted-bundle.ts';
import { type FakeControl, startFakeControl } from '../../support/fakes/control-distribution.ts';
import { AUTH_SITE, bundleContent, NOW_SECONDS, newTestKeys } from '../../support/fixtures/bundle-content.ts';
import { closeAfterTest, newTestLoader } from './loader-fixture.ts';

export const keys = newTestKeys();

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
  closeAfterTest(() => control.close());
  return control;
}

export interface FollowerOptions extends Partial<BundleLoaderOptions> {
  readonly stateDirectory: string;
  readonly url: string;
  readonly readToken?: () => Promise<string>;
  /** Of the connection and the refresher, milliseconds. */
  readonly answerTimeoutMs?: number;
  readonly retryFirstMs?: number;
  readonly retryMaxMs?: number;
  readonly realtimeStalenessSeconds?: number;
  readonly sleep?: RefresherOptions['sleep'];
  readonly lateAfterMs?: number;
}

/** Starts a loader from its state directory, and a refresher. */
export async function startFollower(options: FollowerOptions) {
  const { stateDirectory, url, readToken = async () => 'target-token', ...others } = options;
  const { answerTimeoutMs = 2000, retryFirstMs = 10, retryMaxMs = 100, sleep, lateAfterMs, ...rest } = others;
  const { realtimeStalenessSeconds = 10, ...more } = rest;
  const { nowSeconds = () => NOW_SECONDS } = more;
  const persisted = new PersistedBundle(stateDirectory);
  const { events, loader, mark, ...started } = newTestLoader({
    signer: keys.bundle,
    stateDirectory,
    persisted,
    ...more,
  });
  await loader.start();
  /** Outcomes of polls and acknowledgements, and failures of acknowledgements. */
  const outcomes: string[] = [];
  const refresher = new Refresher({
    authSite: AUTH_SITE,
    connection: new ControlConnection({ url: new URL(url), readToken, answerTimeoutMs }),
    loader,
    persisted,
    mark,
    nowSeconds,
    retryFirstMs,
    retryMaxMs,
    secondsUntilStale: () => secondsUntilStale(loader.snapshot, nowSeconds(), realtimeStalenessSeconds),
    ...(sleep && { sleep }),
    ...(lateAfterMs !== undefined && { lateAfterMs }),
    listener: {
      polled: (outcome) => outcomes.push(`poll ${outcome}`),
      late: ({ revision, workers }) => outcomes.push(`late ${revision}: ${workers}`),
      acknowledged: ({ revision }, outcome) => outcomes.push(`${outcome} ${revision}`),
      failed(activity, code) {
        if (activity === 'acknowledge') outcomes.push(`acknowledge ${code}`);
        else events.push(['failed', code]);
      },
      recovered(activity) {
        if (activity === 'acknowledge') outcomes.push('acknowledge recovered');
        else events.push(['recovered']);
      },
      rebased: (revision) => events.push(['rebased', revision]),
    },
  });
  refresher.start();
  let stopped: Promise<void> | undefined;
  /** Ends it, as a stop of its process would. */
  const stop = () => {
    stopped ??= refresher
      .close()
      .then(started.stop)
      .then(() => persisted.close());
    return stopped;
  };
  closeAfterTest(stop);
  return { loader, refresher, persisted, events, outcomes, stop };
}
