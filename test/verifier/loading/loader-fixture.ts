/** Bundle loading as a verifier sets it up: records its events, and ends it after the test. */
import { afterEach } from '@jest/globals';
import type { SigningKey } from '../../../src/protocol/signing.ts';
import { BundleLoader, type BundleLoaderOptions } from '../../../src/verifier/loading/bundle-loader.ts';
import { FileMark, MemoryMark } from '../../../src/verifier/loading/state/high-water-mark.ts';
import { PersistedBundle } from '../../../src/verifier/loading/state/persisted-bundle.ts';
import { AUTH_SITE, NOW_SECONDS } from '../../support/fixtures/bundle-content.ts';

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** The last one is closed first. */
export function closeAfterTest(close: () => Promise<void> | void): void {
  closing.push(close);
}

type RecordedEvent = readonly [event: string, ...details: unknown[]];

export interface TestLoaderOptions extends Partial<BundleLoaderOptions> {
  /** The key that signs bundles and statements. */
  readonly signer: SigningKey;
  /** Holds the mark; without one the mark is in memory. */
  readonly stateDirectory?: string;
  /** Whether the state directory also stores the bundle. */
  readonly persists?: boolean;
}

export function newTestLoader({ signer, stateDirectory, persists = false, ...options }: TestLoaderOptions) {
  const events: RecordedEvent[] = [];
  /** Rejections of bundles by source, and of statements. */
  const refused: string[] = [];
  const clock = { nowSeconds: NOW_SECONDS };
  const persisted = persists && stateDirectory ? new PersistedBundle(stateDirectory) : undefined;
  const signers = { keys: [signer.publicKey], threshold: 1 };
  const mark =
    options.mark ??
    (stateDirectory ? new FileMark({ stateDirectory, authSite: AUTH_SITE }) : new MemoryMark());
  const loader = new BundleLoader({
    authSite: AUTH_SITE,
    directory: undefined,
    persisted,
    bundleSigners: signers,
    freshnessSigners: signers,
    mark,
    nowSeconds: () => clock.nowSeconds,
    listener: {
      loaded: ({ revision }, { source }) => events.push(['loaded', revision, source]),
      advanced: ({ revision }, steps) => events.push(['advanced', revision, ...steps]),
      freshened: ({ freshAsOfSeconds }) => events.push(['freshened', freshAsOfSeconds]),
      refused({ code }, source) {
        events.push(['refused', code, source]);
        refused.push(`${source} ${code}`);
      },
      freshnessRefused({ code }) {
        events.push(['freshnessRefused', code]);
        refused.push(`freshness ${code}`);
      },
      freshnessIgnored: (why) => events.push(['freshnessIgnored', why]),
    },
    ...options,
  });
  const stop = async () => {
    loader.close();
    await persisted?.close();
  };
  closeAfterTest(stop);
  return { loader, persisted, mark, events, refused, clock, stop };
}
