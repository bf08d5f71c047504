/**
 * The Auth Site of the demo: the one file that an operator writes by hand, and the workloads that enroll in it.
 * Source: docs/operate/cli.md "Signing profiles"; the file's format is that of bundles/site.yaml, which explains each member.
 */
import { stringify } from 'yaml';

export const siteId = 'demo';
export const targetName = 'gateway';
/** The audience of the projected tokens; it belongs to the site. */
export const tokenAudience = 'proofgate-demo';
/** Clocks may differ by that much: a key's end is certain only then. */
export const skewSeconds = 1;
/** A cluster's default; keys expire with the token. */
export const tokenLifeSeconds = 3600;
const sourceName = 'local cluster';

const apiAudience = 'orders-api';
const issuerUrl = 'https://control.demo.example';
/** Of passports that the broker signs for SPIFFE workloads. */
export const brokerIssuer = 'https://broker.demo.example';
export const trustDomain = 'demo.example';
const namespace = 'prod';

/** A pod: it holds its service account's token, and enrolls a key of its own with nothing else. */
export interface Caller {
  /** Names the pod and its files. */
  readonly name: string;
  readonly serviceAccount: 'billing' | 'reporting';
  /** The subject that APIs see: its client's. */
  readonly subject: string;
}

const caller = (name: string, serviceAccount: Caller['serviceAccount']): Caller => ({
  name,
  serviceAccount,
  subject: `client:${serviceAccount}`,
});

export const callers = {
  /** May read and write orders. */
  billing: caller('billing', 'billing'),
  /** May read orders. */
  reporting: caller('reporting', 'reporting'),
  /** A second pod of billing, whose key gets revoked. */
  spare: caller('spare', 'billing'),
  /** A third pod, whose token and key live for a few seconds. */
  brief: caller('brief', 'billing'),
} as const;

/** A workload with an X.509-SVID, and without a key of its own. */
export const spiffeWorkload = {
  name: 'payroll',
  subject: `spiffe://${trustDomain}/ns/prod/sa/payroll`,
} as const;

export function workloadOf({ serviceAccount }: Caller) {
  return { namespace, serviceAccount, subject: `system:serviceaccount:${namespace}:${serviceAccount}` };
}

const source = (issuer: string, prefix: string, keyBinding: 'software' | 'attested_workload') =>
  `{ issuer: "${issuer}", trust_domain: ${trustDomain}, subject_prefix: "${prefix}", required_key_binding: ${keyBinding} }`;

const enrolled = [source(issuerUrl, 'client:', 'software')];
/** Enrolled keys are named, too: they are denied for their class alone. */
const attested = [
  source(brokerIssuer, `spiffe://${trustDomain}/`, 'attested_workload'),
  source(issuerUrl, 'client:', 'attested_workload'),
];

interface DemoRoute {
  readonly route_id: string;
  readonly method: string;
  readonly path_template: string;
  readonly resource: string;
  readonly sources: readonly string[];
  readonly freshness?: 'realtime';
}

const routes: readonly DemoRoute[] = [
  {
    route_id: 'orders-read',
    method: 'GET',
    path_template: '/orders/{id}',
    resource: 'orders',
    sources: enrolled,
  },
  {
    route_id: 'orders-write',
    method: 'POST',
    path_template: '/orders',
    resource: 'orders',
    sources: enrolled,
  },
  {
    route_id: 'payouts-read',
    method: 'GET',
    path_template: '/payouts/{id}',
    resource: 'payouts',
    sources: enrolled,
  },
  {
    // Without news from Control for 10 s it denies; the others work for 300 s.
    freshness: 'realtime',
    route_id: 'salaries-read',
    method: 'GET',
    path_template: '/salaries/{id}',
    resource: 'salaries',
    sources: attested,
  },
];

export interface SiteInputs {
  /** Scheme and authority that requests are signed for. */
  readonly origin: string;
  /** The cluster's. */
  readonly issuer: { readonly issuer: string; readonly jwksUri: string };
  readonly brokerUrl: string;
}

/** `site.yaml`, for `proofgate ctl apply`: narrow enough to be read on one screen. */
export function siteYaml({ origin, issuer: cluster, brokerUrl }: SiteInputs): string {
  return `\
format: proofgate.site/v1
environment: demo
fleet: local
site: { site_id: ${siteId}, trust_domain: ${trustDomain}, issuer_url: "${issuerUrl}",
        origins: ["${origin}"], skew_seconds: ${skewSeconds}, single_verifier: true }
clients:              # whom keys act for: a key inherits exactly its client's grants
  - { client_id: billing, subject: "client:billing", grants: [{ resource: orders, access: write }] }
  - { client_id: reporting, subject: "client:reporting", grants: [{ resource: orders, access: read }] }
routes:               # what the gateway lets through; every client may try, its grants say who gets through
${routes.map(routeYaml).join('')}\
brokers:              # who vouches for SPIFFE workloads
  - { issuer: "${brokerIssuer}", url: "${brokerUrl}", trust_domain: ${trustDomain}, key_binding: attested_workload,
      subject_prefixes: ["spiffe://${trustDomain}/"] }
sources:              # which cluster vouches for workloads
  - { name: ${sourceName}, issuer: "${cluster.issuer}", jwks_uri: "${cluster.jwksUri}",
      audience: ${tokenAudience}, expected_scope: "${cluster.issuer.slice('https://'.length)}" }
enrollment_policies:  # whose token becomes a key of which client
${['billing', 'reporting'].map(policyYaml).join('')}\
targets: [${targetName}]    # the verifiers
`;
}

function routeYaml({ route_id, method, path_template, resource, sources, freshness }: DemoRoute): string {
  return `\
  - { route_id: ${route_id}, method: ${method}, path_template: "${path_template}", resource: ${resource}, audience: ${apiAudience},
      freshness_class: ${freshness ?? 'bounded, max_staleness_seconds: 300'},
      allowed_sources: [${sources.join(',\n        ')}] }
`;
}

function policyYaml(client: string): string {
  return `\
  - { name: ${client}, source: ${sourceName}, client: ${client}, approval: automatic, max_key_lifetime_seconds: ${tokenLifeSeconds},
      verified_subject: "system:serviceaccount:${namespace}:${client}" }
`;
}

/**
 * A signing profile file in which a caller claims every route, granted or not: what enrolling gave it names the granted
 * ones alone, so without this file it could not even sign the others.
 */
export function overreachingProfileYaml(key: Caller, keyId: string, origin: string): string {
  return stringify({
    format: 'proofgate.signing-profile/v1',
    auth_site: siteId,
    key_id: keyId,
    issuer: issuerUrl,
    trust_domain: trustDomain,
    subject: key.subject,
    key_binding: 'software',
    profiles: routes.map(({ route_id, method, path_template }) => ({
      route_id,
      method,
      path_template,
      audience: apiAudience,
      origins: [origin],
    })),
  });
}
