/**
 * A verifier's bundle that stands just before one document of the chain, and one way for that document to come to it.
 * Documents are offered in its place again and again.
 */

import { BundleLoader, type BundleLoaderOptions } from '../../../../../src/verifier/loading/bundle-loader.ts';
import { FileMark } from '../../../../../src/verifier/loading/high-water-mark.ts';
import { AUTH_SITE } from '../../../../fakes/bundle-content.ts';
import { recordingReplayStore } from '../../../../fakes/replay-store.ts';
import { signRequest } from '../../../../fakes/signed-request.ts';
import {
  checkNow,
  createTestVerifier,
  outcomeOf,
  REALTIME_STALENESS_SECONDS,
} from '../../../../fakes/test-verifier.ts';
import { isAsSigned } from '../as-signed.ts';
import type { Loaded } from '../loaded.ts';
import { CLOCK_SECONDS, type SignedChain, type Target } from '../signed-chain.ts';

export interface Station {
  /** The state while only valid documents came. */
  readonly before: Loaded;
  /** The state after the valid document. */
  readonly after: Loaded;
  /** Preparation before each offer. */
  prepare?(): Promise<void>;
  /** Whether bytes, as this way carries them, hold just what was signed. */
  isAsSigned(bytes: Buffer): boolean;
  /** Returns what is loaded when the document has been looked at. */
  offer(bytes: Buffer): Promise<Loaded>;
  /** The outcome of a valid request by the loaded bundle. @param nowSeconds default: the tests' clock */
  request(nowSeconds?: number): string;
  close(): Promise<void>;
}

export type OpenStation = (chain: SignedChain, target: Target) => Promise<Station>;

export type LoaderOptions = Partial<BundleLoaderOptions> & { readonly stateDirectory: string };

export function newLoader(chain: SignedChain, { stateDirectory, ...more }: LoaderOptions): BundleLoader {
  return new BundleLoader({
    authSite: AUTH_SITE,
    directory: undefined,
    bundleSigners: chain.bundleSigners,
    freshnessSigners: chain.freshnessSigners,
    mark: new FileMark({ stateDirectory, authSite: AUTH_SITE }),
    nowSeconds: () => CLOCK_SECONDS,
    // No poll without a trigger.
    pollIntervalMs: 3_600_000,
    ...more,
  });
}

export function isDocumentAsSigned(chain: SignedChain, target: Target, bytes: Buffer): boolean {
  const original = chain.documents[target];
  if (target === 'keys-0001.jsonl') return bytes.equals(original);
  const { keys, threshold } = target === 'freshness.jws' ? chain.freshnessSigners : chain.bundleSigners;
  return isAsSigned(bytes, { original, keys: keys.map(({ keyObject }) => keyObject), threshold });
}

/** A request of the client that every revision of the chain grants. */
export function requestOutcome(
  chain: SignedChain,
  loader: Pick<BundleLoader, 'snapshot'> | undefined,
  nowSeconds = CLOCK_SECONDS,
): string {
  const { verifier } = createTestVerifier({
    nowSeconds,
    store: recordingReplayStore(nowSeconds),
    currentSnapshot: () => loader?.snapshot,
    realtimeStalenessSeconds: REALTIME_STALENESS_SECONDS,
  });
  const plan = { caller: 'billing', route: 'orders-read', nowSeconds } as const;
  const { facts } = signRequest(chain.siteKeys, plan, {
    // Of a derived key they stand in the bundle.
    claims: (claims) => {
      delete claims.provenance;
      delete claims.context;
    },
  });
  return outcomeOf(checkNow(verifier, facts));
}
