/** Validates the Kubernetes objects in documents and files to copy against the schemas of every supported version. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { describeChart } from '../support/chart/chart.ts';
import { KUBERNETES, misfits, misfitsIn } from '../support/chart/kubeconform.ts';
import { MANIFESTS, placeOf } from '../support/docs/blocks.ts';
import { claimedBlocks } from '../support/docs/claimed.ts';
import { readText } from '../support/docs/markdown.ts';

function isOfKubernetes(text: string): boolean {
  return parseAllDocuments(text).some((document) => {
    const object: unknown = document.toJS();
    return typeof object === 'object' && object !== null && 'apiVersion' in object && 'kind' in object;
  });
}

const files = MANIFESTS.map((file) => [file, readText(file)] as const).filter(([, text]) =>
  isOfKubernetes(text),
);
const blocks = claimedBlocks()
  .filter(
    ({ block, claim }) => claim.kind === 'manifest' || (claim.kind === 'saved' && isOfKubernetes(block.text)),
  )
  .map(({ block }) => [placeOf(block), block.text] as const);

describeChart('what is Kubernetes’', () => {
  it('is there', () => {
    expect(files.map(([file]) => file)).toContain('docs/operate/workload.yaml');
  });

  let folder: string;
  let paths: readonly string[];
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'pg-manifests-'));
    paths = [...files, ...blocks].map(([place, text]) => {
      const path = join(folder, `${place.replaceAll('/', ' ')}.yaml`);
      writeFileSync(path, text);
      return path;
    });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('is in every block', () => {
    expect(blocks.filter(([, text]) => !isOfKubernetes(text))).toEqual([]);
  });

  it.each(KUBERNETES)('fits Kubernetes %s', (version) => {
    expect(misfits(version, paths)).toBe('');
  });

  it('fails for an unknown member', () => {
    const broken = readText('docs/operate/workload.yaml').replace(
      'restartPolicy: Always',
      'restartPolice: Always',
    );
    expect(misfitsIn(broken)).toContain('restartPolice');
  });
});
