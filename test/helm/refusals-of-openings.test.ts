/** What the chart refuses because it would open what the chart closes: overridden flags, secrets where everybody reads them, ports for the world. */
import { expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { describeChart, objectOf, refusalOf, render, type Values } from './chart.ts';

const MEMORY = [{ name: 'PROOFGATE_REPLAY', value: 'memory' }];
const PASSWORD = 'https://user:pw@host.example/v1';

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
    'a password in a variable',
    'sidecar',
    { verifier: { extraEnv: [{ name: 'HTTPS_PROXY', value: PASSWORD }] } },
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
    'a port of every node for whoever asks',
    'verifier-redis',
    { verifier: { service: { type: 'NodePort' }, tls: { clientCa: { configMap: '' }, clientSans: [] } } },
    'verifier.service.type is NodePort without verifier.tls.clientCa',
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
    // What it refuses to render it does not print either.
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
      'a variable from a Secret, and one with an address that names nobody',
      {
        file: 'verifier-audited',
        also: { verifier: { extraEnv: [{ name: 'NO_PROXY', value: 'https://host.example/@v1' }] } },
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
