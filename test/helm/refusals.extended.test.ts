/** Checks that the chart rejects invalid values, with one sentence that states the reason. */
import { expect, it } from '@jest/globals';
import { describeChart, refusalOf, render, type Values } from '../support/chart/chart.ts';

const ROUTE = { enabled: true, parentRefs: [{ name: 'public' }] };
const NO_REDIS = { url: '', urlSecret: { name: '' } };
const REPLAYED = 'a replayed request could pass';

/** A values file that renders, a change to it, and words of the error. */
type Refusal = readonly [name: string, values: Values, words: readonly string[]];

const WITHOUT_REDIS: readonly Refusal[] = [
  [
    'several verifiers',
    { file: 'verifier-memory', also: { verifier: { replicas: 2 } } },
    ['verifier.replicas is 2', REPLAYED],
  ],
  [
    'an autoscaler',
    { file: 'verifier-autoscaling', also: { redis: NO_REDIS } },
    ['verifier.autoscaling', REPLAYED],
  ],
  [
    'a surge',
    {
      file: 'verifier-memory',
      also: { verifier: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } } } },
    },
    ['verifier.strategy', 'maxSurge > 0', REPLAYED],
  ],
  [
    'a rolling update, whose old pod still drains',
    {
      file: 'verifier-memory',
      also: { verifier: { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } } },
    },
    ['verifier.strategy', 'still drains', REPLAYED],
  ],
  ['a sidecar', { file: 'sidecar', also: { redis: NO_REDIS } }, ['verifier.mode is sidecar', REPLAYED]],
  [
    'several workers',
    { file: 'verifier-memory', also: { verifier: { settings: { workers: 2 } } } },
    ['verifier.settings.workers is 2', REPLAYED],
  ],
  [
    'a state directory that goes with its pod',
    { file: 'verifier-memory', also: { verifier: { persistence: { enabled: false } } } },
    ['verifier.persistence is required'],
  ],
  [
    'a password of Redis',
    { file: 'verifier-memory', also: { redis: { passwordSecret: { name: 'password' } } } },
    ['redis.passwordSecret is for a Redis'],
  ],
  [
    'settings of Redis',
    { file: 'verifier-memory', also: { verifier: { settings: { redisTimeout: '1s' } } } },
    ['verifier.settings.redisTimeout is about a Redis that is not there'],
  ],
];

