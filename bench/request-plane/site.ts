/** A site of a given size, signed and written in the verifier's bundle format. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { completeDraft, freshen, signContent } from '../../src/bundle/authoring/authoring.ts';
import { formatTime } from '../../src/protocol/rfc3339.ts';
import { generateSigningKey, type SigningKey } from '../../src/protocol/signing.ts';

export const AUTH_SITE = 'bench';
export const AUTHORITY = 'api.shop.example';
const ORIGIN = `https://${AUTHORITY}`;
export const AUDIENCE = 'https://api.shop.example';
export const ISSUER = 'https://control.shop.example/sites/bench';
export const TRUST_DOMAIN = 'shop.example';
const CLIENTS = 100;
const LIFETIME_SECONDS = 7200;

export interface SiteSize {
  readonly routes: number;
  readonly keys: number;
  /** P-256 keys beside the others, at most 100. Default: none. */
  readonly es256Keys?: number;
}

/** One who signs: a derived key of the site and the client that it acts for. */
export interface BenchCaller {
  readonly keyId: string;
  readonly subject: string;
  readonly key: SigningKey;
}

export interface BenchSite {
  readonly size: SiteSize;
  readonly directory: string;
  /** Public key that signed the bundle, as a JWK file. */
  readonly bundleKeyFile: string;
  readonly signer: SigningKey;
  /** At most 100, the same for every size; all others are there and never used. */
  readonly callers: readonly BenchCaller[];
  readonly es256Callers: readonly BenchCaller[];
}

/** The callers of every site: what differs between sites is all that they do not use. */
const CALLERS: readonly BenchCaller[] = Array.from({ length: 100 }, (_, index) => ({
  keyId: keyName(index),
  subject: subjectOf(index % CLIENTS),
  key: newKey(),
}));

const ES256_CALLERS: readonly BenchCaller[] = Array.from({ length: 100 }, (_, index) => ({
  keyId: `${keyName(index)}-p256`,
  subject: subjectOf(index % CLIENTS),
  key: generateSigningKey('ES256'),
}));

/** @param extraRoutes beside those of the size, such as ones that refuse everybody */
export async function writeSite(
  parent: string,
  size: SiteSize,
  extraRoutes: readonly ExtraRoute[] = [],
): Promise<BenchSite> {
  const directory = join(parent, `site-${size.routes}-${size.keys}`);
  const signer = newKey();
  const nowSeconds = Math.floor(Date.now() / 1000);
  await mkdir(directory, { recursive: true });
  const bundleKeyFile = join(parent, `bundle-key-${size.routes}-${size.keys}.jwk.json`);
  await writeFile(bundleKeyFile, JSON.stringify(signer.publicKey.jwk));
  const written = { ...contentOf(size, extraRoutes), expires_at: formatTime(nowSeconds + LIFETIME_SECONDS) };
  const draft = completeDraft(written, { file: 'bench.yaml', nowSeconds, previous: undefined });
  const { document } = await signContent(draft, { file: 'bench.yaml', signingKeys: [signer] });
  for (const { bytes, entry } of draft.shards) await writeFile(join(directory, entry.file), bytes);
  await writeFile(join(directory, 'bundle.jws'), document);
  await freshen({ directory, signingKeys: [signer], nowSeconds });
  const es256Callers = ES256_CALLERS.slice(0, size.es256Keys ?? 0);
  return { size, directory, bundleKeyFile, signer, callers: CALLERS.slice(0, size.keys), es256Callers };
}

export const ANY_SUBJECT = Symbol('every client of the site');

export interface ExtraRoute {
  readonly routeId: string;
  readonly path: string;
  readonly more: { readonly [member: string]: unknown };
  /** Default: the client of the first caller. */
  readonly subject?: string | typeof ANY_SUBJECT;
}

/** Also what a Control publishes: without revision and times. */
export function contentOf(
  { es256Keys = 0, keys, routes }: SiteSize,
  extraRoutes: readonly ExtraRoute[] = [],
) {
  const expiresAt = formatTime(Math.floor(Date.now() / 1000) + LIFETIME_SECONDS);
  const names = Array.from({ length: routes }, (_, index) => routeName(index));
  return {
    format: 'proofgate.bundle/v1' as const,
    auth_site: AUTH_SITE,
    skew_seconds: 1,
    single_verifier: true,
    origins: [ORIGIN],
    clients: Array.from({ length: CLIENTS }, (_, index) => clientEntry(index)),
    derived_keys: [
      ...Array.from({ length: keys }, (_, index) => keyEntry(index, expiresAt)),
      ...ES256_CALLERS.slice(0, es256Keys).map(({ key, keyId }, index) => ({
        ...keyEntry(index, expiresAt),
        key_id: keyId,
        jwk: key.publicKey.jwk,
      })),
    ],
    routes: [
      ...names.map((name, index) => routeEntry(name, `${pathOf(index)}/{order_id}`)),
      ...extraRoutes.map(({ more, path, routeId }) => ({ ...routeEntry(routeId, path), ...more })),
    ],
    route_sources: [
      ...names.map((name) => sourcesEntry(name, EVERY_CLIENT)),
      ...extraRoutes.map(({ routeId, subject = subjectOf(0) }) =>
        sourcesEntry(routeId, subject === ANY_SUBJECT ? EVERY_CLIENT : { subject_exact: subject }),
      ),
    ],
  };
}

export function routeName(index: number): string {
  return `orders-${index}`;
}

/** Path of a route without its last segment. */
export function pathOf(index: number): string {
  return `/v1/regions/${index}/orders`;
}

function routeEntry(routeId: string, pathTemplate: string) {
  return {
    route_id: routeId,
    method: 'GET',
    path_template: pathTemplate,
    audience: AUDIENCE,
    freshness_class: 'bounded',
    max_staleness_seconds: LIFETIME_SECONDS,
    resource: 'orders',
  };
}

const EVERY_CLIENT = { subject_prefix: 'client:' };

function sourcesEntry(
  routeId: string,
  subject: { readonly subject_prefix: string } | { readonly subject_exact: string },
) {
  const rule = { issuer: ISSUER, trust_domain: TRUST_DOMAIN, required_key_binding: 'software' as const };
  return { route_id: routeId, allowed_sources: [{ ...rule, ...subject }] };
}

function clientEntry(index: number) {
  return {
    client_id: `client-${index}`,
    issuer: ISSUER,
    trust_domain: TRUST_DOMAIN,
    subject: subjectOf(index),
    context: { environment: 'production' },
    grants: [{ resource: 'orders', access: 'read' as const }],
  };
}

export function keyEntry(index: number, expiresAt: string) {
  return {
    key_id: keyName(index),
    client_id: `client-${index % CLIENTS}`,
    jwk: (CALLERS[index]?.key ?? newKey()).publicKey.jwk,
    status: 'active' as const,
    expires_at: expiresAt,
    provenance: { verified_subject: `system:serviceaccount:prod:workload-${index}` },
  };
}

export function keyName(index: number): string {
  return `dk_${String(index).padStart(26, '0')}`;
}

function subjectOf(index: number): string {
  return `client:${index}`;
}

export function newKey(): SigningKey {
  return generateSigningKey('Ed25519');
}
