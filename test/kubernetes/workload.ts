/** docs/workload.yaml with what it marks SET, as for the site of these tests. */
import { parseAllDocuments } from 'yaml';
import { readText } from '../docs/markdown.ts';
import { AUDIENCE, type PolicyName } from '../e2e/control/site-declaration.ts';
import type { ApiObject } from './objects.ts';
import type { ReleaseStage } from './release-stage.ts';

export const WORKLOAD_NAMESPACE = 'prod';

export async function documentedWorkload(
  stage: ReleaseStage,
  kind: 'Deployment' | 'Job',
  policy: PolicyName,
): Promise<ApiObject> {
  const { reference } = await stage.policy(policy);
  const set: Readonly<Record<string, string>> = {
    'https://control.shop.example': stage.controlUrl,
    epr_7f3c9a: String(reference),
    'audience: proofgate-shop': `audience: ${AUDIENCE}`,
  };
  const text = Object.entries(set).reduce(
    (changed, [from, to]) => changed.replaceAll(from, to),
    readText('docs/workload.yaml'),
  );
  const objects = parseAllDocuments(text).map((document) => document.toJS() as ApiObject);
  const found = objects.find((object) => object.kind === kind);
  if (found === undefined) throw new Error(`docs/workload.yaml has no ${kind}`);
  return found;
}