const VERIFIER: readonly Refusal[] = [
  [
    'no site',
    { file: 'verifier-redis', also: { verifier: { authSite: '' } } },
    ['verifier.authSite is required'],
  ],
  [
    'no bundle key',
    { file: 'verifier-own-keys', also: { verifier: { trust: { bundleKeyFiles: [] } } } },
    ['at least one bundle key'],
  ],
  [
    'keys in two ways',
    { file: 'verifier-redis', also: { verifier: { trust: { existingConfigMap: 'keys' } } } },
    ['verifier.trust.existingConfigMap stands in place of'],
  ],
  [
    'names of keys without their ConfigMap',
    { file: 'verifier-redis', also: { verifier: { trust: { bundleKeyFiles: ['a.pem'] } } } },
    ['verifier.trust.bundleKeyFiles'],
  ],
  [
    'two keys of one name',
    {
      file: 'verifier-redis',
      also: { verifier: { trust: { freshnessKeys: { 'bundle-1.jwk.json': 'x' } } } },
    },
    ['two different keys under the name bundle-1.jwk.json'],
  ],
  [
    'break-glass keys without the ConfigMap of their statement',
    {
      file: 'verifier-redis',
      also: { verifier: { trust: { breakGlassKeys: { 'offline.jwk.json': 'x' } } } },
    },
    ['verifier.trust.breakGlassConfigMap and break-glass keys'],
  ],
  [
    'a break-glass key with the name of another',
    {
      file: 'verifier-redis',
      also: {
        verifier: {
          trust: { breakGlassKeys: { 'freshness-1.jwk.json': 'x' }, breakGlassConfigMap: 'statement' },
        },
      },
    },
    ['verifier.trust.breakGlassKeys has the name freshness-1.jwk.json'],
  ],
  [
    'no source of bundles',
    { file: 'verifier-redis', also: { verifier: { source: { control: { url: '' } } } } },
    ['verifier.source is required'],
  ],
  [
    'no token for Control',
    { file: 'verifier-redis', also: { verifier: { source: { control: { tokenSecret: { name: '' } } } } } },
    ['verifier.source.control.tokenSecret.name is required'],
  ],
  [
    'a token in the clear',
    { file: 'verifier-redis', also: { verifier: { source: { control: { url: 'http://control' } } } } },
    ["the target's token in the clear"],
  ],
  [
    "a token in the clear to this release's own Control",
    { file: 'everything', also: { control: { tls: { mode: 'none' } } } },
    ["the target's token in the clear"],
  ],
  [
    'two places of Redis',
    { file: 'verifier-redis', also: { redis: { urlSecret: { name: 'x' } } } },
    ['redis.url and redis.urlSecret'],
  ],
  [
    'a password in the URL, beside one in a Secret',
    {
      file: 'verifier-redis',
      also: { redis: { url: 'redis://u:p@redis', passwordSecret: { name: 'password' } } },
    },
    ['redis.url holds a user or password'],
  ],
  [
    'a password in the URL',
    { file: 'verifier-redis', also: { redis: { url: 'redis://u:p@redis' } } },
    ['redis.url holds a user or password'],
  ],
  [
    'a password in the query of the URL',
    { file: 'verifier-redis', also: { redis: { url: 'redis://redis?password=p' } } },
    ['redis.url has a query or a fragment'],
  ],
  [
    'two CAs',
    { file: 'verifier-redis', also: { redis: { ca: { configMap: 'x' } } } },
    ['redis.ca names a ConfigMap and a Secret'],
  ],
  [
    'records of a memory that is not used',
    { file: 'verifier-redis', also: { verifier: { settings: { maxReplayRecords: 5000 } } } },
    ['verifier.settings.maxReplayRecords'],
  ],
  [
    'TLS without a decision',
    { file: 'verifier-redis', also: { verifier: { tls: { mode: '' } } } },
    ['verifier.tls.mode is required'],
  ],
  [
    'TLS without its Secret',
    { file: 'verifier-redis', also: { verifier: { tls: { mode: 'secret' } } } },
    ['verifier.tls.secretName is required'],
  ],
  [
    'a certificate without a name',
    { file: 'verifier-redis', also: { verifier: { tls: { issuerRef: { name: '' } } } } },
    ['verifier.tls.issuerRef.name is required'],
  ],
  [
    'names of gateways without their CA',
    { file: 'verifier-redis', also: { verifier: { tls: { clientCa: { configMap: '' } } } } },
    ['verifier.tls.clientSans needs verifier.tls.clientCa'],
  ],
  [
    "gateways' CA without TLS",
    { file: 'verifier-redis', also: { verifier: { tls: { mode: 'none' } } } },
    ['verifier.tls.clientCa without TLS'],
  ],
  [
    'TLS on a socket',
    { file: 'sidecar', also: { verifier: { tls: { mode: 'secret' } } } },
    ['verifier.tls is for mode deployment'],
  ],
  [
    'a state directory of several',
    { file: 'verifier-redis', also: { verifier: { persistence: { enabled: true } } } },
    ['one verifier at a time'],
  ],
  [
    'a state directory of an autoscaler',
    { file: 'verifier-autoscaling', also: { verifier: { persistence: { enabled: true } } } },
    ['one verifier at a time'],
  ],
  [
    'a state directory of sidecars',
    { file: 'sidecar', also: { verifier: { persistence: { enabled: true } } } },
    ['one verifier at a time'],
  ],
  [
    'a state directory with a surge',
    {
      file: 'verifier-openshift',
      also: { verifier: { persistence: { enabled: true }, strategy: { type: 'RollingUpdate' } } },
    },
    ['one verifier at a time', 'use type Recreate'],
  ],
  [
    'fewest above most',
    { file: 'verifier-autoscaling', also: { verifier: { autoscaling: { minReplicas: 20 } } } },
    ['minReplicas is more than maxReplicas'],
  ],
  [
    'workers that record through another process',
    { file: 'verifier-audited', also: { verifier: { settings: { auditFile: '-' } } } },
    ['needs auditFile'],
  ],
];

