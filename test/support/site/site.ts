/** The protected site: its keys, its bundle, and the callers that the bundle knows. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freshen, signBundle } from '../../../src/bundle/authoring/authoring.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { generateSigningKey, type SigningKey } from '../../../src/protocol/signing.ts';
import { ORIGINS, ROUTES, type SiteRoute } from './routes.ts';
import { Secrets } from './secrets.ts';

export const AUTH_SITE = 'shop-e2e';
export const TRUST_DOMAIN = 'shop.example';
export const CLIENT_ISSUER = 'https://control.shop.example/sites/shop-e2e';
export const BROKER_ISSUER = 'https://broker.shop.example';
export const BUILD_ISSUER = 'https://builds.shop.example';
export const OIDC_ISSUER = 'https://oidc.shop.example';
export const WORKLOAD_PREFIX = `spiffe://${TRUST_DOMAIN}/ns/prod/`;

/** How long ago the usual bundle was issued: too long for some of its routes. */
const BUNDLE_AGE_SECONDS = 100;

const ed25519 = () => generateSigningKey('Ed25519');
const p256 = () => generateSigningKey('ES256');

/** Holder keys of the bundle's derived keys, by key ID. */
const DERIVED_KEYS = {
  dk_billing: ed25519,
  dk_billing_p256: p256,
  dk_reporting: ed25519,
  dk_elsewhere: ed25519,
  dk_plain: ed25519,
  dk_revoked: ed25519,
  dk_expired: ed25519,
} as const;
/** Keys that sign passports for others, by `kid`. */
const ISSUER_KEYS = {
  'broker-1': ed25519,
  'broker-p256': p256,
  'broker-next': ed25519,
  'broker-last': ed25519,
  'builds-1': ed25519,
} as const;

export type DerivedKeyId = keyof typeof DERIVED_KEYS;
export type IssuerKeyId = keyof typeof ISSUER_KEYS;

export interface Site {
  readonly derivedKeys: { readonly [K in DerivedKeyId]: SigningKey };
  readonly issuerKeys: { readonly [K in IssuerKeyId]: SigningKey };
  readonly bundleKeyFile: string;
  /** For whatever has to lie in a file; removed with the site. */
  readonly directory: string;
  readonly secrets: Secrets;
  /** Signs a bundle into a directory of its own. */
  makeBundle(times?: BundleTimes): Promise<string>;
  /** States that the bundle of the directory is the latest as of now. */
  freshen(bundleDirectory: string): Promise<void>;
  remove(): Promise<void>;
}

interface BundleTimes {
  /** Default: {@link BUNDLE_AGE_SECONDS} ago. */
  readonly issuedAtSeconds?: number;
  readonly expiresAtSeconds?: number;
  /** IDs of routes that may become WebSockets. */
  readonly webSocketRoutes?: readonly string[];
  /** IDs of routes that are observed, and the end of that and of unmatched requests. */
  readonly observed?: { readonly routes: readonly string[]; readonly untilSeconds: number };
  /** Beside the usual ones. */
  readonly moreRoutes?: readonly SiteRoute[];
  /** Default: true. */
  readonly isSingleVerifier?: boolean;
  /** Authorization servers, whose callers may call every route. */
  readonly oauthIssuers?: readonly { readonly issuer: string }[];
}

export function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

/** A private key of no standing, for holders and forgers; it counts as a secret. */
export function newHolder(secrets: Secrets): SigningKey {
  const key = ed25519();
  secrets.addPrivateKey('a holder key', key.privateKey);
  return key;
}

