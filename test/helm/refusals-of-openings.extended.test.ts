/** Checks that the chart rejects values that would weaken it: overridden flags, world-readable secrets, public ports. */
import { expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { describeChart, objectOf, refusalOf, render, type Values } from '../support/chart/chart.ts';

const MEMORY = [{ name: 'PROOFGATE_REPLAY', value: 'memory' }];
const PASSWORD = 'https://user:pw@host.example/v1';
const PRIVATE_JWK = '{"kty":"OKP","crv":"Ed25519","x":"AA","d" : "user:pw"}';
const PRIVATE_PEM = '-----BEGIN PRIVATE KEY-----\nuser:pw\n-----END PRIVATE KEY-----\n';

type Refusal = readonly [name: string, file: string, also: object, setting: string];

const REFUSALS: readonly Refusal[] = [
  [
    'a replay store of each one’s own',
    'verifier-redis',
    { verifier: { extraEnv: MEMORY } },
    'PROOFGATE_REPLAY',
  ],
  ['the same in a sidecar', 'sidecar', { verifier: { extraEnv: MEMORY } }, 'PROOFGATE_REPLAY'],
  [
    'a flag from a Secret',
    'verifier-redis',
    {
      verifier: {
        extraEnv: [{ name: 'PROOFGATE_REPLAY', valueFrom: { secretKeyRef: { name: 'x', key: 'y' } } }],
      },
    },
    'PROOFGATE_REPLAY',
  ],
  [
    'a flag of Control',
    'control-sqlite',
    { control: { extraEnv: [{ name: 'PROOFGATE_ALLOW_PLAIN_HTTP', value: 'true' }] } },
    'PROOFGATE_ALLOW_PLAIN_HTTP',
  ],
  [
    'a replay store of each proxy’s own',
    'proxy',
    { proxy: { extraEnv: MEMORY } },
    'proxy.extraEnv holds PROOFGATE_REPLAY',
  ],
  [
    'a private key among those of a proxy',
    'proxy',
    { proxy: { trust: { bundleKeys: { 'own.jwk.json': PRIVATE_JWK } } } },
    'proxy.trust.bundleKeys holds a private key as own.jwk.json',
  ],
  [
    'a password in a variable',
    'sidecar',
    { verifier: { extraEnv: [{ name: 'HTTPS_PROXY', value: PASSWORD }] } },
    'verifier.extraEnv HTTPS_PROXY holds a user or password',
  ],
  [
    'a password before a proxy without a scheme',
    'sidecar',
    { verifier: { extraEnv: [{ name: 'HTTPS_PROXY', value: 'user:pw@proxy.example:3128' }] } },
    'verifier.extraEnv HTTPS_PROXY holds a user or password',
  ],
  [
    'a password in a variable of Control',
    'control-sqlite',
    { control: { extraEnv: [{ name: 'HTTPS_PROXY', value: PASSWORD }] } },
    'control.extraEnv HTTPS_PROXY holds a user or password',
  ],
  [
    'a password where events go',
    'verifier-audited',
    { verifier: { settings: { auditUrl: PASSWORD } } },
    'verifier.settings.auditUrl',
  ],
  [
    'a token in the query of where events go',
    'verifier-audited',
    { verifier: { settings: { auditUrl: 'https://collector.example/v1?kind=x&Access_Token=user:pw' } } },
    'verifier.settings.auditUrl',
  ],
  ...['pass', 'api_key', 'X-Amz-Signature', 'pwd', 'apiKey', 'authToken'].map(
    (name): Refusal => [
      `${name} in the query of where events go`,
      'verifier-audited',
      { verifier: { settings: { auditUrl: `https://collector.example/v1?a=b&${name}=user:pw` } } },
      'verifier.settings.auditUrl',
    ],
  ),
  [
    'a variable that is a password',
    'verifier-redis',
    { verifier: { extraEnv: [{ name: 'PROXY_PASSWORD', value: 'user:pw' }] } },
    'verifier.extraEnv holds the value of PROXY_PASSWORD',
  ],
  [
    'a private key among those that sign bundles',
    'verifier-redis',
    { verifier: { trust: { bundleKeys: { 'own.jwk.json': PRIVATE_JWK } } } },
    'verifier.trust.bundleKeys holds a private key as own.jwk.json',
  ],
  [
    'a private key as PEM, of a sidecar',
    'sidecar',
    { verifier: { trust: { freshnessKeys: { 'own.pem': PRIVATE_PEM } } } },
    'verifier.trust.freshnessKeys holds a private key as own.pem',
  ],
  [
    'an annotation in the place of the one that makes pods anew',
    'verifier-redis',
    { verifier: { podAnnotations: { 'checksum/trust': 'fixed' } } },
    'verifier.podAnnotations has checksum/trust',
  ],
  [
    'a password where traces go',
    'verifier-audited',
    { verifier: { settings: { otlpEndpoint: PASSWORD } } },
    'verifier.settings.otlpEndpoint',
  ],
  [
    'a password where Control is',
    'verifier-redis',
    { verifier: { source: { control: { url: PASSWORD } } } },
    'verifier.source.control.url',
  ],
  [
    'a password in a public URL',
    'control-sqlite',
    { control: { publicUrls: ['https://control.shop.example', PASSWORD] } },
    'control.publicUrls',
  ],
  [
    'a password where operators sign in',
    'control-operators',
    { control: { oidc: { issuer: PASSWORD } } },
    'control.oidc.issuer',
  ],
  ['a password in what is requested', 'everything', { test: { url: PASSWORD } }, 'test.url'],
  [
    'a password where the test enrolls',
    'test-elsewhere',
    { test: { controlUrl: PASSWORD } },
    'test.controlUrl',
  ],
  [
    'a load balancer without TLS',
    'verifier-memory',
    { verifier: { tls: { mode: 'none' }, service: { type: 'LoadBalancer' } } },
    'verifier.service.type is LoadBalancer without TLS',
  ],
  [
    'a port of every node for any client',
    'verifier-redis',
    { verifier: { service: { type: 'NodePort' }, tls: { clientCa: { configMap: '' }, clientSans: [] } } },
    'verifier.service.type is NodePort without verifier.tls.clientCa',
  ],
  [
    'an HTTP port of every node for any client of a network',
    'verifier-http-traefik',
    {
      verifier: {
        service: { type: 'NodePort' },
        http: { trustedProxies: ['10.0.0.0/8'], tls: { clientCa: { configMap: '' } } },
      },
    },
    'verifier.service.type is NodePort without verifier.http.tls.clientCa',
  ],
  [
    'Control behind a load balancer without TLS',
    'control-behind-proxy',
    { control: { service: { allowPlainHttp: false } } },
    'control.service.type is LoadBalancer without TLS',
  ],
];

const SENTENCE = /execution error at \(proofgate\/templates\/checks\.yaml:\d+:\d+\): ([^\n]+\.)\n/;

describeChart('refuses', () => {
  it.each(REFUSALS)('%s', (_name, file, also, setting) => {
    expect(render({ file })).not.toEqual([]);
    const [, sentence = ''] = SENTENCE.exec(refusalOf({ file, also }) ?? '') ?? [];
    expect(sentence).toContain(setting);
    expect(sentence.slice(0, -1)).not.toMatch(/\. /);
    // The error does not print the rejected value.
    expect(sentence).not.toContain('user:pw');
  });
});

describeChart('takes', () => {
  const plain = { tls: { mode: 'none' }, service: { type: 'NodePort', allowUnauthenticated: true } };

  it.each<readonly [string, Values]>([
    ['a port that something else protects', { file: 'verifier-memory', also: { verifier: plain } }],
    [
      'a load balancer that gateways alone may ask',
      { file: 'verifier-redis', also: { verifier: { service: { type: 'LoadBalancer' } } } },
    ],
    [
      'Control with TLS behind a load balancer',
      { file: 'control-sqlite', also: { control: { service: { type: 'LoadBalancer' } } } },
    ],
    [
      'a variable from a Secret, and one with an address that names no host',
      {
        file: 'verifier-audited',
        also: { verifier: { extraEnv: [{ name: 'NO_PROXY', value: 'https://host.example/@v1' }] } },
      },
    ],
    [
      'a query that has the letters of a credential, and none',
      {
        file: 'verifier-audited',
        also: {
          verifier: { settings: { auditUrl: 'https://host.example/?signal=logs&design=1&compass=n&keys=2' } },
        },
      },
    ],
    [
      'a variable that has the signs of a login, and is none',
      {
        file: 'verifier-audited',
        also: {
          verifier: {
            extraEnv: [
              { name: 'NO_PROXY', value: '10.0.0.0/8,::1,host.example:8080' },
              { name: 'OWNER', value: 'team at: ops@shop.example' },
              { name: 'PAGE', value: 'https://host.example/?token=&tokens' },
              { name: 'EMPTY_TOKEN', value: '' },
              { name: 'API_TOKEN', valueFrom: { secretKeyRef: { name: 'x', key: 'y' } } },
            ],
          },
        },
      },
    ],
  ])('%s', (_name, values) => {
    expect(render(values)).not.toEqual([]);
  });
});

describeChart('a URL of Redis from a Secret, which may hold `memory`,', () => {
  const timeoutsOf = (args: readonly string[]) => args.filter((arg) => arg.startsWith('--redis-timeout='));

  it('comes with a flag that the program takes with a URL of Redis alone', () => {
    const file = 'verifier-autoscaling';
    const argsWith = (also: object) =>
      objectOf(render({ file, also }), 'Deployment', 'rel-proofgate-verifier').spec.template.spec
        .containers[0]?.args ?? [];
    expect(timeoutsOf(argsWith({}))).toEqual(['--redis-timeout=100ms']);
    const own = { verifier: { settings: { redisTimeout: '250ms' } } };
    expect(timeoutsOf(argsWith(own))).toEqual(['--redis-timeout=250ms']);
  });

  it('so does that of a sidecar', () => {
    const map = objectOf(render({ file: 'sidecar' }), 'ConfigMap', 'rel-proofgate-verifier-sidecar');
    const [{ args }] = parse(map.data?.['pod.yaml'] ?? '').spec.initContainers;
    expect(timeoutsOf(args)).toEqual(['--redis-timeout=100ms']);
  });
});
