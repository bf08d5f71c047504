/** Checks that names in the tables of docs/operate/gateways.md exist; documents.extended.test.ts renders the chart. */
import { describe, expect, it } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';
import { codesIn, readText, sectionOf, tableNamed } from '../support/docs/markdown.ts';

const document = readText('docs/operate/gateways.md');
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
    const page = readText('docs/tutorials/kubernetes.md');
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
    const page = readText('docs/tutorials/kubernetes.md');
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