const http = (also: object) => ({ verifier: { http: also } });
const NO_CA = { clientCa: { secret: '' }, clientSans: [] };

const HTTP: readonly Refusal[] = [
  [
    'no name of the proxy',
    { file: 'verifier-http-nginx', also: http({ profile: '' }) },
    ['verifier.http.profile is required'],
  ],
  [
    'no origin',
    { file: 'verifier-redis', also: http({ enabled: true, profile: 'caddy' }) },
    ['verifier.settings.externalOrigin is required'],
  ],
  [
    'bodies that nginx does not send',
    { file: 'verifier-http-nginx', also: http({ body: 'forwarded' }) },
    ['verifier.http.body is forwarded', 'removed or unknown'],
  ],
  [
    'bodies that Traefik does not remove',
    { file: 'verifier-http-traefik', also: http({ body: 'removed' }) },
    ['verifier.http.body is removed', 'forwarded or unknown'],
  ],
  [
    'no secret of nginx',
    { file: 'verifier-http-nginx', also: http({ secret: { name: '' } }) },
    ['verifier.http.secret.name is required'],
  ],
  [
    'a secret of another proxy',
    { file: 'verifier-http-traefik', also: http({ secret: { name: 'x' } }) },
    ['verifier.http.secret is for profile nginx, not traefik'],
  ],
  [
    'a port that every pod can ask',
    { file: 'verifier-http-nginx', also: http({ trustedProxies: [], tls: NO_CA }) },
    ['verifier.http needs tls.clientCa or trustedProxies'],
  ],
  [
    'TLS without a decision',
    { file: 'verifier-http-nginx', also: http({ tls: { mode: '' } }) },
    ['verifier.http.tls.mode is required'],
  ],
  [
    "proxies' CA without TLS",
    { file: 'verifier-http-nginx', also: http({ tls: { mode: 'none' } }) },
    ['verifier.http.tls.clientCa without TLS'],
  ],
  [
    'TLS on a socket',
    { file: 'sidecar-http', also: http({ tls: { mode: 'secret' } }) },
    ['verifier.http.tls is for mode deployment'],
  ],
  [
    'networks on a socket',
    { file: 'sidecar-http', also: http({ trustedProxies: ['10.0.0.0/8'] }) },
    ['verifier.http.trustedProxies is for mode deployment'],
  ],
  [
    'two listeners on one port of loopback',
    { file: 'sidecar-http-loopback', also: { verifier: { sidecar: { loopback: { port: 9195 } } } } },
    ['verifier.sidecar.loopback.port is 9195'],
  ],
  [
    'two ports of one number',
    { file: 'verifier-http-nginx', also: http({ port: 9191 }) },
    ['verifier.http.port is 9191'],
  ],
];

const proxy = (also: object) => ({ proxy: also });

