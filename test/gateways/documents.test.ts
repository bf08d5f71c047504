/** docs/gateways.md: its manifests are ones that gateways take, and its tables name what is there. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { codesIn, readText, sectionOf, tableNamed } from '../docs/markdown.ts';
import { describeChart, objectOf, objectsIn, podsOf, render, renderText } from '../helm/chart.ts';
import { misfitsIn } from '../helm/kubeconform.ts';

const document = readText('docs/gateways.md');
const blocks = [...document.matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map(([, text = '']) => parse(text));

it('names reasons that the verifier has', () => {
  const rows = tableNamed(document, 'missing-settings');
  const reasons = rows
    .flatMap(([, answer = '']) => codesIn(answer))
    .filter((code) => /^[a-z]+(?:_[a-z]+)+$/.test(code));
  expect(reasons.length).toBeGreaterThan(5);
  const known = readText('src/protocol/reasons.ts');
  expect(reasons.filter((code) => !new RegExp(`\\b${code}\\b`).test(known))).toEqual([]);
});

it('names files that are there, and all of them', () => {
  const rows = tableNamed(document, 'manifests');
  const named = rows.flatMap((cells) => cells.flatMap(codesIn)).filter((code) => code.endsWith('.yaml'));
  expect(named.length).toBeGreaterThan(8);
  for (const file of named) expect(readText(`envoy/${file}`)).toMatch(/^(?:---\n)?# /);
});

it('names the versions that the manifests were translated by', () => {
  const [, envoyGateway = ''] =
    /^ENVOY_GATEWAY=v(\S+)$/m.exec(readText('scripts/install-gateway-translators.sh')) ?? [];
  const [, istio = ''] =
    /IstioVersion: "(\d+\.\d+)\.\d+"/.exec(readText('test/gateways/istio/translate_test.go')) ?? [];
  const versionsIn = (text: string, gateway: string) =>
    [...text.matchAll(new RegExp(`\\b${gateway} (\\d+\\.\\d+(?:\\.\\d+)?)`, 'g'))].map(
      ([, version]) => version,
    );
  const tested = sectionOf(document, 'What is tested');
  expect([versionsIn(tested, 'Envoy Gateway'), versionsIn(tested, 'Istio')]).toEqual([
    [envoyGateway],
    [istio],
  ]);
  expect(versionsIn(readText('envoy/istio/mesh-config.yaml'), 'Istio')).toEqual([istio]);
});

describe('from kubernetes.md to another gateway', () => {
  const section = sectionOf(document, 'From kubernetes.md to one of these');
  const textOf = (file: string) => readText(`envoy/${file}`);

  it('makes the Secrets that the manifests name', () => {
    const made = [...section.matchAll(/kubectl -n (\S+) create secret \S+ (\S+) /g)];
    const [istio, gateway] = ['istio-ingress', 'gateway'].map((namespace) =>
      made.filter(([, at]) => at === namespace).map(([, , name]) => name),
    );
    const named = (file: string) =>
      [
        ...textOf(file).matchAll(
          /credentialName: ([\w-]+)|(?:kind: Secret, |certificateRefs: \[\{ )name: ([\w-]+)/g,
        ),
      ].map(([, one, other]) => one ?? other);
    const istioNames = ['istio/verifier-mtls.yaml', 'istio/route.yaml'].flatMap(named);
    const gatewayNames = ['envoy-gateway/verifier-mtls.yaml', 'envoy-gateway/gateway.yaml'].flatMap(named);
    expect(istio?.toSorted()).toEqual(istioNames.toSorted());
    expect(gateway?.toSorted()).toEqual(gatewayNames.toSorted());
  });

  it('lets the gateways in where kubernetes.md lets its Envoy in', () => {
    const policy = blocks.find(({ kind }) => kind === 'NetworkPolicy');
    const page = readText('docs/kubernetes.md');
    const [own] = [...page.matchAll(/^```yaml\n([\s\S]*?)^```/gm)]
      .flatMap(([, text = '']) => parseAllDocuments(text).map((each) => each.toJS()))
      .filter(({ kind }) => kind === 'NetworkPolicy');
    const { ingress: _theirs, ...selected } = policy.spec;
    const { ingress: _ours, ...before } = own.spec;
    expect([policy.metadata, selected]).toEqual([own.metadata, before]);
    const [{ from }] = policy.spec.ingress;
    const labels = parseAllDocuments(textOf('istio/gateway.yaml')).map((each) => each.toJS());
    expect(from[0].podSelector).toEqual(labels[0].spec.selector);
  });

  it('names what it exchanges', () => {
    expect(textOf('istio/route.yaml')).toMatch(/orders\.shop\.svc/);
    const page = readText('docs/kubernetes.md');
    for (const text of [
      'spiffe://shop.example/gateway',
      '"http://api.gateway.svc/v1/orders/7"',
      'epr_7f3c9a',
      '/etc/proofgate/control-ca',
      '--from-file=tls.crt=envoy.crt',
    ])
      expect([text, page.includes(text), section.replaceAll('\\"', '"').includes(text)]).toEqual([
        text,
        true,
        true,
      ]);
  });
});

describeChart("the chart's sidecar in Envoy Gateway's pods", () => {
  const [own] = parseAllDocuments(readText('envoy/envoy-gateway/gateway.yaml'))
    .map((each) => each.toJS())
    .filter(({ kind }) => kind === 'EnvoyProxy');

  /** What the documented lines make of what the chart renders; the cluster's session has a real API server take it. */
  function patchOf(podYaml: string): { readonly spec: object } {
    const [, lines = ''] = /^```sh\n(\{\n[\s\S]*?> ?envoy-proxy-patch\.yaml\n)/m.exec(document) ?? [];
    const kubectl = `kubectl() { case "$*" in *' get configmap proofgate-verifier-sidecar '*) printf '%s' "$POD";; *) false;; esac; }`;
    const folder = mkdtempSync(join(tmpdir(), 'pg-envoy-proxy-'));
    try {
      const env = { ...process.env, POD: podYaml };
      execFileSync('bash', ['-euc', `${kubectl}\n${lines}`], { cwd: folder, env });
      return parse(readFileSync(join(folder, 'envoy-proxy-patch.yaml'), 'utf8'));
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  it('is what EnvoyProxy takes, with the socket where the gateway looks for it', () => {
    const map = objectsIn(renderText({ file: 'sidecar' })).find(({ metadata }) =>
      metadata.name.endsWith('-sidecar'),
    );
    const podYaml = map?.data?.['pod.yaml'] ?? '';
    const merged = { ...own, spec: { ...own.spec, ...patchOf(podYaml).spec } };
    expect([misfitsIn(stringify(own)), misfitsIn(stringify(merged))]).toEqual(['', '']);
    expect(merged.spec.filterOrder.length).toBeGreaterThan(5);
    const { template } = merged.spec.provider.kubernetes.envoyDeployment.patch.value.spec;
    const {
      metadata,
      spec: { containers, ...pod },
    } = template;
    expect({ metadata, spec: pod }).toEqual(parse(podYaml));
    const [envoy] = containers;
    const [sidecar] = pod.initContainers;
    const socket = sidecar.volumeMounts.find(
      ({ name }: { name: string }) => name === envoy.volumeMounts[0].name,
    );
    const [, backend] =
      /unix: \{ path: (\S+)\/verifier\.sock \}/.exec(readText('envoy/envoy-gateway/verifier-socket.yaml')) ??
      [];
    expect([socket.mountPath, envoy.volumeMounts[0].mountPath]).toEqual([backend, backend]);
    expect(pod.volumes.map(({ name }: { name: string }) => name)).toContain(envoy.volumeMounts[0].name);
  });

  it('switches on what the manifests need', () => {
    const [{ config }] = blocks.filter((block) => block.config?.envoyGateway.extensionApis !== undefined);
    const api = config.envoyGateway.extensionApis;
    const needed = { Backend: 'enableBackend', EnvoyPatchPolicy: 'enableEnvoyPatchPolicy' };
    const texts = ['gateway', 'verifier-socket']
      .map((name) => readText(`envoy/envoy-gateway/${name}.yaml`))
      .join('\n');
    for (const [kind, flag] of Object.entries(needed)) {
      expect([kind, texts.includes(`kind: ${kind}\n`), api[flag]]).toEqual([kind, true, true]);
    }
  });
});

describeChart("the chart's sidecar on loopback", () => {
  it("listens where Istio's ServiceEntry looks for it", () => {
    const [entry] = parseAllDocuments(readText('envoy/istio/verifier-loopback.yaml'))
      .map((each) => each.toJS())
      .filter(({ kind }) => kind === 'ServiceEntry');
    const [{ address }] = entry.spec.endpoints;
    const [{ number }] = entry.spec.ports;
    const [pod] = podsOf(render({ file: 'sidecar-loopback' }));
    const [sidecar] = pod?.spec.initContainers ?? [];
    expect(sidecar?.args).toContain(`--listen=${address}:${number}`);
    // As istio-proxy: what it connects to is not sent through a proxy that starts after it.
    expect(sidecar?.securityContext).toMatchObject({ runAsUser: 1337, runAsGroup: 1337 });
  });
});

describeChart('a gateway in another namespace than the verifier', () => {
  const [{ verifier = {} } = {}] = blocks.filter((block) => block.verifier !== undefined);
  const peersOf = (also: object) =>
    objectOf(render({ file: 'verifier-redis', also }), 'NetworkPolicy', 'rel-proofgate-verifier').spec
      .ingress;

  it.each([
    ['docs/gateways.md', verifier, 'envoy-gateway-system'],
    ...(['istio', 'envoy-gateway'] as const).map((gateway) => {
      const file = `envoy/${gateway}/verifier-mtls.yaml`;
      const [, line = ''] = /^# {3}(verifier: .*)$/m.exec(readText(file)) ?? [];
      const namespace = { istio: 'istio-ingress', 'envoy-gateway': 'envoy-gateway-system' }[gateway];
      return [file, parse(line)?.verifier, namespace] as const;
    }),
  ])('may ask with the values of %s', (_file, values, namespace) => {
    const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': namespace } };
    expect(peersOf({})).not.toMatchObject([{ from: [{ namespaceSelector }] }]);
    expect(peersOf({ verifier: values })).toMatchObject([
      { from: [{ namespaceSelector }], ports: [{ port: 9191 }] },
    ]);
  });
});
