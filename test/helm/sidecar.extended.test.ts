/**
 * Tests the sidecar that the chart gives to other pods: as a patch, through Istio's injection, and in charts that depend on
 * it.
 */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { parse, stringify } from 'yaml';
import {
  type Container,
  describeChart,
  notesOf,
  objectOf,
  type PodSpec,
  podsOf,
  refusalOf,
  render,
} from '../support/chart/chart.ts';
import { KUBERNETES, misfits } from '../support/chart/kubeconform.ts';
import { makeParentChart, type ParentChart } from './parent-chart.ts';

describeChart('the sidecar', () => {
  const values = { file: 'sidecar' };
  const template = (file: string, name: string) => objectOf(render({ file }), 'ConfigMap', name).data ?? {};

  it('comes as a patch and for istiod, the same but for the probe of its start', () => {
    const { 'istiod-values.yaml': istiod = '', 'pod.yaml': patch = '' } = template(
      'sidecar-istio',
      'pg-verifier-sidecar',
    );
    const { templates } = parse(istiod).sidecarInjectorWebhook;
    expect(Object.keys(templates)).toEqual(['verified']);
    const { containers, ...spec } = parse(templates.verified).spec;
    const own = parse(patch);
    // Istio routes HTTP probes through a container that may start later: test/gateways/injection.extended.test.ts.
    const [{ startupProbe }] = spec.initContainers;
    expect(startupProbe.httpGet).toBeUndefined();
    own.spec.initContainers[0].startupProbe = startupProbe;
    expect({ ...parse(templates.verified), spec }).toEqual(own);
    expect(patch).not.toContain('{{');
  });

  it('is text to Istio, whatever a value holds: its templates are programs', () => {
    const also = { verifier: { extraEnv: [{ name: 'NOTE', value: 'a {{ .Spec }} b' }] } };
    const { data } = objectOf(render({ file: 'sidecar-istio', also }), 'ConfigMap', 'pg-verifier-sidecar');
    const { templates } = parse(data?.['istiod-values.yaml'] ?? '').sidecarInjectorWebhook;
    expect(templates.verified).toContain('value: a {{ `{{` }} .Spec }} b');
    expect(templates.verified.replaceAll('{{ `{{` }}', '')).not.toContain('{{');
  });

  it.each(['sidecar', 'gateway'])('takes the place of no template of Istio’s: %s', (istioTemplate) => {
    expect(
      refusalOf({ file: 'sidecar-istio', also: { verifier: { sidecar: { istioTemplate } } } }),
    ).toContain('/verifier/sidecar/istioTemplate');
  });

  it('gives istio-proxy the socket, of which its injection knows nothing', () => {
    const { 'istiod-values.yaml': istiod = '' } = template('sidecar-istio', 'pg-verifier-sidecar');
    const { containers, initContainers } = parse(
      parse(istiod).sidecarInjectorWebhook.templates.verified,
    ).spec;
    const [socket] = initContainers[0].volumeMounts.filter(
      ({ name }: { readonly name: string }) => name === 'proofgate-socket',
    );
    // Any other member of a container would override the gateway's template.
    expect(containers).toEqual([{ name: 'istio-proxy', volumeMounts: [socket] }]);
  });

  it('starts before the gateway and ends after it, as the gateway’s user, on a socket in a volume that both mount', () => {
    const { 'pod.yaml': patch = '' } = template('sidecar-istio', 'pg-verifier-sidecar');
    const { initContainers, volumes } = parse(patch).spec;
    expect(initContainers).toMatchObject([
      { restartPolicy: 'Always', securityContext: { runAsUser: 1337, runAsGroup: 1337 } },
    ]);
    expect(initContainers[0].args).toContain('--listen=unix:/run/proofgate/verifier.sock');
    expect(volumes).toContainEqual({
      name: 'proofgate-socket',
      emptyDir: { medium: 'Memory', sizeLimit: '1Mi' },
    });
  });

  it('reads its secrets whatever the group of the pod that it goes into', () => {
    const { 'pod.yaml': patch = '' } = template('sidecar-istio', 'pg-verifier-sidecar');
    const modes = (
      parse(patch).spec.volumes as { readonly secret?: { readonly defaultMode?: number } }[]
    ).flatMap(({ secret }) => secret?.defaultMode ?? []);
    expect(modes).toEqual([0o444, 0o444]);
  });

  it('leaves no pod of the release’s own', () => {
    expect(render(values).map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
      'ConfigMap rel-proofgate-verifier-sidecar',
      'ConfigMap rel-proofgate-verifier-trust',
      'PodMonitor rel-proofgate-verifier',
    ]);
    expect(notesOf(values)).toContain('unix:/run/proofgate/verifier.sock');
    expect(notesOf(values)).toContain('inject.istio.io/templates: proofgate,gateway');
    // No NetworkPolicy covers this port, so the notes mention it.
    expect(notesOf(values)).toContain('9192');
  });
});

