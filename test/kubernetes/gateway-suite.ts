/**
 * Checks that the API server accepts each gateway manifest under its project's definitions. Only the server evaluates their
 * CEL rules; schemas do not contain them.
 */
import { beforeAll, expect, it } from '@jest/globals';
import { stringify } from 'yaml';
import { misfitsIn } from '../support/chart/kubeconform.ts';
import type { Cluster } from './cluster.ts';
import { gatewayManifests } from './gateway-manifests.ts';
import { type ApiObject, Objects } from './objects.ts';

const MANIFESTS = gatewayManifests();

/** Changes that satisfy the schema of a kind, but violate a rule between members. */
const BROKEN: readonly (readonly [kind: string, change: (spec: Spec) => void])[] = [
  ['Backend', (spec) => Object.assign(spec.endpoints[0], { ip: { address: '192.0.2.1', port: 9191 } })],
  ['SecurityPolicy', (spec) => Object.assign(spec.extAuth, { http: spec.extAuth.grpc })],
  ['ClientTrafficPolicy', (spec) => Object.assign(spec, { targetRefs: undefined, targetRef: undefined })],
  ['HTTPRoute', (spec) => Object.assign(spec.rules[0], { filters: [{ type: 'RequestRedirect' }] })],
  ['Gateway', (spec) => Object.assign(spec.listeners[0], { protocol: 'HTTP' })],
  ['AuthorizationPolicy', (spec) => Object.assign(spec, { targetRef: { kind: 'Service', name: 'x' } })],
  ['ServiceEntry', (spec) => Object.assign(spec, { workloadSelector: { labels: { app: 'x' } } })],
];

// biome-ignore lint/suspicious/noExplicitAny: of any kind
type Spec = any;

export function gatewaySuite(clusterOf: () => Cluster): void {
  let objects: Objects;
  beforeAll(async () => {
    objects = new Objects(clusterOf());
    const namespaces = MANIFESTS.map(({ object }) => object.metadata.namespace ?? 'default');
    for (const name of new Set(namespaces)) {
      const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
      if ((await objects.find(namespace)) === undefined) await objects.mustCreate(namespace);
    }
  });

  it.each(
    MANIFESTS.map(({ file, object }) => [`${file}: ${object.kind} ${object.metadata.name}`, object] as const),
  )('takes %s, without a warning', async (_name, object) => {
    const { status, headers, body } = await objects.create(object, { dryRun: true });
    expect({ status, warning: headers.warning, message: body.message }).toEqual({
      ...{ status: 201, warning: undefined, message: undefined },
    });
  });

  it.each(BROKEN)('does not take a %s that fits its schema and breaks a rule', async (kind, change) => {
    const found = MANIFESTS.find(({ object }) => object.kind === kind);
    const broken = structuredClone(found?.object) as ApiObject & { readonly spec: Spec };
    change(broken.spec);
    const { status, body } = await objects.create(broken, { dryRun: true });
    expect([misfitsIn(stringify(broken)), status, body.reason]).toEqual(['', 422, 'Invalid']);
  });
}
