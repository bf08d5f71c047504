/**
 * A throw-away SPIFFE authority: X.509-SVIDs with any fault, intermediates, JWT-SVIDs and trust bundles. Keys are new for
 * each authority.
 */
import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  GeneralName,
  GeneralSubtree,
  GeneralSubtrees,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_nameConstraints,
  id_ce_subjectAltName,
  KeyUsage,
  KeyUsageFlags,
  Name,
  NameConstraints,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
} from '@peculiar/asn1-x509';
import { SignJWT } from 'jose';
import { readBundleJson } from '../../../src/spiffe/bundles/bundle-document.ts';
import { BundleStore } from '../../../src/spiffe/bundles/bundle-store.ts';
import type { TrustBundle } from '../../../src/spiffe/trust-bundles.ts';

export type KeyKind = 'P-256' | 'P-384' | 'Ed25519' | 'RSA-2048' | 'RSA-1024';

export const LEAF_USAGE = KeyUsageFlags.digitalSignature;
export const CA_USAGE = KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign;
const TLS_PURPOSES = ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2'];
const HOUR_MS = 3_600_000;

/** Content of a certificate; the defaults are those of a correct one. */
export interface CertificateContent {
  readonly uris?: readonly string[];
  readonly dnsNames?: readonly string[];
  readonly commonName?: string;
  readonly isCa?: boolean;
  readonly pathLength?: number;
  /** `KeyUsageFlags`; null leaves the extension out. */
  readonly keyUsage?: number | null;
  readonly keyUsageCritical?: boolean;
  /** OIDs; null leaves the extension out. */
  readonly purposes?: readonly string[] | null;
  readonly nameConstraints?: {
    readonly permitted?: readonly GeneralName[];
    readonly excluded?: readonly GeneralName[];
  };
  readonly extensions?: readonly Extension[];
  /** OID of an extension of the certificate whose value has a further element behind it. */
  readonly trailingBytesIn?: string;
  /** 0 is v1. Default v3. */
  readonly version?: 0 | 1 | 2;
  readonly notBeforeMs?: number;
  readonly notAfterMs?: number;
  readonly key?: KeyKind;
  /** Default SHA-256. */
  readonly digest?: 'sha1' | 'sha256';
}

export interface IssuedCertificate {
  readonly der: Buffer;
  readonly privateKey: KeyObject;
}

export interface IssuedSvid {
  /** Leaf first, without the root. */
  readonly chainDer: readonly Buffer[];
  readonly privateKey: KeyObject;
  /** For TLS: the chain and the key in PEM. */
  readonly pem: { readonly cert: string; readonly key: string };
}

export class SpiffeAuthority {
  readonly trustDomain: string;
  readonly #certificate: IssuedCertificate;
  /** Intermediates up to the root; empty for the root itself. */
  readonly #intermediates: readonly Buffer[];
  readonly #jwtKey = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  readonly kid = randomBytes(8).toString('hex');

  private constructor(trustDomain: string, certificate: IssuedCertificate, intermediates: readonly Buffer[]) {
    this.trustDomain = trustDomain;
    this.#certificate = certificate;
    this.#intermediates = intermediates;
  }

  /** A self-signed root of the trust domain. */
  static create(trustDomain: string, content: CertificateContent = {}): SpiffeAuthority {
    return new SpiffeAuthority(trustDomain, issue(caContent(trustDomain, content)), []);
  }

  get certificateDer(): Buffer {
    return this.#certificate.der;
  }

  get privateKey(): KeyObject {
    return this.#certificate.privateKey;
  }

