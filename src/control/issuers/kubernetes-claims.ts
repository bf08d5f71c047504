/**
 * Reads the private claim `kubernetes.io`, in which a cluster describes a pod, as the key's provenance.
 * Source: Kubernetes "Managing Service Accounts", schema for service account private claims;
 * docs/control.md "Sources and tokens".
 */
import { isIdentifier } from '../../protocol/identifiers.ts';
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';

export type KubernetesProvenance = { readonly [name: string]: string };

interface Entry {
  readonly name: string;
  readonly path: readonly string[];
}

const ENTRIES: readonly Entry[] = [
  { name: 'kubernetes_namespace', path: ['namespace'] },
  { name: 'kubernetes_service_account', path: ['serviceaccount', 'name'] },
  { name: 'kubernetes_service_account_uid', path: ['serviceaccount', 'uid'] },
  { name: 'kubernetes_pod', path: ['pod', 'name'] },
  { name: 'kubernetes_pod_uid', path: ['pod', 'uid'] },
  { name: 'kubernetes_node', path: ['node', 'name'] },
  { name: 'kubernetes_node_uid', path: ['node', 'uid'] },
];

const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/;

/**
 * Skips entries whose values do not fit into a bundle. Undefined when the claims contradict the subject: if an issuer lets
 * people choose the claim, it must not put another namespace's name on a key.
 */
export function readKubernetesClaims(claims: JsonObject, subject: string): KubernetesProvenance | undefined {
  const cluster = ownMember(claims, 'kubernetes.io');
  const found = new Map<string, string>();
  for (const { name, path } of ENTRIES) {
    const value = path.reduce(ownMember, cluster);
    if (isIdentifier(value)) found.set(name, value);
  }
  const [, namespace, serviceAccount] = SERVICE_ACCOUNT.exec(subject) ?? [];
  if (namespace !== undefined && !agrees(found.get('kubernetes_namespace'), namespace)) return undefined;
  if (serviceAccount !== undefined && !agrees(found.get('kubernetes_service_account'), serviceAccount)) {
    return undefined;
  }
  return Object.fromEntries(found);
}

function agrees(said: string | undefined, meant: string): boolean {
  return said === undefined || said === meant;
}

function ownMember(value: unknown, name: string): unknown {
  return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}