const PROXY: readonly Refusal[] = [
  [
    'several without Redis',
    { file: 'proxy-memory', also: proxy({ replicas: 2 }) },
    ['proxy.replicas is 2', REPLAYED],
  ],
  [
    'one beside a verifier without Redis',
    {
      file: 'proxy-beside',
      also: {
        redis: { url: '', ca: { secret: '' } },
        proxy: { persistence: { enabled: true } },
        verifier: { persistence: { enabled: true } },
      },
    },
    ['proxy and verifier are both enabled without Redis', REPLAYED],
  ],
  [
    'a state directory of several',
    { file: 'proxy', also: proxy({ persistence: { enabled: true } }) },
    ['proxy.persistence is enabled', 'one verifier at a time'],
  ],
  ['no site', { file: 'proxy', also: proxy({ authSite: '' }) }, ['proxy.authSite is required']],
  ['no API', { file: 'proxy', also: proxy({ upstream: { url: '' } }) }, ['proxy.upstream.url is required']],
  [
    'a certificate for an API without TLS',
    { file: 'proxy', also: proxy({ upstream: { url: 'http://orders.shop.svc' } }) },
    ['proxy.upstream.ca', 'https URL'],
  ],
  [
    'TLS without a decision',
    { file: 'proxy', also: proxy({ tls: { mode: '' } }) },
    ['proxy.tls.mode is required'],
  ],
  [
    "clients' CA without TLS",
    { file: 'proxy', also: proxy({ tls: { mode: 'none' } }) },
    ['proxy.tls.clientCa without TLS'],
  ],
  [
    'a public issuer without a public name',
    { file: 'proxy', also: proxy({ tls: { publicIssuer: true, extraDnsNames: [] } }) },
    ['proxy.tls.extraDnsNames is required'],
  ],
  [
    'no origin where TLS ends before it',
    { file: 'proxy-beside', also: proxy({ tls: { mode: 'none' } }) },
    ['proxy.settings.externalOrigin is required'],
  ],
  [
    'a load balancer in the clear',
    { file: 'proxy-memory', also: proxy({ service: { type: 'LoadBalancer' } }) },
    ['proxy.service.type is LoadBalancer without TLS'],
  ],
  [
    'a volume that bodies could overfill',
    { file: 'proxy', also: proxy({ settings: { maxSpool: 536870913 } }) },
    ['proxy.spool.sizeLimit is 512Mi', 'bodies may take 513 MiB'],
  ],
  [
    'the same with the default limits',
    { file: 'proxy-memory', also: proxy({ spool: { sizeLimit: '1023Mi' } }) },
    ['proxy.spool.sizeLimit is 1023Mi', 'bodies may take 1024 MiB'],
  ],
  [
    'a delay that the grace period does not cover',
    { file: 'proxy', also: proxy({ settings: { drainTimeout: '1m' } }) },
    ['proxy.terminationGracePeriodSeconds is 40', 'may take 70'],
  ],
];

const ENDING: readonly Refusal[] = [
  [
    'a delay that the grace period does not cover',
    { file: 'verifier-redis', also: { verifier: { settings: { drainDelay: '20s500ms' } } } },
    ['verifier.terminationGracePeriodSeconds is 40', 'drainDelay', 'may take 41'],
  ],
  [
    'the delay that a headless Service brings',
    {
      file: 'verifier-redis',
      also: { verifier: { service: { headless: true }, terminationGracePeriodSeconds: 24 } },
    },
    ['verifier.terminationGracePeriodSeconds is 24', 'drainDelay', 'may take 25'],
  ],
  [
    'a wait before the signal that it does not cover',
    { file: 'verifier-redis', also: { verifier: { preStopSeconds: 26 } } },
    ['verifier.terminationGracePeriodSeconds is 40', 'preStopSeconds', 'may take 41'],
  ],
  [
    'time for requests in flight that it does not cover',
    { file: 'control-sqlite', also: { control: { settings: { drainTimeout: '1m' } } } },
    ['control.terminationGracePeriodSeconds is 40', 'drainTimeout', 'may take 70'],
  ],
  [
    'a duration that is none',
    { file: 'verifier-redis', also: { verifier: { settings: { drainDelay: '5' } } } },
    ['verifier.settings.drainDelay is 5', 'duration with unit'],
  ],
  [
    'a duration that no clock has',
    { file: 'verifier-redis', also: { verifier: { settings: { drainDelay: '99999999999999999999h' } } } },
    ['verifier.settings.drainDelay is 99999999999999999999h', 'duration with unit'],
  ],
];