  /** An authority below this one; its SVIDs carry the intermediates. */
  issueIntermediate(content: CertificateContent = {}): SpiffeAuthority {
    const certificate = issue(caContent(this.trustDomain, content), this.#certificate);
    return new SpiffeAuthority(this.trustDomain, certificate, [certificate.der, ...this.#intermediates]);
  }

  /** @param spiffeId the whole ID, or a path below this trust domain */
  issueSvid(spiffeId: string, content: CertificateContent = {}): IssuedSvid {
    const uri = spiffeId.startsWith('/') ? `spiffe://${this.trustDomain}${spiffeId}` : spiffeId;
    const leaf = issue({ uris: [uri], ...content }, this.#certificate);
    const chainDer = [leaf.der, ...this.#intermediates];
    const key = leaf.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    return { chainDer, privateKey: leaf.privateKey, pem: { cert: chainDer.map(pemOf).join(''), key } };
  }

  /** @param claims replace the defaults; undefined removes one */
  async issueJwtSvid(
    spiffeId: string,
    audience: string | readonly string[],
    claims: Readonly<Record<string, unknown>> = {},
    header: Readonly<Record<string, unknown>> = {},
  ): Promise<string> {
    const nowSeconds = Math.floor(Date.now() / 1000);
    const aud = typeof audience === 'string' ? [audience] : [...audience];
    return new SignJWT({ sub: spiffeId, aud, iat: nowSeconds, exp: nowSeconds + 300, ...claims })
      .setProtectedHeader({ alg: 'ES256', kid: this.kid, typ: 'JWT', ...header })
      .sign(this.#jwtKey.privateKey);
  }

  /** The SPIFFE bundle document, as a bundle endpoint serves it. */
  bundleDocument(members: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
    const { kty, crv, x, y } = this.#jwtKey.publicKey.export({ format: 'jwk' });
    const x5c = [this.certificateDer.toString('base64')];
    const keys = [
      { use: 'x509-svid', kty: 'EC', x5c },
      { use: 'jwt-svid', kty, crv, x, y, kid: this.kid },
    ];
    return { keys, spiffe_sequence: 1, spiffe_refresh_hint: 60, ...members };
  }

  /** The root in PEM, for `ca` of TLS and for bundle files. */
  get pem(): string {
    return pemOf(this.certificateDer);
  }

  get bundle(): TrustBundle {
    const read = readBundleJson(this.bundleDocument());
    if (read.kind !== 'bundle') throw new Error(read.text);
    const { jwtAuthorities, x509Authorities } = read;
    return { trustDomain: this.trustDomain, x509Authorities, jwtAuthorities };
  }
}

/** The bundles of these authorities, each for its own trust domain. */
export function bundlesOf(...authorities: readonly SpiffeAuthority[]): BundleStore {
  const store = new BundleStore();
  store.addSource()(authorities.map(({ bundle }) => bundle));
  return store;
}

export function pemOf(der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

function caContent(trustDomain: string, content: CertificateContent): CertificateContent {
  const uris = [`spiffe://${trustDomain}`];
  return {
    uris,
    isCa: true,
    keyUsage: CA_USAGE,
    purposes: null,
    commonName: randomBytes(4).toString('hex'),
    ...content,
  };
}

/** Without an issuer: self-signed. */
function issue(content: CertificateContent, issuer?: IssuedCertificate): IssuedCertificate {
  const privateKey = newKey(content.key ?? 'P-256');
  const signer = issuer?.privateKey ?? privateKey;
  const subject = nameOf(content.commonName ?? 'workload');
  const now = Date.now();
  const signatureAlgorithm = algorithmOf(signer, content.digest ?? 'sha256');
  const tbsCertificate = new TBSCertificate({
    version: content.version ?? 2,
    serialNumber: Uint8Array.from([1, ...randomBytes(8)]).buffer,
    signature: signatureAlgorithm,
    issuer: issuer === undefined ? subject : subjectOf(issuer.der),
    validity: new Validity({
      notBefore: new Date(content.notBeforeMs ?? now - HOUR_MS),
      notAfter: new Date(content.notAfterMs ?? now + HOUR_MS),
    }),
    subject,
    subjectPublicKeyInfo: publicKeyInfo(privateKey),
    extensions: new Extensions(
      [...extensionsOf(content), ...(content.extensions ?? [])].map((each) =>
        each.extnID === content.trailingBytesIn ? withTrailingBytes(each) : each,
      ),
    ),
  });
  const digest = signer.asymmetricKeyType === 'ed25519' ? null : (content.digest ?? 'sha256');
  const signature = sign(digest, Buffer.from(AsnConvert.serialize(tbsCertificate)), signer);
  const certificate = new Certificate({
    tbsCertificate,
    signatureAlgorithm,
    signatureValue: Uint8Array.from(signature).buffer,
  });
  return { der: Buffer.from(AsnConvert.serialize(certificate)), privateKey };
}

function newKey(kind: KeyKind): KeyObject {
  switch (kind) {
    case 'Ed25519':
      return generateKeyPairSync('ed25519').privateKey;
    case 'RSA-2048':
      return generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
    case 'RSA-1024':
      return generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey;
    default:
      return generateKeyPairSync('ec', { namedCurve: kind }).privateKey;
  }
}

function algorithmOf(signer: KeyObject, digest: 'sha1' | 'sha256'): AlgorithmIdentifier {
  if (signer.asymmetricKeyType === 'ed25519') return new AlgorithmIdentifier({ algorithm: '1.3.101.112' });
  if (signer.asymmetricKeyType === 'rsa') {
    const algorithm = digest === 'sha1' ? '1.2.840.113549.1.1.5' : '1.2.840.113549.1.1.11';
    return new AlgorithmIdentifier({ algorithm, parameters: Uint8Array.from([5, 0]).buffer });
  }
  return new AlgorithmIdentifier({
    algorithm: digest === 'sha1' ? '1.2.840.10045.4.1' : '1.2.840.10045.4.3.2',
  });
}

function publicKeyInfo(privateKey: KeyObject): SubjectPublicKeyInfo {
  const der = createPublicKey(privateKey).export({ type: 'spki', format: 'der' });
  return AsnConvert.parse(der, SubjectPublicKeyInfo);
}

function nameOf(commonName: string): Name {
  const value = new AttributeValue({ utf8String: commonName });
  return new Name([new RelativeDistinguishedName([new AttributeTypeAndValue({ type: '2.5.4.3', value })])]);
}

function subjectOf(der: Buffer): Name {
  return AsnConvert.parse(der, Certificate).tbsCertificate.subject;
}

function extensionsOf(content: CertificateContent): Extension[] {
  const {
    isCa = false,
    pathLength,
    keyUsage = LEAF_USAGE,
    purposes = TLS_PURPOSES,
    nameConstraints,
  } = content;
  const names = [
    ...(content.uris ?? []).map(
      (uniformResourceIdentifier) => new GeneralName({ uniformResourceIdentifier }),
    ),
    ...(content.dnsNames ?? []).map((dNSName) => new GeneralName({ dNSName })),
  ];
  const basic = new BasicConstraints({
    cA: isCa,
    ...(pathLength === undefined ? {} : { pathLenConstraint: pathLength }),
  });
  return [
    extension(id_ce_basicConstraints, basic, true),
    ...(keyUsage === null
      ? []
      : [extension(id_ce_keyUsage, new KeyUsage(keyUsage), content.keyUsageCritical ?? true)]),
    ...(purposes === null ? [] : [extension(id_ce_extKeyUsage, new ExtendedKeyUsage([...purposes]), false)]),
    ...(names.length === 0
      ? []
      : [extension(id_ce_subjectAltName, new SubjectAlternativeName(names), false)]),
    ...(nameConstraints === undefined
      ? []
      : [
          extension(
            id_ce_nameConstraints,
            new NameConstraints({
              ...(nameConstraints.permitted && { permittedSubtrees: subtrees(nameConstraints.permitted) }),
              ...(nameConstraints.excluded && { excludedSubtrees: subtrees(nameConstraints.excluded) }),
            }),
            true,
          ),
        ]),
  ];
}

/** An empty SEQUENCE behind the value. */
function withTrailingBytes({ critical, extnID, extnValue }: Extension): Extension {
  const bytes = Uint8Array.from([...new Uint8Array(extnValue.buffer), 0x30, 0x00]);
  return new Extension({ critical, extnID, extnValue: new OctetString(bytes) });
}

export function extension(extnID: string, value: unknown, critical: boolean): Extension {
  return new Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) });
}

function subtrees(names: readonly GeneralName[]): GeneralSubtrees {
  return new GeneralSubtrees(names.map((base) => new GeneralSubtree({ base })));
}
