/**
 * Checks that a namespace with the `restricted` standard admits every pod of the chart and the documents, and rejects pods
 * without any one of the required settings.
 */
import { beforeAll, describe, expect, it } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { containersOf, type PodSpec, podsOf, render, VALUE_FILES } from '../support/chart/chart.ts';
import { readText } from '../support/docs/markdown.ts';
import type { Cluster } from './cluster.ts';
import { makeRestricted, serviceAccount } from './namespaces.ts';
import { type ApiObject, Objects } from './objects.ts';
import { podOf, templateOf } from './pod.ts';

const RESTRICTED = 'restricted-pods';
const DOCUMENTED = parseAllDocuments(readText('docs/operate/workload.yaml')).map(
  (document) => document.toJS() as ApiObject,
);

/** Puts a sidecar into a gateway's pod whose own container satisfies the standard; other pods stay unchanged. */
function inGateway(of: string, spec: PodSpec): PodSpec {
  if (!of.startsWith('ConfigMap ')) return spec;
  const [sidecar] = spec.initContainers ?? [];
  if (sidecar === undefined) throw new Error(`${of} has no sidecar`);
  const { securityContext = {}, volumeMounts } = sidecar;
  const socket = volumeMounts.filter(({ name }) => name === 'proofgate-socket');
  const envoy = {
    name: 'envoy',
    image: 'envoy',
    command: [],
    args: [],
    securityContext,
    volumeMounts: socket,
  };
  return { ...spec, containers: [envoy] };
}

/** Changes to the first container, each of which violates the standard. */
const WEAKER: readonly (readonly [string, object])[] = [
  ['privilege escalation', { allowPrivilegeEscalation: undefined }],
  ['all capabilities', { capabilities: undefined }],
  ['another capability', { capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] } }],
  ['root', { runAsUser: 0 }],
  ['whatever user', { runAsNonRoot: false }],
  ['every system call', { seccompProfile: { type: 'Unconfined' } }],
];

function withFirstContainer(spec: PodSpec, change: object): PodSpec {
  const [first, ...others] = containersOf(spec);
  if (first === undefined) throw new Error('no container');
  const weaker = [{ ...first, securityContext: { ...first.securityContext, ...change } }, ...others];
  const inits = spec.initContainers?.length ?? 0;
  return { ...spec, initContainers: weaker.slice(0, inits), containers: weaker.slice(inits) };
}

export function admissionSuite(clusterOf: () => Cluster): void {
  const rendered = VALUE_FILES.flatMap((file) =>
    podsOf(render({ file })).map(({ of, spec }) => [`${file}: ${of}`, inGateway(of, spec)] as const),
  );
  const documented = DOCUMENTED.map(
    (object) => [`docs/operate/workload.yaml: ${object.kind}`, templateOf(object).spec] as const,
  );
  const pods = [...rendered, ...documented];
  let objects: Objects;
  let count = 0;
  beforeAll(async () => {
    objects = new Objects(clusterOf());
    await makeRestricted(clusterOf(), RESTRICTED);
    // What test/helm/values/tuned.yaml names.
    const runtime = { apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata: { name: 'gvisor' } };
    await objects.mustCreate({ ...runtime, handler: 'runsc' });
    const accounts = pods.map(([, spec]) => spec.serviceAccountName ?? 'default');
    for (const name of new Set(accounts)) {
      await objects.mustCreate(serviceAccount(name, RESTRICTED));
    }
  });

  const submit = (spec: PodSpec) => {
    count += 1;
    return objects.create(podOf({ spec }, `pod-${count}`, RESTRICTED));
  };

  it('there are pods of each kind', () => {
    const kinds = new Set(pods.map(([name]) => /: (\w+)/.exec(name)?.[1]));
    expect([...kinds].sort()).toEqual(['ConfigMap', 'Deployment', 'Job', 'Pod']);
  });

  describe.each(pods)('%s', (_name, spec) => {
    it('is admitted, without a warning', async () => {
      const { status, headers, body } = await submit(spec);
      expect({ status, warning: headers.warning, message: body.message }).toEqual({
        ...{ status: 201, warning: undefined, message: undefined },
      });
      await objects.remove(body as unknown as ApiObject);
    });
  });

  it.each(WEAKER)('none is admitted with %s', async (_name, weaken) => {
    for (const [name, spec] of pods) {
      const { status, body } = await submit(withFirstContainer(spec, weaken));
      expect([name, status, body.reason]).toEqual([name, 403, 'Forbidden']);
    }
  });

  it.each(DOCUMENTED.map((object) => [object.kind, object] as const))(
    'docs/operate/workload.yaml: the API server takes the %s, without a warning',
    async (_kind, object) => {
      const { namespace: _, ...metadata } = object.metadata;
      await objects.remove(
        await objects.mustCreate({ ...object, metadata: { ...metadata, namespace: RESTRICTED } }),
      );
    },
  );
}