const CONTROL: readonly Refusal[] = [
  [
    'several on SQLite',
    { file: 'control-sqlite', also: { control: { replicas: 2 } } },
    ['control.replicas is 2 on SQLite', 'would not start'],
  ],
  [
    'an autoscaler on SQLite',
    { file: 'control-sqlite', also: { control: { autoscaling: { enabled: true } } } },
    ['control.autoscaling', 'on SQLite'],
  ],
  [
    'a rolling update on SQLite',
    { file: 'control-sqlite', also: { control: { strategy: { type: 'RollingUpdate' } } } },
    ['control.strategy', 'on SQLite'],
  ],
  [
    'a public issuer of a Secret',
    { file: 'control-acme', also: { control: { tls: { mode: 'secret', secretName: 'x' } } } },
    ['control.tls.publicIssuer is for control.tls.mode certManager'],
  ],
  [
    'a public issuer without a public name',
    { file: 'control-acme', also: { control: { tls: { extraDnsNames: [] } } } },
    ['control.tls.extraDnsNames is required'],
  ],
  [
    'a public issuer and a public URL that verifiers cannot follow',
    { file: 'control-acme', also: { control: { publicUrls: ['https://shop.example/control'] } } },
    ['verifier.source.control.url is required', 'has a path'],
  ],
  [
    'a URL of SQLite',
    { file: 'control-sqlite', also: { control: { database: { urlSecret: { name: 'x' } } } } },
    ['SQLite has no URL'],
  ],
  [
    'no URL of PostgreSQL',
    { file: 'control-postgresql', also: { control: { database: { urlSecret: { name: '' } } } } },
    ['control.database.urlSecret.name is required'],
  ],
  [
    'no master key for PostgreSQL',
    { file: 'control-postgresql', also: { control: { masterKey: { name: '' } } } },
    ['control.masterKey.name is required'],
  ],
  [
    'no public URL',
    { file: 'control-sqlite', also: { control: { publicUrls: [] } } },
    ['control.publicUrls is required'],
  ],
  [
    'TLS without a decision',
    { file: 'control-sqlite', also: { control: { tls: { mode: '' } } } },
    ['control.tls.mode is required'],
  ],
  [
    'an identity provider that knows no client',
    { file: 'control-operators', also: { control: { oidc: { clientId: '' } } } },
    ['control.oidc.clientId is required'],
  ],
  [
    'a client of no identity provider',
    { file: 'control-operators', also: { control: { oidc: { issuer: '' } } } },
    ['control.oidc.issuer is required'],
  ],
];

const REST: readonly Refusal[] = [
  [
    'an HTTPRoute of no Gateway',
    { file: 'control-exposed', also: { control: { httpRoute: { parentRefs: [] } } } },
    ['control.httpRoute.parentRefs is required'],
  ],
  [
    'an Ingress for a host that no public URL has',
    { file: 'control-exposed', also: { control: { ingress: { hosts: ['api.shop.example'] } } } },
    ['control.ingress.hosts has api.shop.example', 'control.publicUrls'],
  ],
  [
    'an Ingress for an address',
    {
      file: 'control-exposed',
      also: { control: { publicUrls: ['https://10.0.0.1'], ingress: { hosts: [] } } },
    },
    ['control.ingress serves 10.0.0.1', 'DNS name'],
  ],
  [
    'an HTTPRoute for a URL with a path',
    { file: 'control-behind-proxy', also: { control: { httpRoute: ROUTE } } },
    ['control.httpRoute serves control.shop.example', 'has a path'],
  ],
  [
    'scraping without an allowed scraper',
    { file: 'verifier-redis', also: { monitoring: { serviceMonitor: { enabled: true } } } },
    ['verifier.networkPolicy allows no scraper'],
  ],
  [
    'the same of a proxy',
    { file: 'proxy', also: { proxy: { networkPolicy: { metricsFrom: [] } } } },
    ['proxy.networkPolicy allows no scraper'],
  ],
  [
    'the same of Control',
    { file: 'control-sqlite', also: { monitoring: { serviceMonitor: { enabled: true } } } },
    ['control.networkPolicy allows no scraper'],
  ],
  [
    'a PodMonitor for what has a Service',
    {
      file: 'verifier-redis',
      also: { monitoring: { podMonitor: { enabled: true, podLabels: { a: 'b' } } } },
    },
    ['monitoring.podMonitor is for verifier.mode sidecar'],
  ],
  [
    'a PodMonitor for every pod',
    { file: 'sidecar-istio', also: { monitoring: { podMonitor: { enabled: true } } } },
    ['monitoring.podMonitor.podLabels is required'],
  ],
];