export async function createSite(): Promise<Site> {
  const directory = await mkdtemp(join(tmpdir(), 'pg-site-'));
  const secrets = new Secrets();
  const bundleSigner = newHolder(secrets);
  const derivedKeys = makeKeys(DERIVED_KEYS, secrets);
  const issuerKeys = makeKeys(ISSUER_KEYS, secrets);
  const bundleKeyFile = join(directory, 'bundle-key.jwk.json');
  await writeFile(bundleKeyFile, JSON.stringify(bundleSigner.publicKey.jwk));
  let bundles = 0;
  return {
    derivedKeys,
    issuerKeys,
    bundleKeyFile,
    directory,
    secrets,
    makeBundle: async (times = {}) => {
      bundles += 1;
      const outDirectory = join(directory, `bundle-${bundles}`);
      await mkdir(outDirectory);
      await signBundle({
        yamlText: JSON.stringify(bundleContent({ derivedKeys, issuerKeys }, times)),
        fileName: 'site.yaml',
        signingKeys: [bundleSigner],
        outDirectory,
        nowSeconds: times.issuedAtSeconds ?? nowSeconds() - BUNDLE_AGE_SECONDS,
      });
      return outDirectory;
    },
    freshen: async (bundleDirectory) => {
      await freshen({
        directory: bundleDirectory,
        signingKeys: [bundleSigner],
        nowSeconds: nowSeconds(),
      });
    },
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}

function makeKeys<K extends string>(
  makers: { readonly [key in K]: () => SigningKey },
  secrets: Secrets,
): { readonly [key in K]: SigningKey } {
  const names = Object.keys(makers) as K[];
  const made = names.map((name) => {
    const key = makers[name]();
    secrets.addPrivateKey(name, key.privateKey);
    return [name, key] as const;
  });
  return Object.fromEntries(made) as { [key in K]: SigningKey };
}

function bundleContent(keys: Pick<Site, 'derivedKeys' | 'issuerKeys'>, times: BundleTimes): object {
  const { isSingleVerifier = true, moreRoutes = [], oauthIssuers, webSocketRoutes = [] } = times;
  const usual: readonly SiteRoute[] = Object.values(ROUTES).map((route) =>
    webSocketRoutes.includes(route.route_id) ? { ...route, upgrade: 'websocket' } : route,
  );
  const { observed } = times;
  const until = observed && formatTime(observed.untilSeconds);
  const routes = [...usual, ...moreRoutes].map((route) =>
    observed?.routes.includes(route.route_id)
      ? { ...route, enforcement: 'observe', observe_until: until }
      : route,
  );
  return {
    ...(until === undefined ? {} : { unmatched: 'observe', unmatched_until: until }),
    format: 'proofgate.bundle/v1',
    auth_site: AUTH_SITE,
    expires_at: formatTime(times.expiresAtSeconds ?? nowSeconds() + 3600),
    // The start of a replay store refuses proofs for about this long.
    skew_seconds: 1,
    single_verifier: isSingleVerifier,
    origins: ORIGINS,
    issuers: issuers(keys),
    ...(oauthIssuers === undefined ? {} : { oauth_issuers: oauthIssuers }),
    clients: CLIENTS,
    derived_keys: derivedKeyEntries(keys),
    routes,
    route_sources: routes.map(({ route_id }) => ({
      route_id,
      allowed_sources: [
        ...allowedSources(route_id === ROUTES.vault.route_id ? 'attested_workload' : 'software'),
        ...(oauthIssuers ?? []).map(({ issuer }) => ({
          ...{ issuer, trust_domain: TRUST_DOMAIN, required_key_binding: 'software' },
          subject_prefix: 'sub:',
        })),
      ],
    })),
  };
}

const orders = (access: 'read' | 'write') => [{ resource: 'orders', access }];
const client = { issuer: CLIENT_ISSUER, trust_domain: TRUST_DOMAIN };
const CLIENTS = [
  {
    ...client,
    client_id: 'billing',
    subject: 'client:billing',
    context: { environment: 'production' },
    grants: orders('write'),
  },
  {
    ...client,
    client_id: 'reporting',
    subject: 'client:reporting',
    context: { environment: 'staging' },
    grants: orders('read'),
  },
  { ...client, client_id: 'plain', subject: 'client:plain', grants: orders('write') },
];

/** Client, status and provenance of each derived key; the others are billing's, active, from {@link OIDC_ISSUER}. */
const DERIVED_KEY_ENTRIES: { readonly [K in DerivedKeyId]?: object } = {
  dk_reporting: { client_id: 'reporting', provenance: {} },
  dk_elsewhere: { provenance: { verified_issuer: 'https://oidc.elsewhere.example' } },
  dk_plain: { client_id: 'plain' },
  dk_revoked: { status: 'revoked' },
};

function derivedKeyEntries({ derivedKeys }: Pick<Site, 'derivedKeys'>): readonly object[] {
  return (Object.keys(derivedKeys) as DerivedKeyId[]).map((key_id) => ({
    key_id,
    client_id: 'billing',
    jwk: derivedKeys[key_id].publicKey.jwk,
    status: 'active',
    expires_at: formatTime(nowSeconds() + (key_id === 'dk_expired' ? -60 : 3600)),
    provenance: { verified_issuer: OIDC_ISSUER },
    ...DERIVED_KEY_ENTRIES[key_id],
  }));
}

function issuers({ issuerKeys }: Pick<Site, 'issuerKeys'>): readonly object[] {
  const entry = (kid: IssuerKeyId, times: object = {}) => ({
    kid,
    alg: issuerKeys[kid].publicKey.algorithm,
    jwk: issuerKeys[kid].publicKey.jwk,
    ...times,
  });
  return [
    {
      issuer: BROKER_ISSUER,
      trust_domain: TRUST_DOMAIN,
      subject_prefixes: [`spiffe://${TRUST_DOMAIN}/`],
      key_binding: 'attested_workload',
      max_passport_ttl_seconds: 600,
      keys: [
        entry('broker-1'),
        entry('broker-p256'),
        entry('broker-next', { not_before: formatTime(nowSeconds() + 3600) }),
        entry('broker-last', { not_after: formatTime(nowSeconds() - 60) }),
      ],
    },
    {
      issuer: BUILD_ISSUER,
      trust_domain: TRUST_DOMAIN,
      subject_prefixes: ['build:'],
      key_binding: 'software',
      keys: [entry('builds-1')],
    },
  ];
}

function allowedSources(required_key_binding: 'software' | 'attested_workload'): readonly object[] {
  const rule = { trust_domain: TRUST_DOMAIN, required_key_binding };
  return [
    { ...rule, issuer: CLIENT_ISSUER, subject_prefix: 'client:' },
    { ...rule, issuer: BROKER_ISSUER, subject_prefix: WORKLOAD_PREFIX },
    { ...rule, issuer: BUILD_ISSUER, subject_exact: 'build:release' },
  ];
}
