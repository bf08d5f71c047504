/**
 * Tests the configurations that Envoy Gateway and Istio generated from the manifests below envoy/: the linter checks them
 * unchanged, and real Envoys run them with a real verifier.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { lintGateway } from '../../../src/tools/gateway-lint/lint.ts';
import { readText } from '../../support/docs/markdown.ts';
import { type Placement, type SecretFiles, staticBootstrap } from '../../support/docs/static-bootstrap.ts';
import { makeCertificates, type TestCertificates } from '../../support/harness/certificates.ts';
import { AUTHORITY } from '../../support/site/routes.ts';
import { useSite } from '../../support/site/site-fixture.ts';
import type { VerifierOptions } from '../../support/site/verifier.ts';
import { LANE_ENVOYS } from '../lane-envoys.ts';
import { expectChecked, expectClosedWithout, expectStrict, type Scheme } from './checked-requests.ts';
import { type Configured, type Parties, startConfigured } from './generated-gateway.ts';

const GATEWAY_URI = 'spiffe://shop.example/gateway';
const SERVICE = 'proofgate-verifier.gateway.svc';

interface Case {
  /** Of test/gateways/dumps. */
  readonly dump: string;
  readonly listener: string;
  readonly verifierCluster: string;
  readonly upstreamCluster: string;
  readonly scheme: Scheme;
  readonly listen: NonNullable<VerifierOptions['listen']>;
  readonly isMutual?: boolean;
  readonly chain?: string;
  /** Secrets by their names in the configuration, with the certificates that replace them. */
  readonly secrets: { readonly [name: string]: 'towards callers' | 'towards the verifier' };
}

const ENVOY_GATEWAY = {
  listener: 'gateway/api/https',
  verifierCluster: 'securitypolicy/gateway/proofgate/extauth/0',
  upstreamCluster: 'httproute/gateway/orders/rule/0',
  scheme: 'https',
} as const;

const ISTIO_GATEWAY = {
  listener: '0.0.0.0_443',
  verifierCluster: 'outbound|9191||verifier.proofgate.internal',
  upstreamCluster: 'outbound|8081||orders.shop.svc.cluster.local',
  scheme: 'https',
} as const;

/** Of mutual TLS between proxies, which is for endpoints that have one: none here. */
const MESH_SECRETS = { default: 'towards the verifier', ROOTCA: 'towards the verifier' } as const;

const CASES: readonly Case[] = [
  {
    ...ENVOY_GATEWAY,
    dump: 'envoy-gateway-socket',
    listen: 'unix',
    secrets: { 'gateway/api-tls': 'towards callers' },
  },
  {
    ...ENVOY_GATEWAY,
    dump: 'envoy-gateway-mtls',
    listen: 'tcp',
    isMutual: true,
    secrets: {
      'gateway/api-tls': 'towards callers',
      'gateway/gateway-client': 'towards the verifier',
      'verifier/gateway-ca': 'towards the verifier',
    },
  },
  {
    ...ISTIO_GATEWAY,
    dump: 'istio-gateway-socket',
    listen: 'unix',
    secrets: { ...MESH_SECRETS, 'kubernetes://api-tls': 'towards callers' },
  },
  {
    ...ISTIO_GATEWAY,
    dump: 'istio-gateway-mtls',
    listen: 'tcp',
    isMutual: true,
    secrets: {
      ...MESH_SECRETS,
      'kubernetes://api-tls': 'towards callers',
      'kubernetes://gateway-client': 'towards the verifier',
      'kubernetes://gateway-client-cacert': 'towards the verifier',
    },
  },
  {
    dump: 'istio-sidecar-loopback',
    listener: 'virtualInbound',
    chain: '0.0.0.0_8081',
    verifierCluster: 'outbound|9191||verifier.proofgate.internal',
    upstreamCluster: 'inbound|8081||',
    scheme: 'http',
    listen: 'tcp',
    secrets: MESH_SECRETS,
  },
];

const fixture = useSite();
let towardsVerifier: TestCertificates;
let towardsCallers: TestCertificates;
beforeAll(async () => {
  towardsVerifier = await makeCertificates(SERVICE, GATEWAY_URI);
  towardsCallers = await makeCertificates(AUTHORITY, GATEWAY_URI);
});
afterAll(async () => {
  await towardsVerifier?.remove();
  await towardsCallers?.remove();
});

const dumpOf = ({ dump }: Case) => readText(`test/gateways/dumps/${dump}.json`);

function secretFiles({ secrets }: Case): NonNullable<Placement['secrets']> {
  const { ca, client } = towardsVerifier;
  const files = {
    'towards callers': towardsCallers.server,
    'towards the verifier': { ...client, caPath: ca.certPath },
  } satisfies Record<string, SecretFiles>;
  return Object.fromEntries(Object.entries(secrets).map(([name, whose]) => [name, files[whose]]));
}

function configured(one: Case): Configured {
  const { chain, listener, upstreamCluster, verifierCluster } = one;
  const bootstrap = ({ upstream, verifier }: Parties) =>
    staticBootstrap(JSON.parse(dumpOf(one)), {
      listener,
      ...(chain !== undefined && { chain }),
      clusters: { [verifierCluster]: verifier, [upstreamCluster]: { kind: 'tcp', ...upstream } },
      secrets: secretFiles(one),
    });
  const tls = { ca: towardsCallers.ca.cert, servername: AUTHORITY };
  return { bootstrap, listener, ...(one.scheme === 'https' && { tls }) };
}

const rulesIn = (text: string) =>
  lintGateway(text, { allowedRules: [] })?.findings.map(({ place, rule }) => `${rule} in line ${place.line}`);

it.each(CASES)('$dump: the linter finds nothing', (one) => {
  expect(rulesIn(dumpOf(one))).toEqual([]);
});

it.each(CASES)('$dump: the linter would find what a patch that was not applied leaves open', (one) => {
  for (const [setting, rule] of [
    ['encode_?raw_?headers": true', 'headers-merged'],
    ['pack_?as_?bytes": true', 'body-not-packed'],
    ['name": "x-proofgate-decision-id', 'decision-not-required'],
  ] as const) {
    const text = dumpOf(one);
    const broken = text.replace(new RegExp(setting, 'gi'), (found) => found.replace(/true$|-id$/, 'x'));
    expect(broken).not.toBe(text);
    expect(rulesIn(broken)?.some((finding) => finding.startsWith(`${rule} `))).toBe(true);
  }
});

describe.each(LANE_ENVOYS)('Envoy %s', (version) => {
  it.each(CASES)('$dump: asks about every request, and allows none without an answer', async (one) => {
    const { isMutual = false, listen, scheme } = one;
    const { ca, server } = towardsVerifier;
    const mutual = [
      ...['--tls-cert-file', server.certPath, '--tls-key-file', server.keyPath],
      ...['--tls-client-ca-file', ca.certPath, '--tls-client-san', GATEWAY_URI],
    ];
    const verifier = await fixture.verifier({ listen, flags: isMutual ? mutual : [] });
    const gateway = await startConfigured(version, verifier, configured(one));
    fixture.stops.push(gateway.stop);
    const asked = { gateway, site: fixture.site, scheme };
    await expectChecked(asked);
    await expectStrict(asked);
    await expectClosedWithout(asked);
  });
});