const TEST: readonly Refusal[] = [
  [
    'no policy',
    { file: 'everything', also: { test: { policy: '' } } },
    ['test.url, test.policy and test.audience are required'],
  ],
  [
    'no Control',
    { file: 'test-elsewhere', also: { test: { controlUrl: '' } } },
    ['test.controlUrl is required'],
  ],
];

const SENTENCE = /execution error at \(proofgate\/templates\/checks\.yaml:\d+:\d+\): ([^\n]+\.)\n/;

describeChart('refuses', () => {
  it.each([
    ...WITHOUT_REDIS.map(named('without Redis: ')),
    ...VERIFIER,
    ...HTTP.map(named('over HTTP: ')),
    ...PROXY.map(named('proxy: ')),
    ...ENDING.map(named('a pod ends: ')),
    ...CONTROL.map(named('Control: ')),
    ...REST,
    ...TEST.map(named('helm test: ')),
  ])('%s', (_name, values, words) => {
    // The values render without the change, so the change causes the error.
    expect(render({ ...(values.file === undefined ? {} : { file: values.file }) })).not.toEqual([]);
    const [, sentence = ''] = SENTENCE.exec(refusalOf(values) ?? '') ?? [];
    for (const word of words) expect(sentence).toContain(word);
    expect(sentence.slice(0, -1)).not.toMatch(/\. /);
  });
});

function named(prefix: string): (refusal: Refusal) => Refusal {
  return ([name, values, words]) => [`${prefix}${name}`, values, words];
}

describeChart('the schema of the values refuses', () => {
  it.each<readonly [string, object, string]>([
    ['an unknown key', { verifer: {} }, "'verifer' not allowed"],
    ['one below', { verifier: { replica: 2 } }, "'replica' not allowed"],
    ['one in a list', { imagePullSecrets: [{ nam: 'x' }] }, "'nam' not allowed"],
    [
      'a flag that there is not',
      { verifier: { settings: { holderQuotas: 1 } } },
      "'holderQuotas' not allowed",
    ],
    ['a flag that the chart gives', { verifier: { settings: { listen: 'x' } } }, "'listen' not allowed"],
    ['a number as text', { control: { settings: { addressRate: '20' } } }, 'got string, want integer'],
    ['a token for less than ten minutes', { test: { tokenExpirationSeconds: 599 } }, 'minimum'],
    [
      'root',
      { verifier: { podSecurityContext: { runAsUser: 0 } } },
      '/verifier/podSecurityContext/runAsUser',
    ],
    [
      'every network',
      { verifier: { http: { trustedProxies: ['0.0.0.0/0'] } } },
      '/verifier/http/trustedProxies',
    ],
    ['a path of the API', { proxy: { upstream: { url: 'http://orders/v1' } } }, '/proxy/upstream/url'],
    ['a password of the API', { proxy: { upstream: { url: 'http://u:p@orders' } } }, '/proxy/upstream/url'],
    ['another kind of database', { control: { database: { kind: 'mysql' } } }, '/control/database/kind'],
  ])('%s', (_name, also, words) => {
    expect(refusalOf({ also })).toContain(words);
  });
});
