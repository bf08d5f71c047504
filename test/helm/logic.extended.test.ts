/** Tests the logic of the chart's templates. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import {
  CHART,
  containersOf,
  describeChart,
  HELM,
  lintFindings,
  NEWEST_KUBERNETES,
  notesOf,
  objectOf,
  objectsIn,
  podsOf,
  type Rendered,
  refusalOf,
  render,
  type Values,
} from '../support/chart/chart.ts';

const kindsOf = (values: Values) => render(values).map(({ kind, metadata }) => `${kind} ${metadata.name}`);
const verifierOf = (values: Values) => objectOf(render(values), 'Deployment', 'rel-proofgate-verifier');
const controlOf = (values: Values) => objectOf(render(values), 'Deployment', 'rel-proofgate-control');

function argsOf({ spec }: Rendered): readonly string[] {
  return spec.template.spec.containers[0]?.args ?? [];
}

describeChart('the chart', () => {
  it('refuses to make nothing in one line, and passes helm lint', () => {
    const said = refusalOf({}) ?? '';
    expect(said).toMatch(
      /^Error: .*set verifier\.enabled, proxy\.enabled, control\.enabled or broker\.enabled, .*values-quickstart\.yaml/,
    );
    expect(said.trim().split('\n\n')[0]).not.toContain('\n');
    expect(refusalOf({ also: { monitoring: { prometheusRule: { enabled: true } } } })).toBeDefined();
    expect(kindsOf({ also: { monitoring: { dashboard: { enabled: true } } } })).toHaveLength(1);
    expect(lintFindings({})).toBe('');
  });

  it('is off where a chart that depends on it leaves it so', () => {
    const parent = mkdtempSync(join(tmpdir(), 'proofgate-parent-'));
    try {
      writeFileSync(join(parent, 'Chart.yaml'), 'apiVersion: v2\nname: edge\nversion: 0.0.0\n');
      cpSync(CHART, join(parent, 'charts', 'proofgate'), { recursive: true });
      const args = ['template', parent, '--kube-version', NEWEST_KUBERNETES];
      const { status, stderr, stdout } = spawnSync(HELM, args, { encoding: 'utf8' });
      expect({ status, stderr, objects: objectsIn(stdout) }).toEqual({ status: 0, stderr: '', objects: [] });
    } finally {
      rmSync(parent, { recursive: true });
    }
  });

  it('leads clients outside to Control, each way for the hosts that it has', () => {
    const objects = render({ file: 'control-exposed' });
    const name = 'rel-proofgate-control';
    const backend = { service: { name, port: { name: 'api' } } };
    const host = 'control.shop.example';
    expect(objectOf(objects, 'Ingress', name).spec).toEqual({
      ingressClassName: 'nginx',
      rules: [{ host, http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }],
      tls: [{ secretName: 'control-public-tls', hosts: [host] }],
    });
    expect(objectOf(objects, 'HTTPRoute', name).spec).toEqual({
      parentRefs: [{ name: 'public', namespace: 'gateways', sectionName: 'https' }],
      hostnames: ['control.partners.example'],
      rules: [{ backendRefs: [{ name, port: 443 }], timeouts: { request: '60s' } }],
    });
    expect(notesOf({ file: 'control-exposed' })).toContain(`BackendTLSPolicy for Service ${name}`);
    const all = { control: { httpRoute: { hosts: [], requestTimeout: '' } } };
    expect(objectOf(render({ file: 'control-exposed', also: all }), 'HTTPRoute', name).spec).toMatchObject({
      hostnames: [host, 'control.partners.example', 'proofgate-control.gateway.svc'],
      rules: [{ backendRefs: [{ name, port: 443 }] }],
    });
    expect(kindsOf({ file: 'control-sqlite' }).filter((kind) => /Ingress|HTTPRoute/.test(kind))).toEqual([]);
  });

  it('has the values to begin with in its package', () => {
    const folder = mkdtempSync(join(tmpdir(), 'proofgate-package-'));
    try {
      expect(spawnSync(HELM, ['package', CHART, '--destination', folder]).status).toBe(0);
      const [archive = ''] = readdirSync(folder);
      const { stdout } = spawnSync('tar', ['-tzf', join(folder, archive)], { encoding: 'utf8' });
      expect(stdout.split('\n')).toEqual(
        expect.arrayContaining(['proofgate/values-quickstart.yaml', 'proofgate/values-production.yaml']),
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('makes what a verifier needs', () => {
    expect(kindsOf({ file: 'verifier-redis' }).toSorted()).toEqual([
      'Certificate rel-proofgate-verifier',
      'ConfigMap rel-proofgate-verifier-trust',
      'Deployment rel-proofgate-verifier',
      'NetworkPolicy rel-proofgate-verifier',
      'PodDisruptionBudget rel-proofgate-verifier',
      'Service rel-proofgate-verifier',
      'ServiceAccount rel-proofgate-verifier',
    ]);
  });

  it('makes what a proxy needs', () => {
    const ofProxy = kindsOf({ file: 'proxy' }).filter((name) => /-proxy(?:-|$)/.test(name));
    expect(ofProxy.toSorted()).toEqual([
      'Certificate rel-proofgate-proxy',
      'ConfigMap rel-proofgate-proxy-trust',
      'Deployment rel-proofgate-proxy',
      'NetworkPolicy rel-proofgate-proxy',
      'PodDisruptionBudget rel-proofgate-proxy',
      'Service rel-proofgate-proxy',
      'Service rel-proofgate-proxy-metrics',
      'ServiceAccount rel-proofgate-proxy',
      'ServiceMonitor rel-proofgate-proxy',
    ]);
    const objects = render({ file: 'proxy' });
    expect(objectOf(objects, 'Service', 'rel-proofgate-proxy').spec.ports).toEqual([
      { name: 'https', port: 443, targetPort: 'https', appProtocol: 'https' },
    ]);
    const { spec } = objectOf(objects, 'Deployment', 'rel-proofgate-proxy').spec.template;
    expect(spec.volumes).toContainEqual({ name: 'proofgate-spool', emptyDir: { sizeLimit: '512Mi' } });
    expect(kindsOf({ file: 'proxy-memory' })).toContain('PersistentVolumeClaim rel-proofgate-proxy');
    const alone = objectOf(render({ file: 'proxy-memory' }), 'Deployment', 'rel-proofgate-proxy').spec;
    expect(alone).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
  });

  it('makes what Control needs', () => {
    expect(kindsOf({ file: 'control-sqlite' }).toSorted()).toEqual([
      'Certificate rel-proofgate-control',
      'Deployment rel-proofgate-control',
      'NetworkPolicy rel-proofgate-control',
      'PersistentVolumeClaim rel-proofgate-control',
      'PodDisruptionBudget rel-proofgate-control',
      'Service rel-proofgate-control',
      'ServiceAccount rel-proofgate-control',
    ]);
    expect(kindsOf({ file: 'control-operators' })).not.toContain(
      'PersistentVolumeClaim rel-proofgate-control',
    );
  });

  it('lets a proxy ask over HTTP, with a certificate and a port of its own', () => {
    const objects = render({ file: 'verifier-http-traefik' });
    const { spec } = objectOf(objects, 'Certificate', 'rel-proofgate-verifier-http');
    expect(spec).toMatchObject({
      secretName: 'rel-proofgate-verifier-http-tls',
      issuerRef: { name: 'edge-ca', kind: 'ClusterIssuer' },
      dnsNames: expect.arrayContaining(['rel-proofgate-verifier.gateway.svc', 'check.shop.example']),
    });
    expect(objectOf(objects, 'Service', 'rel-proofgate-verifier').spec.ports).toMatchObject([
      { name: 'grpc', port: 9191, targetPort: 'grpc' },
      { name: 'http', port: 9195, targetPort: 'http', appProtocol: 'https' },
    ]);
    expect(objectOf(objects, 'NetworkPolicy', 'rel-proofgate-verifier').spec).toMatchObject({
      ingress: [{ from: [{ podSelector: {} }], ports: [{ port: 9191 }, { port: 9195 }] }],
    });
    expect(JSON.stringify(render({ file: 'verifier-redis' }))).not.toMatch(/9195|--http/);
  });

  it('leaves out what is somebody else’s', () => {
    const kinds = kindsOf({
      file: 'verifier-locked-down',
      also: { verifier: { podDisruptionBudget: { enabled: false } } },
    });
    expect(kinds.filter((name) => /ServiceAccount|PodDisruptionBudget|Certificate/.test(name))).toEqual([]);
    expect(verifierOf({ file: 'verifier-locked-down' }).spec.template.spec.serviceAccountName).toBe(
      'shop-verifier',
    );
  });

  it('keeps the claim of Control when the release goes, by default', () => {
    const keptBy = (values: Values) =>
      objectOf(render(values), 'PersistentVolumeClaim', 'rel-proofgate-control').metadata.annotations ?? {};
    expect(keptBy({ file: 'control-sqlite' })).toEqual({ 'helm.sh/resource-policy': 'keep' });
    expect(keptBy({ file: 'control-behind-proxy' })).toEqual({});
  });
});

describeChart('pods are replaced', () => {
  const surge = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } };

  it.each<readonly [string, Values, object]>([
    ['one more at a time with Redis', { file: 'verifier-redis' }, surge],
    [
      'as is said',
      { file: 'verifier-sentinel' },
      { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: 0 } },
    ],
    ['one after the other without', { file: 'verifier-memory' }, { type: 'Recreate' }],
    [
      'one after the other with a state directory of their own',
      { file: 'verifier-openshift', also: { verifier: { persistence: { enabled: true } } } },
      { type: 'Recreate' },
    ],
  ])('%s', (_name, values, strategy) => {
    expect(verifierOf(values).spec.strategy).toEqual(strategy);
  });

  it('one Control after the other on SQLite, one more at a time on PostgreSQL', () => {
    expect(controlOf({ file: 'control-sqlite' }).spec.strategy).toEqual({ type: 'Recreate' });
    expect(controlOf({ file: 'control-postgresql' }).spec.strategy).toEqual(surge);
  });

  it('when a key that they trust has changed', () => {
    const checksumWith = (key: string) =>
      verifierOf({
        file: 'verifier-redis',
        also: { verifier: { trust: { bundleKeys: { 'bundle-2.jwk.json': key } } } },
      }).spec.template.metadata.annotations?.['checksum/trust'];
    expect(checksumWith('a')).toMatch(/^[0-9a-f]{64}$/);
    expect(checksumWith('a')).toBe(checksumWith('a'));
    expect(checksumWith('a')).not.toBe(checksumWith('b'));
  });

  it('by the autoscaler’s number where there is one', () => {
    const values = { file: 'verifier-autoscaling' };
    expect(verifierOf(values).spec.replicas).toBeUndefined();
    expect(objectOf(render(values), 'HorizontalPodAutoscaler', 'rel-proofgate-verifier').spec).toMatchObject({
      scaleTargetRef: { kind: 'Deployment', name: 'rel-proofgate-verifier' },
      minReplicas: 3,
      maxReplicas: 12,
    });
  });

  it('after a wait, which a server older than 1.30 makes of a process', () => {
    const waitOn = (kubernetes: string) =>
      verifierOf({ file: 'verifier-redis', kubernetes }).spec.template.spec.containers[0]?.lifecycle;
    expect(waitOn('1.30.0')).toEqual({ preStop: { sleep: { seconds: 5 } } });
    expect(waitOn('1.29.0')).toEqual({
      preStop: { exec: { command: ['node', '-e', 'setTimeout(() => {}, 5000)'] } },
    });
    const without = { file: 'verifier-redis', also: { verifier: { preStopSeconds: 0 } } };
    expect(verifierOf(without).spec.template.spec.containers[0]).not.toHaveProperty('lifecycle');
  });
});

describeChart('addresses and secrets', () => {
  it('the URL of Redis comes from the Secret, not in an argument', () => {
    const verifier = verifierOf({ file: 'verifier-autoscaling' });
    expect(argsOf(verifier).filter((arg) => arg.startsWith('--replay'))).toEqual([]);
    expect(verifier.spec.template.spec.containers[0]?.env).toEqual([
      { name: 'PROOFGATE_REPLAY', valueFrom: { secretKeyRef: { name: 'proofgate-redis', key: 'replay' } } },
    ]);
  });

  it('a verifier follows the Control of its own release, and trusts the certificates that it got', () => {
    const args = argsOf(verifierOf({ file: 'everything' }));
    expect(args).toContain('--control-url=https://rel-proofgate-control.gateway.svc:443');
    expect(args).toContain('--control-ca-file=/etc/proofgate/control-ca/ca.crt');
    const elsewhere = { verifier: { source: { control: { url: 'https://other.example' } } } };
    const others = argsOf(verifierOf({ file: 'everything', also: elsewhere }));
    expect(others).toContain('--control-url=https://other.example');
    expect(others.filter((arg) => arg.startsWith('--control-ca-file'))).toEqual([]);
  });

  it('large numbers are digits', () => {
    expect(argsOf(verifierOf({ file: 'verifier-audited' }))).toContain('--audit-queue-bytes=134217728');
    expect(argsOf(controlOf({ file: 'control-operators' }))).toContain('--address-rate=1000000');
  });

  it('a list gives its flag again for each value', () => {
    const networks = argsOf(controlOf({ file: 'control-operators' })).filter((arg) =>
      arg.startsWith('--allow-issuer-network'),
    );
    expect(networks).toEqual(['--allow-issuer-network=10.0.0.0/8', '--allow-issuer-network=fd00::/8']);
  });

  it('a user and group that the cluster chooses are left to it', () => {
    expect(
      Object.keys(
        verifierOf({ file: 'verifier-openshift' }).spec.template.spec.securityContext ?? {},
      ).toSorted(),
    ).toEqual(['fsGroupChangePolicy', 'runAsNonRoot', 'seccompProfile']);
  });
});

describeChart('Control with a certificate of a public issuer', () => {
  const file = 'control-acme';

  it('asks for no names within the cluster', () => {
    const names = (values: Values) =>
      objectOf(render(values), 'Certificate', 'rel-proofgate-control').spec.dnsNames;
    expect(names({ file })).toEqual(['control.shop.example']);
    const internal = { control: { tls: { publicIssuer: false } } };
    expect(names({ file, also: internal })).toContain('rel-proofgate-control.gateway.svc');
  });

  it('is followed at its public URL, by the certificates of the system: its Secret has no others', () => {
    const pods = podsOf(render({ file })).filter(({ of }) => !of.endsWith('-control'));
    expect(pods.map(({ of }) => of)).toEqual(['Deployment rel-proofgate-verifier', 'Pod rel-proofgate-test']);
    for (const { spec } of pods) {
      const [program] = containersOf(spec);
      expect(program?.args).toContain('--control-url=https://control.shop.example:8443');
      expect(program?.args.filter((arg) => arg.startsWith('--control-ca-file'))).toEqual([]);
      expect(JSON.stringify(spec.volumes)).not.toContain('rel-proofgate-control-tls');
    }
    const { egress } = objectOf(render({ file }), 'NetworkPolicy', 'rel-proofgate-verifier').spec;
    expect(egress).toMatchObject([{}, { ports: [{ port: 6380 }] }, { ports: [{ port: 8443 }] }]);
  });
});

describeChart('monitoring', () => {
  const values = { file: 'everything' };

  it('scrapes a Service of its own, by the port that there is', () => {
    const objects = render(values);
    for (const component of ['verifier', 'control']) {
      const monitor = objectOf(objects, 'ServiceMonitor', `rel-proofgate-${component}`);
      const service = objectOf(objects, 'Service', `rel-proofgate-${component}-metrics`);
      expect(monitor.metadata.labels).toMatchObject({ release: 'prometheus' });
      const { selector } = monitor.spec as { readonly selector?: { readonly matchLabels?: object } };
      expect(service.metadata.labels).toMatchObject(selector?.matchLabels ?? { none: 'none' });
      expect(objectOf(objects, 'Service', `rel-proofgate-${component}`).metadata.labels).not.toMatchObject(
        selector?.matchLabels ?? {},
      );
      expect(service.spec.ports).toMatchObject([{ name: 'admin', targetPort: 'admin' }]);
      expect(monitor.spec.endpoints).toMatchObject([{ port: 'admin', path: '/metrics', interval: '15s' }]);
    }
  });

  it('scrapes a sidecar in the pods that are named, by a port that it has', () => {
    const objects = render({ file: 'sidecar' });
    const { spec, metadata } = objectOf(objects, 'PodMonitor', 'rel-proofgate-verifier');
    expect(metadata.labels).toMatchObject({ release: 'prometheus' });
    expect(spec).toMatchObject({
      selector: { matchLabels: { 'app.kubernetes.io/name': 'envoy' } },
      namespaceSelector: { matchNames: ['edge'] },
      podMetricsEndpoints: [{ path: '/metrics', interval: '30s' }],
    });
    const [{ port = '' } = {}] = spec.podMetricsEndpoints as readonly { readonly port?: string }[];
    const [pod] = podsOf(objects);
    const ports = (pod?.spec.initContainers ?? []).flatMap((container) => container.ports ?? []);
    expect(ports.map(({ name }) => name)).toContain(port);
  });

  it('has the figures of the values in its rules', () => {
    const { groups } = objectOf(render(values), 'PrometheusRule', 'rel-proofgate').spec as {
      readonly groups?: readonly {
        readonly rules: readonly { readonly alert: string; readonly expr: string }[];
      }[];
    };
    const rules = new Map(
      (groups ?? []).flatMap((group) => group.rules).map(({ alert, expr }) => [alert, expr]),
    );
    expect(rules.get('ProofgateDenialSurge')).toContain('> 0.05 * sum');
    expect(rules.get('ProofgateBundleAges')).toMatch(/> 30$/);
    expect(rules.get('ProofgateTargetUnacknowledged')).toMatch(/> 20$/);
    expect(rules.get('ProofgateCertificateExpires')).toMatch(/< 259200$/);
    expect(rules.get('ProofgateEventLoopLags')).toMatch(/> 0.25$/);
  });

  it('speaks of what is installed', () => {
    const monitoring = { prometheusRule: { enabled: true }, serviceMonitor: { enabled: true } };
    const on = { monitoring, control: { networkPolicy: { metricsFrom: [{ podSelector: {} }] } } };
    const { groups } = objectOf(
      render({ file: 'control-sqlite', also: on }),
      'PrometheusRule',
      'rel-proofgate',
    ).spec;
    expect(groups).toMatchObject([{ name: 'proofgate-control' }, { name: 'proofgate-agent' }]);
    expect(kindsOf({ file: 'control-sqlite', also: on })).not.toContain(
      'ServiceMonitor rel-proofgate-verifier',
    );
  });
});

describeChart('the notes warn', () => {
  const IMAGE = 'image.repository is proofgate';
  const OUTSIDE = 'verifier.networkPolicy.from';

  it('of an image that no registry has', () => {
    expect(notesOf({ file: 'verifier-redis' })).toContain(IMAGE);
    expect(notesOf({ file: 'verifier-locked-down' })).not.toContain(IMAGE);
  });

  it('of gateways in namespaces that the NetworkPolicy keeps out', () => {
    expect(notesOf({ file: 'verifier-redis' })).toContain(OUTSIDE);
    expect(notesOf({ file: 'verifier-locked-down' })).not.toContain(OUTSIDE);
    const off = { verifier: { networkPolicy: { enabled: false } } };
    expect(notesOf({ file: 'verifier-redis', also: off })).not.toContain(OUTSIDE);
  });
});

describeChart('the notes say what to do next', () => {
  it.each<readonly [string, readonly string[]]>([
    [
      'everything',
      ['helm test rel -n gateway', 'system:serviceaccount:gateway:rel-proofgate-test', 'bootstrap-token'],
    ],
    ['verifier-memory', ['single_verifier: true', 'any client that reaches the port can send Checks']],
    [
      'proxy',
      ['serves https at rel-proofgate-proxy.gateway.svc:443, in front of https://orders.shop.svc:8443'],
    ],
    ['proxy-memory', ['serves http at', 'there is one proxy', 'set test.enabled']],
    ['verifier-http-nginx', ['ask over HTTP at rel-proofgate-verifier.gateway.svc:8080']],
    ['sidecar-http', ['ask over HTTP at unix:/run/proofgate/http.sock']],
    ['control-postgresql', ['in your Secret control-bootstrap']],
    ['verifier-redis', ['rel-proofgate-verifier.gateway.svc:9191, with TLS', 'set test.enabled']],
  ])('%s', (file, words) => {
    const notes = notesOf({ file });
    for (const word of words) expect(notes).toContain(word);
    expect(notes).not.toMatch(/<no value>|%!/);
  });
});