describeChart('the sidecar on loopback', () => {
  const file = 'sidecar-loopback';
  const sidecarWith = (loopback: object) => {
    const [pod] = podsOf(render({ file, also: { verifier: { sidecar: { loopback } } } }));
    return pod?.spec.initContainers?.[0]?.args ?? [];
  };

  it('listens there alone, without a volume that the gateway would mount', () => {
    const [pod] = podsOf(render({ file }));
    const listens = pod?.spec.initContainers?.[0]?.args.filter((arg) => arg.startsWith('--listen='));
    expect(listens).toEqual(['--listen=127.0.0.1:9191']);
    expect(JSON.stringify(render({ file }))).not.toMatch(/proofgate-socket|istio-proxy"/);
    expect(sidecarWith({ host: '::1', port: 9291 })).toContain('--listen=[::1]:9291');
  });

  it.each([
    ['an address that others reach', { host: '0.0.0.0' }],
    ['a name', { host: 'localhost' }],
    ['the port of the admin listener', { port: 9192 }],
    ['a port that is taken away', { port: null }],
  ])('is nowhere else: %s', (_name, loopback) => {
    expect(refusalOf({ file, also: { verifier: { sidecar: { loopback } } } })).toContain(
      "values don't meet the specifications of the schema",
    );
  });

  it('is what the notes say', () => {
    expect(notesOf({ file })).toContain('127.0.0.1:9191');
    expect(notesOf({ file })).not.toContain('verifier.sock');
  });
});

describeChart('a chart that depends on this one', () => {
  const FILES = ['sidecar', 'sidecar-istio', 'sidecar-loopback'];
  let parent: ParentChart;
  beforeAll(() => {
    parent = makeParentChart();
  });
  afterAll(() => parent?.remove());
  const podOf = (file: string): PodSpec =>
    objectOf(parent.render(file), 'Deployment', 'rel-gateway').spec.template.spec;

  it.each(FILES)('has the sidecar that the patch has: %s', (file) => {
    const [patch] = podsOf(render({ file }));
    const { initContainers, volumes } = podOf(file);
    expect({ initContainers, volumes }).toEqual({
      initContainers: patch?.spec.initContainers,
      volumes: patch?.spec.volumes,
    });
  });

  it('renders what every Kubernetes takes', () => {
    const objects = FILES.flatMap((file) => parent.render(file));
    const text = objects.map((object) => stringify(object)).join('---\n');
    const faults = KUBERNETES.map((version) => [version, misfits(version, ['-'], text)]);
    expect(faults.filter(([, fault]) => fault !== '')).toEqual([]);
  });

  it("brings what the sidecar mounts, and the gateway's container the socket", () => {
    const { containers, initContainers, volumes } = podOf('sidecar');
    const [trust] = volumes.filter(({ name }) => name === 'proofgate-trust');
    const { name = '' } = (trust?.configMap ?? {}) as { readonly name?: string };
    const keys = objectOf(parent.render('sidecar'), 'ConfigMap', name).data;
    expect(keys).toHaveProperty(['bundle-1.jwk.json']);
    const [sidecar, envoy] = [initContainers?.[0], containers[0]];
    const socketOf = (container: Container | undefined) =>
      container?.volumeMounts.find((mount) => mount.name === 'proofgate-socket')?.mountPath;
    expect([socketOf(sidecar), socketOf(envoy)]).toEqual(['/run/proofgate', '/run/proofgate']);
    expect(envoy?.securityContext).toMatchObject({ runAsUser: 65532 });
    expect(sidecar?.securityContext).toMatchObject({ runAsUser: 65532 });
  });

  it('is refused what the chart itself refuses', () => {
    const withoutRedis = { redis: { urlSecret: { name: '' } } };
    expect(() => parent.render('sidecar', withoutRedis)).toThrow('verifier.mode is sidecar without Redis');
    const unknown = { verifier: { sidecars: {} } };
    expect(() => parent.render('sidecar', unknown)).toThrow('additional properties');
  });
});
