/**
 * A verifier's bundle that has reached the position just before one document of the chain, and one way for that document to come to it.
 * Documents are offered in its place again and again.
 */

import { type KeyObject, verify } from 'node:crypto';
import type { Snapshot } from '../../../../../src/bundle/compile/snapshot.ts';
import { BundleLoader, type BundleLoaderOptions } from '../../../../../src/verifier/loading/bundle-loader.ts';
import { FileMark } from '../../../../../src/verifier/loading/state/high-water-mark.ts';
import { recordingReplayStore } from '../../../../support/fakes/replay-store.ts';
import { AUTH_SITE, ORIGIN } from '../../../../support/fixtures/bundle-content.ts';
import { signRequest } from '../../../../support/fixtures/signed-request.ts';
import {
  checkNow,
  createTestVerifier,
  outcomeOf,
  REALTIME_STALENESS_SECONDS,
} from '../../../../support/fixtures/test-verifier.ts';
import { CLOCK_SECONDS, type SignedChain, type Target } from '../signed-chain.ts';

/** What is loaded, as far as decisions can see it: compared before and after, by value. */
export type Loaded = { readonly [name: string]: unknown } | undefined;

const KEY_IDS = ['broker-1', 'dk_billing', 'dk_shard', 'dk_delta'];
const REQUESTS = [
  ['GET', '/v1/orders/17'],
  ['POST', '/v1/orders'],
  ['GET', '/v1/other'],
] as const;

export function loadedOf(snapshot: Snapshot | undefined): Loaded {
  if (snapshot === undefined) return undefined;
  const { keys, routes, ...values } = snapshot;
  const described = {
    ...values,
    routes: [routes.size, ...REQUESTS.map(([method, path]) => routes.match(method, ORIGIN, path))],
    keys: [keys.size, ...KEY_IDS.map((id) => keyOf(snapshot, id))],
  };
  return JSON.parse(JSON.stringify(described, asPlain));
}

function keyOf({ keys }: Snapshot, keyId: string): unknown {
  const found = keys.get(keyId);
  if (found === undefined) return 'none';
  const { key, ...others } = found;
  return found.kind === 'derived_key'
    ? { ...others, client: found.client, clientId: found.clientId, thumbprint: key.thumbprint }
    : { ...others, thumbprint: key.thumbprint };
}

function asPlain(_name: string, value: unknown): unknown {
  if (value instanceof Set) return [...value];
  return value instanceof Map ? [...value] : value;
}

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

/**
 * Whether bytes still hold what was signed: the very payload, and enough signatures over it by the pinned keys. Written apart
 * from the code under test: lenient where that is strict, and by `node:crypto` alone.
 */
export function isDocumentAsSigned(chain: SignedChain, target: Target, bytes: Buffer): boolean {
  const original = chain.documents[target];
  if (target === 'keys-0001.jsonl') return bytes.equals(original);
  const { keys, threshold } = target === 'freshness.jws' ? chain.freshnessSigners : chain.bundleSigners;
  const [found, signed] = [readEnvelope(bytes), readEnvelope(original)];
  if (found === undefined || found.payload !== signed?.payload) return false;
  const { payload, signatures } = found;
  const holding = keys.filter(({ keyObject }) =>
    signatures.some((entry) => holds(payload, entry, keyObject)),
  );
  return holding.length >= threshold;
}

interface Envelope {
  readonly payload: string;
  readonly signatures: readonly Readonly<Record<string, unknown>>[];
}

function readEnvelope(bytes: Buffer): Envelope | undefined {
  try {
    const value: Envelope = JSON.parse(bytes.toString('utf8'));
    return typeof value?.payload === 'string' && Array.isArray(value.signatures) ? value : undefined;
  } catch {
    return undefined;
  }
}

function holds(payload: string, entry: Readonly<Record<string, unknown>>, key: KeyObject): boolean {
  const message = Buffer.from(`${String(entry?.protected)}.${payload}`);
  const signature = Buffer.from(String(entry?.signature), 'base64url');
  return key.asymmetricKeyType === 'ed25519'
    ? verify(null, message, key, signature)
    : verify('sha256', message, { key, dsaEncoding: 'ieee-p1363' }, signature);
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
    // The bundle has those of a derived key.
    claims: (claims) => {
      delete claims.provenance;
      delete claims.context;
    },
  });
  return outcomeOf(checkNow(verifier, facts));
}
