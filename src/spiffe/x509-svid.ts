/**
 * Verifies an X.509-SVID: signatures up to an authority of its own trust domain, the rules of a leaf, and those of a path.
 * Sources: X509-SVID sections 2 to 5; RFC 5280 section 6.
 */
import type { KeyObject, X509Certificate } from 'node:crypto';
import { KeyUsageFlags } from '@peculiar/asn1-x509';
import { SPIFFE_ID_RULE } from '../protocol/spiffe-id.ts';
import { describeCertificate, openCertificate, type ParsedCertificate } from './certificate.ts';
import { hasStrongKey, isForTls, signedPaths, verifyPaths } from './certification-path.ts';
import { type SpiffeProblem, spiffeProblem } from './spiffe-problem.ts';
import type { TrustBundles } from './trust-bundles.ts';
import { parseServerId, parseWorkloadId, type WorkloadId } from './workload-id.ts';

export interface VerifiedX509Svid {
  readonly kind: 'svid';
  readonly spiffeId: string;
  readonly trustDomain: string;
  readonly publicKey: KeyObject;
  /** The earliest expiry of a certificate on the path, including the authority. */
  readonly notAfterMs: number;
}

/** Leaf and intermediates; SPIRE's longest nested topologies need fewer. */
const MAX_CHAIN_CERTIFICATES = 8;

/**
 * Verifies a workload's SVID. Possession of the key is not checked here.
 *
 * @param chainDer the leaf, then each certificate's issuer in order (RFC 5246 section 7.4.2); the authority may be absent
 */
export function verifyX509Svid(
  chainDer: readonly Uint8Array[],
  bundles: Pick<TrustBundles, 'bundleOf'>,
  nowMs: number,
): VerifiedX509Svid | SpiffeProblem {
  return verifyChain(chainDer, bundles, nowMs, parseWorkloadId);
}

/**
 * Verifies the SVID of a server whose SPIFFE ID was configured, such as a broker or a bundle endpoint.
 *
 * @param chainDer as for {@link verifyX509Svid}
 * @returns undefined when it is that server's
 */
export function serverSvidProblem(
  chainDer: readonly Uint8Array[],
  expectedId: string,
  bundles: Pick<TrustBundles, 'bundleOf'>,
  nowMs: number,
): SpiffeProblem | undefined {
  const svid = verifyChain(chainDer, bundles, nowMs, parseServerId);
  if (svid.kind === 'problem') return svid;
  if (svid.spiffeId === expectedId) return undefined;
  return spiffeProblem('svid_id', `the server's SPIFFE ID is not ${expectedId}`);
}

function verifyChain(
  chainDer: readonly Uint8Array[],
  bundles: Pick<TrustBundles, 'bundleOf'>,
  nowMs: number,
  parseId: (text: string) => WorkloadId | SpiffeProblem,
): VerifiedX509Svid | SpiffeProblem {
  if (chainDer.length > MAX_CHAIN_CERTIFICATES) {
    return spiffeProblem('svid_malformed', `more than ${MAX_CHAIN_CERTIFICATES} certificates`);
  }
  const chain = chainDer.map(openCertificate).filter((certificate) => certificate !== undefined);
  const [leaf] = chain;
  if (leaf === undefined || chain.length !== chainDer.length) {
    return spiffeProblem('svid_malformed', 'must be one or more certificates in DER, leaf first');
  }
  const claimed = claimedTrustDomain(leaf);
  if (typeof claimed !== 'string') return claimed;
  const authorities = bundles.bundleOf(claimed)?.x509Authorities ?? [];
  if (authorities.length === 0) {
    return spiffeProblem('trust_domain_unknown', "there is no X.509 bundle for the SVID's trust domain");
  }
  // Signatures are checked first, because reading extensions is costly and only worthwhile for a certificate that an
  // authority signed.
  const paths = signedPaths(chain, authorities);
  const signedLeaf = paths.length === 0 ? undefined : describeCertificate(leaf);
  const id = signedLeaf && checkLeaf(signedLeaf, parseId);
  if (id?.kind === 'problem') return id;
  const path = verifyPaths(paths, nowMs);
  if (path.kind === 'problem') return path;
  if (id?.trustDomain !== claimed) return NAMES_PROBLEM;
  const { notAfterMs } = path;
  return { kind: 'svid', spiffeId: id.spiffeId, trustDomain: claimed, publicKey: leaf.publicKey, notAfterMs };
}

const NAMES_PROBLEM = spiffeProblem(
  'svid_names',
  'must have exactly one URI in its subject alternative name',
);

/** Finds the bundle that could verify the leaf, from OpenSSL's text of its names; {@link checkLeaf} reads them strictly. */
function claimedTrustDomain({ ca, subjectAltName }: X509Certificate): string | SpiffeProblem {
  if (ca) return NOT_LEAF;
  // Without the extension Node returns null instead of undefined, which its types declare.
  const names = subjectAltName ?? '';
  if (!names.includes('URI:')) return NAMES_PROBLEM;
  return (
    /URI:"?spiffe:\/\/([a-z0-9._-]{1,255})\//.exec(names)?.[1] ??
    spiffeProblem('svid_id', `the SPIFFE ID must be ${SPIFFE_ID_RULE}`)
  );
}

const NOT_LEAF = spiffeProblem('svid_not_leaf', 'a CA certificate identifies no workload');

/** The leaf's SPIFFE ID, if the leaf follows all rules that do not depend on its issuer. */
export function checkLeaf(
  leaf: ParsedCertificate,
  parseId: (text: string) => WorkloadId | SpiffeProblem = parseWorkloadId,
): WorkloadId | SpiffeProblem {
  const bits = leaf.keyUsage?.bits ?? 0;
  if (leaf.isCa || (bits & (KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign)) !== 0) {
    return NOT_LEAF;
  }
  if (leaf.keyUsage?.critical !== true || (bits & KeyUsageFlags.digitalSignature) === 0) {
    return spiffeProblem('svid_key_usage', 'its key usage must be critical and have digitalSignature');
  }
  if (!isForTls(leaf)) {
    return spiffeProblem('svid_key_usage', 'its extended key usage must have serverAuth and clientAuth');
  }
  if (!hasStrongKey(leaf)) {
    return spiffeProblem(
      'svid_key_usage',
      'its key must be P-256, P-384, P-521, Ed25519 or RSA of 2048 bits',
    );
  }
  const [uri, another] = leaf.names.uris;
  if (uri === undefined || another !== undefined) return NAMES_PROBLEM;
  return parseId(uri);
}
