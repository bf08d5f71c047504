/**
 * Istio's ambient mode: ztunnel enforces no AuthorizationPolicy CUSTOM, so where no waypoint is named by `targetRefs` nobody is asked.
 * Source: Istio 1.31, pilot/pkg/serviceregistry/ambient/authorization.go.
 */
import type { Gateway, Resource } from './gateway.ts';
import { isSelected } from './label-selector.ts';
import { isSameNamespace } from './route-coverage.ts';
import { customPolicies, isRootNamespace, surroundingsOf } from './settings.ts';
import type { View } from './view.ts';

export const WORKLOADS: readonly string[] = [
  'CronJob',
  'DaemonSet',
  'Deployment',
  'Job',
  'Pod',
  'ReplicaSet',
  'StatefulSet',
];

/** For workloads of the file, or all of a namespace, whose traffic ztunnel takes. */
export function unenforcedPolicies(gateway: Gateway): readonly Resource[] {
  return customPolicies(gateway).filter(({ namespace, spec }) => {
    if (spec.get('target_ref') !== undefined || spec.list('target_refs').length > 0) return false;
    const isRoot = isRootNamespace(namespace, gateway);
    const isNear = (one: string | undefined) => isRoot || isSameNamespace(one, namespace);
    const selector = spec.get('selector');
    const workloads = workloadsOf(gateway)
      .filter((one) => isNear(one.namespace))
      .filter(({ pod }) => selector === undefined || isSelected(pod, selector));
    if (workloads.some((one) => isAmbient(one, gateway))) return true;
    // What the file has of those that are selected is on nobody's way through ztunnel.
    const isSeen = selector !== undefined && (isRoot || workloads.length > 0);
    return !isSeen && ambientNamespaces(gateway).some(({ name }) => isNear(name));
  });
}

interface Workload {
  readonly namespace: string | undefined;
  /** With the labels of its pods. */
  readonly pod: View;
}

function workloadsOf(gateway: Gateway): readonly Workload[] {
  return WORKLOADS.flatMap((kind) => surroundingsOf(gateway, kind)).map(({ namespace, spec, view }) => ({
    namespace,
    pod: spec.at('job_template', 'spec', 'template') ?? spec.get('template') ?? view,
  }));
}

const MODE = 'istio.io/dataplane-mode';

/** Its own label counts before its namespace's; with a proxy of its own it is none. */
function isAmbient({ namespace, pod }: Workload, gateway: Gateway): boolean {
  const labels = pod.at('metadata', 'labels');
  const isInjected =
    labels?.named('sidecar.istio.io/inject')?.flag === true ||
    pod.at('metadata', 'annotations')?.named('inject.istio.io/templates') !== undefined;
  if (isInjected) return false;
  const own = labels?.named(MODE)?.text;
  if (own !== undefined) return own === 'ambient';
  return ambientNamespaces(gateway).some(({ name }) => isSameNamespace(name, namespace));
}

/** Without Istio's injection, which gives pods a proxy of their own. */
function ambientNamespaces(gateway: Gateway): readonly Resource[] {
  return surroundingsOf(gateway, 'Namespace').filter(({ view }) => {
    const labels = view.at('metadata', 'labels');
    return labels?.named(MODE)?.text === 'ambient' && labels.named('istio-injection')?.text !== 'enabled';
  });
}
