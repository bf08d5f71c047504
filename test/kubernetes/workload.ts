/** Fills in the values marked SET in docs/operate/workload.yaml, for the private CA of docs/tutorials/kubernetes.md. */
import { parseAllDocuments } from 'yaml';
import { documentedWorkloads } from '../support/docs/documented-workloads.ts';
import type { ApiObject } from './objects.ts';
import type { ReleaseStage } from './release-fixture.ts';

export const WORKLOAD_NAMESPACE = 'prod';

export async function documentedWorkload(
  stage: ReleaseStage,
  kind: 'Deployment' | 'Job',
  policy: string,
): Promise<ApiObject> {
  const { reference } = await stage.policy(policy);
  const text = documentedWorkloads({ isCaPrivate: true })
    .replaceAll('https://control.shop.example', stage.controlUrl)
    .replaceAll('epr_7f3c9a', String(reference));
  const objects = parseAllDocuments(text).map((document) => document.toJS() as ApiObject);
  const found = objects.find((object) => object.kind === kind);
  if (found === undefined) throw new Error(`docs/operate/workload.yaml has no ${kind}`);
  return found;
}
