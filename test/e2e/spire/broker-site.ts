/**
 * A site that trusts one broker for several trust domains: bundle, the broker's key directory, its registered software
 * keys, and signing profiles. One route takes both classes of signers.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { signBundle } from '../../../src/bundle/authoring/authoring.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { generateSigningKey, type SigningKey } from '../../../src/protocol/signing.ts';
import { AUTH_SITE, nowSeconds } from '../../support/site/site.ts';

export const BROKER_ISSUER = 'https://broker.shop.example';
export const API_AUDIENCE = 'https://api.shop.example';
export const TARGET = '/v1/orders/4711';
/** The route's rule for this subject takes a software key. */
export const SOFTWARE_SUBJECT = 'job:nightly';
/** The route's rule for this subject demands an attested workload. */
export const SOFTWARE_SUBJECT_TOO_WEAK = 'job:release';

export interface BrokerSite {
  readonly directory: string;
  readonly bundleKeyFile: string;
  readonly bundleDirectory: string;
  /** `--key-dir` of the broker. */
  readonly keyDirectory: string;
  /** `--software-keys` of the broker. */
  readonly softwareKeysFile: string;
  /** The registered key of {@link SOFTWARE_SUBJECT} or {@link SOFTWARE_SUBJECT_TOO_WEAK}. */
  softwareKeyFile(subject: string): string;
  /** `--profiles`. */
  readonly profilesDirectory: string;
  remove(): Promise<void>;
}

interface ProfiledCaller {
  readonly subject: string;
  readonly trustDomain: string;
  readonly origin: string;
}

export interface BrokerSiteOptions {
  /** That the broker signs for; the software keys belong to the first one. */
  readonly trustDomains: readonly [string, ...string[]];
  /** Of the API, such as `http://127.0.0.1:10000`. */
  readonly origin: string;
  /** SPIFFE IDs that get a signing profile. */
  readonly workloads: readonly string[];
}

export async function createBrokerSite(options: BrokerSiteOptions): Promise<BrokerSite> {
  const { origin, trustDomains, workloads } = options;
  const directory = await mkdtemp(join(tmpdir(), 'pg-broker-'));
  const keyDirectory = join(directory, 'keys');
  const profilesDirectory = join(directory, 'profiles');
  const bundleDirectory = join(directory, 'bundle');
  for (const folder of [keyDirectory, profilesDirectory, bundleDirectory]) await mkdir(folder);
  const issuerKeys = new Map(trustDomains.map((domain) => [domain, generateSigningKey('Ed25519')]));
  for (const [domain, key] of issuerKeys) {
    await mkdir(join(keyDirectory, domain));
    await writeKey(join(keyDirectory, domain, `${keyIdOf(domain)}.pem`), key);
  }
  const bundleSigner = generateSigningKey('Ed25519');
  const bundleKeyFile = join(directory, 'bundle-key.jwk.json');
  await writeFile(bundleKeyFile, JSON.stringify(bundleSigner.publicKey.jwk));
  await signBundle({
    ...{ yamlText: JSON.stringify(bundleContent(issuerKeys, origin)), fileName: 'site.yaml' },
    ...{ signingKeys: [bundleSigner], outDirectory: bundleDirectory, nowSeconds: nowSeconds() },
  });
  const softwareKeyFile = (subject: string) => join(directory, `${subject.replace(':', '-')}.pem`);
  const keys = [];
  for (const subject of [SOFTWARE_SUBJECT, SOFTWARE_SUBJECT_TOO_WEAK]) {
    const key = generateSigningKey('Ed25519');
    await writeKey(softwareKeyFile(subject), key);
    keys.push({ thumbprint: key.publicKey.thumbprint, subject, trust_domain: trustDomains[0] });
  }
  const softwareKeysFile = join(directory, 'software-keys.json');
  await writeFile(softwareKeysFile, JSON.stringify({ keys }));
  const callers = [
    ...workloads.map((subject) => ({ subject, trustDomain: new URL(subject).host })),
    ...keys.map(({ subject, trust_domain }) => ({ subject, trustDomain: trust_domain })),
  ];
  for (const [i, caller] of callers.entries()) {
    const profile = JSON.stringify(profileOf({ ...caller, origin }));
    await writeFile(join(profilesDirectory, `${i}.json`), profile);
  }
  return {
    ...{ directory, bundleKeyFile, bundleDirectory, keyDirectory, profilesDirectory },
    ...{ softwareKeysFile, softwareKeyFile },
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}

function keyIdOf(trustDomain: string): string {
  return `broker-${trustDomain}`;
}

async function writeKey(path: string, key: SigningKey): Promise<void> {
  const pem = key.privateKey.export({ type: 'pkcs8', format: 'pem' });
  await writeFile(path, pem, { mode: 0o600 });
}

function profileOf({ origin, subject, trustDomain }: ProfiledCaller): object {
  return {
    ...{ format: 'proofgate.signing-profile/v1', auth_site: AUTH_SITE, issuer: BROKER_ISSUER },
    ...{ subject, trust_domain: trustDomain },
    key_binding: subject.startsWith('spiffe://') ? 'attested_workload' : 'software',
    profiles: [
      {
        ...{ route_id: ROUTE.route_id, method: ROUTE.method, path_template: ROUTE.path_template },
        ...{ audience: API_AUDIENCE, origins: [origin] },
      },
    ],
  };
}

const ROUTE = {
  ...{ route_id: 'orders-read', method: 'GET', path_template: '/v1/orders/{order_id}' },
  ...{ audience: API_AUDIENCE, freshness_class: 'bounded', max_staleness_seconds: 3600, resource: 'orders' },
};

function bundleContent(issuerKeys: ReadonlyMap<string, SigningKey>, origin: string): object {
  const trustDomains = [...issuerKeys.keys()];
  const [first = ''] = trustDomains;
  const rule = (trust_domain: string, subject: object, required_key_binding: string) => ({
    ...{ issuer: BROKER_ISSUER, trust_domain, required_key_binding, ...subject },
  });
  return {
    ...{ format: 'proofgate.bundle/v1', auth_site: AUTH_SITE, expires_at: formatTime(nowSeconds() + 3600) },
    // The start of a replay store refuses proofs for about this long.
    ...{ skew_seconds: 1, single_verifier: true, origins: [origin] },
    issuers: [...issuerKeys].map(([trustDomain, { publicKey }]) => ({
      ...{ issuer: BROKER_ISSUER, trust_domain: trustDomain, key_binding: 'attested_workload' },
      subject_prefixes: [`spiffe://${trustDomain}/`, 'job:'],
      keys: [{ kid: keyIdOf(trustDomain), alg: publicKey.algorithm, jwk: publicKey.jwk }],
    })),
    ...{ clients: [], derived_keys: [], routes: [ROUTE] },
    route_sources: [
      {
        route_id: ROUTE.route_id,
        allowed_sources: [
          ...trustDomains.map((domain) =>
            rule(domain, { subject_prefix: `spiffe://${domain}/ns/prod/` }, 'attested_workload'),
          ),
          rule(first, { subject_exact: SOFTWARE_SUBJECT }, 'software'),
          rule(first, { subject_exact: SOFTWARE_SUBJECT_TOO_WEAK }, 'attested_workload'),
        ],
      },
    ],
  };
}
