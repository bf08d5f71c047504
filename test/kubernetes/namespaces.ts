/** Namespaces that enforce the `restricted` standard, with the objects that controllers and people create in them. */
import type { Cluster } from './cluster.ts';
import { type ApiObject, Objects } from './objects.ts';

/** Makes a namespace that rejects violating pods, warns of templates for such pods, and has the cluster's CA. */
export async function makeRestricted(cluster: Cluster, name: string): Promise<void> {
  const levels = ['enforce', 'warn'].map((mode) => [`pod-security.kubernetes.io/${mode}`, 'restricted']);
  const metadata = { name, labels: Object.fromEntries(levels) };
  await new Objects(cluster).mustCreate({ apiVersion: 'v1', kind: 'Namespace', metadata });
  await publishRootCa(cluster, name);
}

/** Publishes the CA as a controller does in each namespace. */
export async function publishRootCa(cluster: Cluster, namespace: string): Promise<void> {
  await new Objects(cluster).mustCreate({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'kube-root-ca.crt', namespace },
    data: { 'ca.crt': cluster.ca },
  });
}

export function serviceAccount(name: string, namespace: string): ApiObject {
  return { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } };
}
