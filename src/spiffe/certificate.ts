/**
 * Reads one certificate: OpenSSL for key and signature, @peculiar/asn1-x509 for validity and extensions.
 * Source: RFC 5280 section 4.
 */
import { type KeyObject, X509Certificate } from 'node:crypto';
import { AsnConvert } from '@peculiar/asn1-schema';
import {
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  type Extension,
  GeneralName,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_nameConstraints,
  id_ce_subjectAltName,
  KeyUsage,
  NameConstraints,
  SubjectAlternativeName,
  Version,
} from '@peculiar/asn1-x509';
import { LRUCache } from 'lru-cache';

export interface ParsedCertificate {
  readonly der: Buffer;
  readonly x509: X509Certificate;
  readonly publicKey: KeyObject;
  readonly notBeforeMs: number;
  /** The last moment of validity. */
  readonly notAfterMs: number;
  /** OID of the algorithm that its issuer signed with. */
  readonly signatureAlgorithm: string;
  readonly isCa: boolean;
  readonly maxIntermediates: number | undefined;
  /** Bits as in `KeyUsageFlags`; undefined without the extension. */
  readonly keyUsage: { readonly bits: number; readonly critical: boolean } | undefined;
  /** OIDs; undefined without the extension. */
  readonly extendedKeyUsage: readonly string[] | undefined;
  readonly names: CertificateNames;
  readonly nameConstraints: SubtreeConstraints | undefined;
  /** OIDs of critical extensions that nothing here processes. */
  readonly unknownCritical: readonly string[];
}

export interface CertificateNames {
  readonly uris: readonly string[];
  readonly dnsNames: readonly string[];
  /** Kinds of all other names, such as `iPAddress`. */
  readonly otherKinds: ReadonlySet<string>;
}

/** The subtrees of one name constraints extension. */
export interface SubtreeConstraints {
  readonly permitted: CertificateNames;
  readonly excluded: CertificateNames;
}

/** More than any SVID or authority has; a limit on work for untrusted input. */
const MAX_CERTIFICATE_BYTES = 16 * 1024;

/** Undefined unless the bytes are exactly one certificate in DER. Only OpenSSL reads it, without its extensions. */
export function openCertificate(der: Uint8Array): X509Certificate | undefined {
  if (der.byteLength > MAX_CERTIFICATE_BYTES) return undefined;
  try {
    const x509 = new X509Certificate(der);
    // OpenSSL ignores bytes after the certificate, which would give the same certificate another credential hash.
    return x509.raw.equals(der) ? x509 : undefined;
  } catch {
    return undefined;
  }
}

/** Cached, because reading the extensions takes a millisecond, and the same certificates arrive repeatedly. */
const described = new LRUCache<string, ParsedCertificate>({ max: 1024 });

/**
 * Reads the extensions too; undefined when one is invalid. A hostile certificate costs up to a tenth of a second here, so
 * check the signature of an untrusted one first.
 */
export function describeCertificate(x509: X509Certificate): ParsedCertificate | undefined {
  const known = described.get(x509.fingerprint256);
  if (known !== undefined) return known;
  try {
    const parsed = describe(x509.raw, x509, AsnConvert.parse(x509.raw, Certificate));
    described.set(x509.fingerprint256, parsed);
    return parsed;
  } catch {
    return undefined;
  }
}

/** For certificates of a trusted source, such as a bundle. */
export function parseCertificate(der: Uint8Array): ParsedCertificate | undefined {
  const x509 = openCertificate(der);
  return x509 && describeCertificate(x509);
}

/** More than any chain or bundle has. */
const MAX_CERTIFICATES = 100;

/** Concatenated certificates in DER; undefined for an empty list or other bytes. */
export function splitCertificates(ders: Buffer): readonly ParsedCertificate[] | undefined {
  const certificates: ParsedCertificate[] = [];
  let rest = ders;
  while (rest.length > 0 && certificates.length < MAX_CERTIFICATES) {
    const certificate = parseFirst(rest);
    if (certificate === undefined) return undefined;
    certificates.push(certificate);
    rest = rest.subarray(certificate.der.length);
  }
  return rest.length > 0 || certificates.length === 0 ? undefined : certificates;
}

/** OpenSSL reads one certificate and ignores the following bytes; its own encoding shows the certificate's length. */
function parseFirst(ders: Buffer): ParsedCertificate | undefined {
  try {
    return parseCertificate(ders.subarray(0, new X509Certificate(ders).raw.length));
  } catch {
    return undefined;
  }
}

