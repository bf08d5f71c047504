/** The site of docs/tutorials/kubernetes.md with the additions of the tests: other enrolling workloads, and the pod of `helm test`. */
import { parse, stringify } from 'yaml';
import { NAMESPACE } from '../support/chart/chart.ts';
import { savedIn } from './followed-page.ts';

export const DOCUMENT = 'docs/tutorials/kubernetes.md';
/** Release name in the document. */
export const RELEASE_NAME = 'proofgate';
export const HELM_TEST_ACCOUNT = `${RELEASE_NAME}-test`;
export const HELM_TEST_POLICY = 'helm-test';

interface Site {
  readonly site: { readonly site_id: string };
  readonly sources: readonly [{ readonly name: string; readonly audience: string }];
  readonly clients: readonly object[];
  readonly enrollment_policies: readonly [object, ...object[]];
}

const DOCUMENTED: Site = parse(savedIn(DOCUMENT, 'site.yaml'));
export const SITE_ID = DOCUMENTED.site.site_id;
export const AUDIENCE = DOCUMENTED.sources[0].audience;

/** @param text of `site.yaml`; its first policy is the template of the others */
export function siteForTests(text: string): string {
  const site: Site = parse(text);
  const [first] = site.enrollment_policies;
  const reporting = { client_id: 'reporting', subject: 'client:reporting', grants: [] };
  const others = [
    { name: 'reporting', client: 'reporting', verified_subject: 'system:serviceaccount:prod:reporting' },
    {
      name: HELM_TEST_POLICY,
      verified_subject: `system:serviceaccount:${NAMESPACE}:${HELM_TEST_ACCOUNT}`,
    },
  ];
  return stringify({
    ...site,
    clients: [...site.clients, reporting],
    enrollment_policies: [first, ...others.map((other) => ({ ...first, ...other }))],
  });
}
