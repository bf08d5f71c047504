/**
 * What is in a directory, for people: nothing secret, and nothing that is taken for granted. Whether signatures hold
 * is only said of keys that the caller gives.
 */
import type { PublicKey, SignatureAlgorithm } from '../protocol/public-key.ts';
import {
  DOCUMENT_TYPES,
  type DocumentType,
  MAX_BUNDLE_BYTES,
  MAX_FRESHNESS_BYTES,
  parsePayload,
  readDocument,
  signatureHolds,
  type UnverifiedDocument,
} from './documents.ts';
import { BUNDLE_FILE, FRESHNESS_FILE } from './file-names.ts';
import { LocalDirectory } from './local-directory.ts';
import { positionOf } from './open-bundle.ts';
import type { BundleContent } from './schema.ts';
import { asBundleContent, asFreshnessContent } from './shape.ts';
import { parseTime } from './times.ts';

export interface InspectOptions {
  readonly directory: string;
  /** Whole seconds since the epoch. */
  readonly nowSeconds: number;
  /** Keys to check signatures with; without them nothing is verified. */
  readonly keys?: readonly PublicKey[];
}

export interface BundleSummary {
  readonly authSite: string;
  readonly revision: number;
  readonly head: string;
  readonly previousHead: string | undefined;
  readonly issuedAt: string;
  readonly expiresAt: string;
  readonly isExpired: boolean;
  readonly singleVerifier: boolean;
  readonly origins: readonly string[];
  readonly signers: readonly SignerSummary[];
  readonly counts: {
    readonly routes: number;
    readonly issuers: number;
    readonly clients: number;
    /** Those in shards included. */
    readonly derivedKeys: number;
    /** Without those in shards. */
    readonly revokedKeys: number;
  };
  readonly freshness: FreshnessSummary | undefined;
  readonly routes: readonly RouteSummary[];
}

export interface SignerSummary {
  /** As the signature claims: a thumbprint. */
  readonly keyId: string;
  readonly algorithm: SignatureAlgorithm;
  /** `unknown`: none of the given keys. */
  readonly verdict: 'holds' | 'does_not_hold' | 'unknown';
}

export interface FreshnessSummary {
  readonly revision: number;
  readonly asOf: string;
  readonly ageSeconds: number;
  /** Whether it speaks of the bundle beside it. */
  readonly fitsBundle: boolean;
  readonly signers: readonly SignerSummary[];
}

export interface RouteSummary {
  readonly routeId: string;
  readonly method: string;
  readonly pathTemplate: string;
  readonly freshnessClass: string;
}

/** @throws BundleError when the directory holds no bundle, or one that is not in the format. */
export async function inspectBundle(options: InspectOptions): Promise<BundleSummary> {
  const { directory, nowSeconds, keys = [] } = options;
  const files = await new LocalDirectory(directory).read(async (resolved) => ({
    bundle: await resolved.readBundle(),
    freshness: await resolved.readFreshness(),
  }));
  const document = readDocument({ file: BUNDLE_FILE, bytes: files.bundle, maxBytes: MAX_BUNDLE_BYTES });
  const { payload } = document;
  const content = asBundleContent(parsePayload(payload, BUNDLE_FILE), BUNDLE_FILE);
  const { revision, head } = positionOf(content, payload, BUNDLE_FILE);
  return {
    authSite: content.auth_site,
    revision,
    head,
    previousHead: content.previous_head,
    issuedAt: content.issued_at,
    expiresAt: content.expires_at,
    isExpired: nowSeconds >= (parseTime(content.expires_at) ?? 0),
    singleVerifier: content.single_verifier ?? false,
    origins: content.origins,
    signers: signersOf(document, DOCUMENT_TYPES.bundle, keys),
    counts: countsOf(content),
    freshness: files.freshness && summarizeFreshness(files.freshness, head, nowSeconds, keys),
    routes: content.routes.map((route) => ({
      routeId: route.route_id,
      method: route.method,
      pathTemplate: route.path_template,
      freshnessClass: route.freshness_class,
    })),
  };
}

function signersOf(
  document: UnverifiedDocument,
  type: DocumentType,
  keys: readonly PublicKey[],
): readonly SignerSummary[] {
  return document.signatures.map((signature) => {
    const { keyId, algorithm } = signature;
    const key = keys.find(({ thumbprint }) => thumbprint === keyId);
    if (key === undefined) return { keyId, algorithm, verdict: 'unknown' };
    const holds = signature.type === type && signatureHolds(document, signature, key);
    return { keyId, algorithm, verdict: holds ? 'holds' : 'does_not_hold' };
  });
}

function countsOf(content: BundleContent): BundleSummary['counts'] {
  const inShards = (content.key_shards ?? []).reduce((sum, { count }) => sum + count, 0);
  return {
    routes: content.routes.length,
    issuers: content.issuers?.length ?? 0,
    clients: content.clients?.length ?? 0,
    derivedKeys: (content.derived_keys?.length ?? 0) + inShards,
    revokedKeys: (content.derived_keys ?? []).filter(({ status }) => status === 'revoked').length,
  };
}

function summarizeFreshness(
  bytes: Buffer,
  head: string,
  nowSeconds: number,
  keys: readonly PublicKey[],
): FreshnessSummary {
  const document = readDocument({ file: FRESHNESS_FILE, bytes, maxBytes: MAX_FRESHNESS_BYTES });
  const content = asFreshnessContent(parsePayload(document.payload, FRESHNESS_FILE), FRESHNESS_FILE);
  return {
    revision: content.revision,
    asOf: content.as_of,
    ageSeconds: nowSeconds - (parseTime(content.as_of) ?? 0),
    fitsBundle: content.head === head,
    signers: signersOf(document, DOCUMENT_TYPES.freshness, keys),
  };
}