function describe(der: Buffer, x509: X509Certificate, certificate: Certificate): ParsedCertificate {
  const { extensions: list = [], validity, subject, version } = certificate.tbsCertificate;
  // RFC 5280 section 4.1.2.1: only version 3 has extensions. A reader that follows the version sees none.
  if (list.length > 0 && version !== Version.v3) throw new Error('extensions need version 3');
  const extensions = byOid(list);
  const basic = valueFor(extensions, id_ce_basicConstraints, BasicConstraints);
  const usage = valueFor(extensions, id_ce_keyUsage, KeyUsage);
  const purposes = valueFor(extensions, id_ce_extKeyUsage, ExtendedKeyUsage);
  const constraints = valueFor(extensions, id_ce_nameConstraints, NameConstraints);
  return {
    der,
    x509,
    publicKey: x509.publicKey,
    notBeforeMs: validity.notBefore.getTime().getTime(),
    // The second that notAfter names is still valid (RFC 5280 section 4.1.2.5).
    notAfterMs: validity.notAfter.getTime().getTime() + 999,
    signatureAlgorithm: certificate.signatureAlgorithm.algorithm,
    isCa: basic?.cA ?? false,
    maxIntermediates: basic?.pathLenConstraint,
    keyUsage: usage && {
      bits: usage.toNumber(),
      critical: extensions.get(id_ce_keyUsage)?.critical === true,
    },
    extendedKeyUsage: purposes && [...purposes],
    names: sortNames([
      ...(valueFor(extensions, id_ce_subjectAltName, SubjectAlternativeName) ?? []),
      // The subject is a directory name, and constrained like one (RFC 5280 section 4.2.1.10).
      ...(subject.length > 0 ? [new GeneralName({ directoryName: subject })] : []),
    ]),
    nameConstraints: constraints && {
      permitted: sortNames((constraints.permittedSubtrees ?? []).map(({ base }) => base)),
      excluded: sortNames((constraints.excludedSubtrees ?? []).map(({ base }) => base)),
    },
    unknownCritical: list
      .filter(({ critical, extnID }) => critical && !PROCESSED.has(extnID))
      .map(({ extnID }) => extnID),
  };
}

const PROCESSED: ReadonlySet<string> = new Set([
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_nameConstraints,
  id_ce_subjectAltName,
]);

/** @throws Error for an extension that occurs twice (RFC 5280 section 4.2) */
function byOid(list: readonly Extension[]): ReadonlyMap<string, Extension> {
  const extensions = new Map(list.map((extension) => [extension.extnID, extension]));
  if (extensions.size !== list.length) throw new Error('an extension occurs twice');
  return extensions;
}

/** @throws Error for a value that is not of the extension's type, or that has further bytes */
function valueFor<T>(
  extensions: ReadonlyMap<string, Extension>,
  oid: string,
  type: new () => T,
): T | undefined {
  const value = extensions.get(oid)?.extnValue.buffer;
  if (value === undefined) return undefined;
  if (elementBytes(Buffer.from(value)) !== value.byteLength)
    throw new Error('an extension has trailing bytes');
  return AsnConvert.parse(value, type);
}

/** Size of the first element in DER, whose tag has one byte in every extension read here (X.690 section 8.1). */
function elementBytes(der: Buffer): number {
  const first = der[1] ?? 0;
  if (first < 0x80) return 2 + first;
  const lengthBytes = first - 0x80;
  return lengthBytes >= 1 && lengthBytes <= 4 ? 2 + lengthBytes + der.readUIntBE(2, lengthBytes) : Number.NaN;
}

function sortNames(names: readonly GeneralName[]): CertificateNames {
  const uris: string[] = [];
  const dnsNames: string[] = [];
  const otherKinds = new Set<string>();
  for (const name of names) {
    if (name.uniformResourceIdentifier !== undefined) uris.push(name.uniformResourceIdentifier);
    else if (name.dNSName !== undefined) dnsNames.push(name.dNSName);
    // A choice (RFC 5280 section 4.2.1.6) sets exactly one member.
    else otherKinds.add(Object.entries(name).find(([, value]) => value !== undefined)?.[0] ?? 'unknown');
  }
  return { uris, dnsNames, otherKinds };
}
