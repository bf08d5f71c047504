/**
 * Verifies a certification path: leaf, intermediates in order, and an authority of one trust domain.
 *
 * The order is required, so that the work is bounded; a search among many certificates of one name and key would be
 * unbounded. Certificate policies are not processed; critical ones are refused like any unknown critical extension.
 * Sources: RFC 5280 section 6.1; X509-SVID sections 3.2, 4 and 5.1.
 */
import type { KeyObject, X509Certificate } from 'node:crypto';
import { KeyUsageFlags } from '@peculiar/asn1-x509';
import {
  type CertificateNames,
  describeCertificate,
  type ParsedCertificate,
  type SubtreeConstraints,
} from './certificate.ts';
import { type SpiffeProblem, spiffeProblem } from './spiffe-problem.ts';
import { parseTrustDomainId } from './workload-id.ts';

export interface VerifiedPath {
  readonly kind: 'path';
  readonly notAfterMs: number;
}

/** A list of certificates up to an authority, each signed by the next. Nothing else about them has been checked. */
export interface SignedPath {
  readonly certificates: readonly X509Certificate[];
  readonly authority: ParsedCertificate;
}

/**
 * Looks for an authority that signed the leaf, then for one that signed its issuer, and so on.
 * @param chain the leaf, then each certificate's issuer in order
 */
export function signedPaths(
  chain: readonly X509Certificate[],
  authorities: readonly ParsedCertificate[],
): readonly SignedPath[] {
  const paths: SignedPath[] = [];
  for (const [index, certificate] of chain.entries()) {
    for (const authority of authorities) {
      if (!isIssuedBy(certificate, authority)) continue;
      paths.push({ certificates: chain.slice(0, index + 1), authority });
    }
    const next = chain[index + 1];
    if (next === undefined || !isIssuedBy(certificate, { x509: next })) break;
  }
  return paths;
}

/** Cheap checks first: names, key identifiers, and whether verifying with the key is fast. */
function isIssuedBy(
  certificate: X509Certificate,
  issuer: Pick<ParsedCertificate, 'x509'> & Partial<Pick<ParsedCertificate, 'publicKey'>>,
): boolean {
  try {
    if (!certificate.checkIssued(issuer.x509)) return false;
    // OpenSSL reads a certificate's key lazily, so this throws for a broken key.
    const publicKey = issuer.publicKey ?? issuer.x509.publicKey;
    return hasStrongKey({ publicKey }) && certificate.verify(publicKey);
  } catch {
    return false;
  }
}

const UNTRUSTED = spiffeProblem('svid_untrusted', 'no authority of its trust domain signed it');

/** The first valid path, or the fault of the last one. */
export function verifyPaths(paths: readonly SignedPath[], nowMs: number): VerifiedPath | SpiffeProblem {
  let problem = UNTRUSTED;
  for (const { authority, certificates } of paths) {
    const described = certificates
      .map(describeCertificate)
      .filter((certificate) => certificate !== undefined);
    if (described.length !== certificates.length) {
      problem = spiffeProblem('svid_malformed', 'an extension of its path is invalid');
      continue;
    }
    const path = checkPath([...described, authority], nowMs);
    if (path.kind === 'path') return path;
    problem = path;
  }
  return problem;
}

/** @param path from the leaf to the authority; every signature on it has been checked */
function checkPath(path: readonly ParsedCertificate[], nowMs: number): VerifiedPath | SpiffeProblem {
  for (const [index, certificate] of path.entries()) {
    const problem =
      checkCertificate(certificate, nowMs) ??
      // Intermediates between this one and the leaf (RFC 5280 section 4.2.1.9).
      (index === 0 ? undefined : checkSigner(certificate, path.slice(0, index)));
    if (problem !== undefined) return problem;
  }
  return { kind: 'path', notAfterMs: Math.min(...path.map(({ notAfterMs }) => notAfterMs)) };
}

function checkCertificate(certificate: ParsedCertificate, nowMs: number): SpiffeProblem | undefined {
  if (!(nowMs >= certificate.notBeforeMs)) {
    return spiffeProblem(
      'svid_not_yet_valid',
      'a certificate of its path is not valid yet; check the clocks',
    );
  }
  if (!(nowMs <= certificate.notAfterMs)) {
    return spiffeProblem('svid_expired', 'a certificate of its path has expired');
  }
  if (certificate.unknownCritical.length > 0) {
    return spiffeProblem('svid_constraints', 'a certificate of its path has an unknown critical extension');
  }
  if (!SIGNATURE_ALGORITHMS.has(certificate.signatureAlgorithm) || !hasStrongKey(certificate)) {
    return spiffeProblem('svid_key_usage', 'a certificate of its path has a weak key or signature algorithm');
  }
  return undefined;
}

