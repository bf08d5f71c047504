/** Tests Kubernetes objects: their allowed namespaces, and which objects belong together. */
import { describe, expect, it } from '@jest/globals';
import { parseAllDocuments, stringify } from 'yaml';
import { UnreadableText } from '../../../src/tools/gateway-lint/gateway/source-file.ts';
import { cleanBase, exchanged, found, rulesIn } from '../../support/docs/lint-rule-cases.ts';

const istio = cleanBase('istio');
const envoyGateway = cleanBase('envoy-gateway');
const [meshMap, policy, patch] = istio.split('---\n');

describe('documents', () => {
  it('may be items of a List', () => {
    const items = parseAllDocuments(istio).map((document) => document.toJS());
    const text = JSON.stringify({ apiVersion: 'v1', kind: 'List', items }, undefined, 1);
    expect(found(text)).toEqual([]);
    expect(
      rulesIn(exchanged(text, '"CUSTOM"', '"CUSTOM", "rules2": []').replace('"rules": [', '"rulez": [')),
    ).toEqual(['policy-empty']);
  });

  const operator = (spec: object) => ({
    apiVersion: 'install.istio.io/v1alpha1',
    kind: 'IstioOperator',
    spec,
  });
  const harmless = { pathNormalization: { normalization: 'BASE' } };

  it.each([
    ['IstioOperator', (mesh: unknown) => operator({ meshConfig: mesh })],
    ['values within IstioOperator', (mesh: unknown) => operator({ values: { meshConfig: mesh } })],
    [
      'values over the meshConfig of the IstioOperator',
      (mesh: unknown) => operator({ meshConfig: harmless, values: { meshConfig: mesh } }),
    ],
    [
      'unvalidated values over others',
      (mesh: unknown) =>
        operator({ values: { meshConfig: harmless }, unvalidatedValues: { meshConfig: mesh } }),
    ],
    ['values of a chart', (mesh: unknown) => ({ meshConfig: mesh })],
    [
      'a ConfigMap, quoted',
      (mesh: unknown) => ({ apiVersion: 'v1', kind: 'ConfigMap', data: { mesh: JSON.stringify(mesh) } }),
    ],
  ])('mesh configuration in %s', (_what, around) => {
    const mesh = parseAllDocuments(parseAllDocuments(meshMap ?? '')[0]?.toJS().data.mesh)[0]?.toJS();
    const text = (one: unknown) => [stringify(around(one)), policy, patch].join('---\n');
    expect(rulesIn(text(mesh))).toEqual([]);
    mesh.extensionProviders[0].envoyExtAuthzGrpc.failOpen = 'true';
    expect(rulesIn(text(mesh))).toEqual(['fails-open']);
  });

  it('are reported when the text in them is not YAML', () => {
    const broken = 'apiVersion: v1\nkind: ConfigMap\ndata:\n  mesh: |-\n    a: 1\n    b: [\n';
    expect(() => found(broken)).toThrow(UnreadableText);
    expect(() => found(broken)).toThrow(/^line [67], column [1-9]\d*: /);
  });
});

describe('Envoy Gateway', () => {
  const withMore = (kind: string, metadata: object, spec: object) =>
    rulesIn(
      `${envoyGateway}---\n${stringify({ apiVersion: 'gateway.envoyproxy.io/v1alpha1', kind, metadata, spec })}`,
    );

  it('upgrades connections where a BackendTrafficPolicy says so', () => {
    const spec = { httpUpgrade: [{ type: 'websocket' }] };
    expect(withMore('BackendTrafficPolicy', { name: 'x' }, spec)).toEqual(['upgrades-allowed']);
  });

  it('reaches a verifier on a socket without TLS', () => {
    const local = exchanged(
      envoyGateway,
      '{ name: verifier, port: 9191 }',
      '{ kind: Backend, group: gateway.envoyproxy.io, name: sidecar }',
    );
    const backend = (endpoint: object) =>
      stringify({
        apiVersion: 'gateway.envoyproxy.io/v1alpha1',
        kind: 'Backend',
        metadata: { name: 'sidecar' },
        spec: { endpoints: [endpoint] },
      });
    expect(rulesIn(local)).toEqual(['verifier-plaintext']);
    expect(rulesIn(`${local}---\n${backend({ unix: { path: '/run/v.sock' } })}`)).toEqual([]);
    expect(rulesIn(`${local}---\n${backend({ ip: { address: '127.0.0.1', port: 9191 } })}`)).toEqual([]);
    expect(rulesIn(`${local}---\n${backend({ ip: { address: '10.0.0.7', port: 9191 } })}`)).toEqual([
      'verifier-plaintext',
    ]);
  });

  const eg = { kind: 'Gateway', name: 'eg' };

  it.each([
    ['the Gateway itself', { targetRefs: [eg] }, true],
    ['a listener of it', { targetRefs: [{ ...eg, sectionName: 'https' }] }, true],
    ['a route', { targetRefs: [{ kind: 'HTTPRoute', name: 'orders' }] }, true],
    [
      'a route, merged',
      { targetRefs: [{ kind: 'HTTPRoute', name: 'orders' }], mergeType: 'StrategicMerge' },
      false,
    ],
    ['a ListenerSet', { targetRefs: [{ kind: 'ListenerSet', name: 'more' }] }, true],
    ['what a selector selects', { targetSelectors: [{ kind: 'Gateway' }] }, true],
    ['another Gateway', { targetRefs: [{ kind: 'Gateway', name: 'other' }] }, false],
  ])('has a policy without the check for %s', (_what, target, isOverriding) => {
    const spec = { ...target, cors: { allowOrigins: ['https://shop.example'] } };
    const rules = withMore('SecurityPolicy', { name: 'x' }, spec);
    expect(rules).toEqual(isOverriding ? ['policy-overridden'] : []);
  });

  it('has a policy without the check for a Gateway of another namespace', () => {
    const own = envoyGateway.replaceAll('metadata: { name: ', 'metadata: { namespace: a, name: ');
    const metadata = { name: 'x', namespace: 'b' };
    const more = stringify({
      apiVersion: 'a/v1',
      kind: 'SecurityPolicy',
      metadata,
      spec: { targetRefs: [eg] },
    });
    expect(rulesIn(`${own}---\n${more}`)).toEqual([]);
  });
});
