/** The site of test/e2e, with the cluster's own issuer as source, and a policy for the pod of `helm test`. */
import { parse, stringify } from 'yaml';
import { SOURCE_NAME, siteYaml } from '../e2e/control/site-declaration.ts';
import { NAMESPACE, RELEASE } from '../helm/chart.ts';
import type { Cluster } from './cluster.ts';

export const HELM_TEST_ACCOUNT = `${RELEASE}-proofgate-test`;
export const HELM_TEST_POLICY = 'helm-test';

export function clusterSite(cluster: Cluster, origin: string): string {
  const site: { readonly enrollment_policies: readonly object[] } = parse(
    siteYaml({ origin, issuer: { issuer: cluster.issuer, jwksUri: cluster.jwksUri } }),
  );
  const policy = {
    name: HELM_TEST_POLICY,
    source: SOURCE_NAME,
    client: 'billing',
    approval: 'automatic',
    max_key_lifetime_seconds: 3600,
    verified_subject: `system:serviceaccount:${NAMESPACE}:${HELM_TEST_ACCOUNT}`,
  };
  return stringify({ ...site, enrollment_policies: [...site.enrollment_policies, policy] });
}
