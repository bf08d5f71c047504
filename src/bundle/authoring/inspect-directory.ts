/**
 * Summarizes the content of a bundle directory for people. It shows no secrets, and verifies signatures only against
 * keys that the caller passes.
 */

import type { SignatureAlgorithm } from '../../protocol/public-key.ts';
import { parseTime } from '../../protocol/rfc3339.ts';
import { asBundleError, type BundleError, bundleError } from '../format/bundle-error.ts';
import type { ChainPosition } from '../format/chain.ts';
import {
  checkSignatures,
  DOCUMENTS,
  type DocumentKind,
  type Signers,
  signatureHolds,
} from '../format/documents.ts';
import { FRESHNESS_FILE, type StepKind } from '../format/file-names.ts';
import { type ReadContent, readContent } from '../format/open-document.ts';
import { type ChainOnDisk, withChain } from './read-chain.ts';
import { contentOfChain, type SiteContent } from './site-content.ts';

export interface InspectOptions {
  /** Directory of a bundle, or a verifier's state directory. */
  readonly directory: string;
  /** Whole seconds since the epoch. */
  readonly nowSeconds: number;
  /** Expected signers; without them nothing is verified. */
  readonly signers?: Signers | undefined;
}

export interface BundleSummary {
  readonly authSite: string;
  /** The end of the chain: revision of the last delta or link, or of the whole bundle. */
  readonly revision: number;
  readonly head: string;
  /** Head that the whole bundle names as the previous one. */
  readonly previousHead: string | undefined;
  readonly base: ChainPosition;
  readonly steps: readonly StepSummary[];
  /** Why the next step in the directory does not continue the chain. */
  readonly chainProblem: BundleError | undefined;
  /** Time of the last document. */
  readonly issuedAt: string;
  readonly expiresAt: string;
  readonly isExpired: boolean;
  readonly singleVerifier: boolean;
  readonly origins: readonly string[];
  /** Signers of the whole bundle. */
  readonly signers: readonly SignerSummary[];
  /** Why a verifier with these signers would reject some or all of it; undefined when no signers are given. */
  readonly signatureProblem: BundleError | undefined;
  /** With deltas applied and shards included. */
  readonly counts: {
    readonly routes: number;
    readonly issuers: number;
    readonly oauthIssuers: number;
    readonly clients: number;
    readonly derivedKeys: number;
    readonly revokedKeys: number;
  };
  readonly freshness: FreshnessSummary | undefined;
  readonly routes: readonly RouteSummary[];
}

export interface StepSummary extends ChainPosition {
  readonly kind: StepKind;
  readonly signers: readonly SignerSummary[];
}

export interface SignerSummary {
  /** The thumbprint that the signature claims. */
  readonly keyId: string;
  readonly algorithm: SignatureAlgorithm;
  /** `unknown`: none of the given keys. */
  readonly verdict: 'valid' | 'invalid' | 'unknown';
}

export interface FreshnessSummary {
  readonly revision: number;
  readonly asOf: string;
  readonly ageSeconds: number;
  /** Whether it matches the end of the chain beside it. */
  readonly fitsBundle: boolean;
  readonly signers: readonly SignerSummary[];
}

interface RouteSummary {
  readonly routeId: string;
  readonly method: string;
  readonly pathTemplate: string;
  readonly freshnessClass: string;
}

/** @throws BundleError when the directory holds no bundle, or one that is not in the format. */
export function inspectBundle(options: InspectOptions): Promise<BundleSummary> {
  const { directory, signers } = options;
  return withChain(directory, undefined, async (chain) => {
    const content = await contentOfChain(chain);
    const freshness = await chain.files.readFreshness();
    const { head } = chain.position;
    const { keys } = signers ?? NO_SIGNERS;
    const statement = freshness && summarizeFreshness(freshness, head, options.nowSeconds, keys);
    return {
      ...summarizeChain(chain, content, options),
      signatureProblem: signers && (signatureProblemOf(chain, signers) ?? forgedStatement(statement)),
      counts: countsOf(content),
      freshness: statement,
      routes: content.bundle.routes.map((route) => ({
        routeId: route.route_id,
        method: route.method,
        pathTemplate: route.path_template,
        freshnessClass: route.freshness_class,
      })),
    };
  });
}

const NO_SIGNERS: Signers = { keys: [], threshold: 1 };

function summarizeChain(
  { bundle, position, refused, steps }: ChainOnDisk,
  { bundle: content }: SiteContent,
  { nowSeconds, signers: { keys } = NO_SIGNERS }: InspectOptions,
) {
  const last = steps.at(-1) ?? bundle;
  return {
    authSite: content.auth_site,
    ...position,
    previousHead: content.previous_head,
    base: bundle.position,
    steps: steps.map((step) => ({
      kind: step.kind,
      ...step.position,
      signers: signersOf(step, keys),
    })),
    chainProblem: refused,
    issuedAt: last.content.issued_at,
    expiresAt: content.expires_at,
    isExpired: nowSeconds >= (parseTime(content.expires_at) ?? 0),
    singleVerifier: content.single_verifier ?? false,
    origins: content.origins,
    signers: signersOf(bundle, keys),
  };
}

/** The error that a verifier would report. */
function signatureProblemOf({ bundle, steps }: ChainOnDisk, signers: Signers): BundleError | undefined {
  try {
    for (const { document, file, kind } of [bundle, ...steps]) {
      checkSignatures(document, { file, ...DOCUMENTS[kind] }, signers);
    }
    return undefined;
  } catch (error) {
    return asBundleError(error, bundle.file);
  }
}

function signersOf(
  { document, kind }: Pick<ReadContent<DocumentKind>, 'document' | 'kind'>,
  keys: Signers['keys'],
): readonly SignerSummary[] {
  return document.signatures.map((signature) => {
    const { keyId, algorithm } = signature;
    const key = keys.find(({ thumbprint }) => thumbprint === keyId);
    if (key === undefined) return { keyId, algorithm, verdict: 'unknown' };
    const isValid = signature.type === DOCUMENTS[kind].type && signatureHolds(document, signature, key);
    return { keyId, algorithm, verdict: isValid ? 'valid' : 'invalid' };
  });
}

/** A freshness key may have signed the statement, so only a signature that claims one of the given keys is checked. */
function forgedStatement(statement: FreshnessSummary | undefined): BundleError | undefined {
  const forged = statement?.signers.find(({ verdict }) => verdict === 'invalid');
  if (forged === undefined) return undefined;
  return bundleError('signature_invalid', FRESHNESS_FILE, '/signatures', 'a signature is invalid');
}

function countsOf({ bundle, clients, derivedKeys }: SiteContent): BundleSummary['counts'] {
  let revokedKeys = 0;
  for (const { status } of derivedKeys.values()) if (status === 'revoked') revokedKeys++;
  return {
    routes: bundle.routes.length,
    issuers: bundle.issuers?.length ?? 0,
    oauthIssuers: bundle.oauth_issuers?.length ?? 0,
    clients: clients.size,
    derivedKeys: derivedKeys.size,
    revokedKeys,
  };
}

function summarizeFreshness(
  bytes: Buffer,
  head: string,
  nowSeconds: number,
  keys: Signers['keys'],
): FreshnessSummary {
  const read = readContent('freshness', { file: FRESHNESS_FILE, bytes }, undefined);
  const { content } = read;
  return {
    revision: content.revision,
    asOf: content.as_of,
    ageSeconds: nowSeconds - (parseTime(content.as_of) ?? 0),
    fitsBundle: content.head === head,
    signers: signersOf(read, keys),
  };
}
