/** Checks the manifests and command lines of docs/operate/gateways.md against the rendered chart. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { describeChart, objectOf, objectsIn, podsOf, render, renderText } from '../support/chart/chart.ts';
import { misfitsIn } from '../support/chart/kubeconform.ts';
import { readText } from '../support/docs/markdown.ts';

const document = readText('docs/operate/gateways.md');
const blocks = [...document.matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map(([, text = '']) => parse(text));

describeChart("the chart's sidecar in Envoy Gateway's pods", () => {
  const [own] = parseAllDocuments(readText('envoy/envoy-gateway/gateway.yaml'))
    .map((each) => each.toJS())
    .filter(({ kind }) => kind === 'EnvoyProxy');

  /** Applies the documented commands to the rendered chart. The cluster's session submits the result to a real API server. */
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
    // Runs as istio-proxy's user: its connections do not go through a proxy that starts after it.
    expect(sidecar?.securityContext).toMatchObject({ runAsUser: 1337, runAsGroup: 1337 });
  });
});

describeChart('a gateway in another namespace than the verifier', () => {
  const [{ verifier = {} } = {}] = blocks.filter((block) => block.verifier !== undefined);
  const peersOf = (also: object) =>
    objectOf(render({ file: 'verifier-redis', also }), 'NetworkPolicy', 'rel-proofgate-verifier').spec
      .ingress;

  it.each([
    ['docs/operate/gateways.md', verifier, 'envoy-gateway-system'],
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