/** @param issued the certificates that this one signed, directly or not, leaf first */
function checkSigner(
  signer: ParsedCertificate,
  issued: readonly ParsedCertificate[],
): SpiffeProblem | undefined {
  if (!signer.isCa || ((signer.keyUsage?.bits ?? 0) & KeyUsageFlags.keyCertSign) === 0) {
    return spiffeProblem('svid_constraints', 'a signer of its path is no CA');
  }
  if (issued.length - 1 > (signer.maxIntermediates ?? issued.length)) {
    return spiffeProblem('svid_constraints', 'its path is longer than a signer allows');
  }
  if (!isForTls(signer)) {
    return spiffeProblem('svid_constraints', "a signer's extended key usage excludes TLS");
  }
  // A signer's own SPIFFE ID names a trust domain, without a path (X509-SVID section 3.2).
  if (signer.names.uris.some((uri) => uri.startsWith('spiffe:') && parseTrustDomainId(uri) === undefined)) {
    return spiffeProblem('svid_constraints', "a signer's SPIFFE ID has a path");
  }
  const { nameConstraints } = signer;
  if (nameConstraints === undefined) return undefined;
  if (!isComparable(nameConstraints.permitted) || !isComparable(nameConstraints.excluded)) {
    return spiffeProblem('svid_constraints', "a signer's name constraints need hosts, such as example.com");
  }
  if (issued.every((certificate) => mayBeNamed(certificate, nameConstraints))) return undefined;
  return spiffeProblem('svid_constraints', "a signer's name constraints forbid a name on its path");
}

const HOST_OR_DOMAIN = /^\.?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/i;

/** A whole URI, or any other text that is not a host, would exclude nothing (RFC 5280 section 4.2.1.10). */
function isComparable({ dnsNames, uris }: CertificateNames): boolean {
  // The empty DNS name includes all names.
  return [...uris, ...dnsNames.filter((name) => name !== '')].every((base) => HOST_OR_DOMAIN.test(base));
}

/**
 * Compares URIs and DNS names. A subtree of another kind forbids every name of that kind, including the subject,
 * because no SVID needs them and a missing comparison must not allow a name.
 */
function mayBeNamed({ names }: ParsedCertificate, { permitted, excluded }: SubtreeConstraints): boolean {
  const constrained = [...permitted.otherKinds, ...excluded.otherKinds];
  return (
    !constrained.some((kind) => names.otherKinds.has(kind)) &&
    areWithin(names.uris.map(hostOf), permitted.uris, excluded.uris, isHostWithin) &&
    areWithin(names.dnsNames, permitted.dnsNames, excluded.dnsNames, isDnsNameWithin)
  );
}

function areWithin(
  names: readonly string[],
  permitted: readonly string[],
  excluded: readonly string[],
  isWithin: (name: string, subtree: string) => boolean,
): boolean {
  if (permitted.length + excluded.length === 0) return true;
  return names.every(
    (name) =>
      // A URI without a host cannot be compared, so a constraint forbids it.
      name !== '' &&
      (permitted.length === 0 || permitted.some((subtree) => isWithin(name, subtree))) &&
      !excluded.some((subtree) => isWithin(name, subtree)),
  );
}

/** The host of a URI, which is a SPIFFE ID's trust domain; empty for anything unusual. */
function hostOf(uri: string): string {
  return /^[a-z][a-z0-9+.-]*:\/\/([A-Za-z0-9._-]+)(?:\/|$)/.exec(uri)?.[1] ?? '';
}

/** `.example.com`: hosts below it. `example.com`: this host alone (RFC 5280 section 4.2.1.10, URIs). */
function isHostWithin(host: string, subtree: string): boolean {
  const [name, base] = [host.toLowerCase(), subtree.toLowerCase()];
  return base.startsWith('.') ? name.endsWith(base) && name !== base : name === base;
}

/** `example.com`: this name and all below it (RFC 5280 section 4.2.1.10, DNS names). */
function isDnsNameWithin(dnsName: string, subtree: string): boolean {
  const [name, base] = [dnsName.toLowerCase(), subtree.toLowerCase().replace(/^\./, '')];
  return base === '' || name === base || name.endsWith(`.${base}`);
}

const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';
const ANY_PURPOSE = '2.5.29.37.0';

/** Whether its extended key usage, if present, allows both sides of TLS (X509-SVID section 4.4). */
export function isForTls({ extendedKeyUsage: purposes, isCa }: ParsedCertificate): boolean {
  if (purposes === undefined) return true;
  if (isCa && purposes.includes(ANY_PURPOSE)) return true;
  return purposes.includes(SERVER_AUTH) && purposes.includes(CLIENT_AUTH);
}

/** Signatures with SHA-2 and Ed25519. RSA-PSS is absent: its parameters can name weak hashes, and no SPIRE CA uses it. */
const SIGNATURE_ALGORITHMS: ReadonlySet<string> = new Set([
  '1.2.840.10045.4.3.2', // ecdsa-with-SHA256
  '1.2.840.10045.4.3.3',
  '1.2.840.10045.4.3.4',
  '1.2.840.113549.1.1.11', // sha256WithRSAEncryption
  '1.2.840.113549.1.1.12',
  '1.2.840.113549.1.1.13',
  '1.3.101.112', // Ed25519
]);

const CURVES: ReadonlySet<string | undefined> = new Set(['prime256v1', 'secp384r1', 'secp521r1']);
const MIN_RSA_BITS = 2048;
/** Verifying with a larger key is slow, and anyone may present one. */
const MAX_RSA_BITS = 8192;

export function hasStrongKey({ publicKey }: { readonly publicKey: KeyObject }): boolean {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = publicKey;
  if (type === 'ed25519') return true;
  if (type === 'ec') return CURVES.has(details?.namedCurve);
  const bits = details?.modulusLength ?? 0;
  return type === 'rsa' && bits >= MIN_RSA_BITS && bits <= MAX_RSA_BITS;
}
