/**
 * Validates the rendered objects and the README's values against the schemas of each Kubernetes version and of the custom
 * resources.
 */
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { parse, stringify } from 'yaml';
import {
  CACHE,
  describeChart,
  lintFindings,
  NEWEST_KUBERNETES,
  objectsIn,
  podsOf,
  render,
  renderText,
  VALUE_FILES,
} from '../support/chart/chart.ts';
import { KUBERNETES, misfits } from '../support/chart/kubeconform.ts';
import { readText } from '../support/docs/markdown.ts';

/** The chart distinguishes only clusters older than 1.30; all others get the same objects. */
const RENDERED_FOR = ['1.29.0', NEWEST_KUBERNETES];

describeChart('what is rendered', () => {
  let folder = '';
  const at = (name: string) => join(folder, `${name}.yaml`);
  const filesFor = (kubernetes: string) => {
    const rendered = kubernetes === '1.29.0' ? '1.29.0' : '1.36.0';
    return VALUE_FILES.map((name) => at(`${name}-${rendered}`));
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'proofgate-chart-'));
    for (const file of VALUE_FILES) {
      for (const kubernetes of RENDERED_FOR) {
        const text = renderText({ file, kubernetes });
        await writeFile(at(`${file}-${kubernetes}`), text + sidecarPods(text));
      }
    }
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('comes of enough values', async () => {
    expect(VALUE_FILES.length).toBeGreaterThanOrEqual(15);
    expect((await readdir(`${CACHE}/schemas/kubernetes`)).toSorted()).toEqual(KUBERNETES);
  });

  it.each(KUBERNETES)('is what Kubernetes %s takes, with its custom resources', (kubernetes) => {
    expect(misfits(kubernetes, filesFor(kubernetes))).toBe('');
  });

  it('would not pass with an unknown member, in what is ours and what is a custom resource', async () => {
    const [control] = objectsIn(renderText({ file: 'control-sqlite' })).filter(
      ({ kind }) => kind === 'Deployment',
    );
    const broken = {
      Deployment: { ...control, spec: { ...control?.spec, replcas: 2 } },
      Certificate: {
        ...{ apiVersion: 'cert-manager.io/v1', kind: 'Certificate', metadata: { name: 'x' } },
        spec: { secretName: 'x', issuerRef: { name: 'x' }, dnsName: 'x' },
      },
    };
    for (const [kind, object] of Object.entries(broken)) {
      await writeFile(at('broken'), stringify(object));
      expect(misfits(NEWEST_KUBERNETES, [at('broken')])).toContain(`${kind} `);
    }
  });

  it.each(VALUE_FILES)('passes helm lint: %s', (file) => {
    expect(lintFindings({ file })).toBe('');
  });
});

/** Applies the sidecar's patch to a gateway's pod. */
function sidecarPods(text: string): string {
  const pods = podsOf(objectsIn(text)).filter(({ of }) => of.startsWith('ConfigMap '));
  return pods
    .map(({ spec }) => {
      const containers = [{ name: 'envoy', image: 'envoy' }];
      return `\n---\n${stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'gateway' }, spec: { ...spec, containers } })}`;
    })
    .join('');
}

describeChart('the README', () => {
  const blocks = [...readText('helm/proofgate/README.md').matchAll(/^```yaml\n([\s\S]*?)^```/gm)];

  const values = blocks.map(([, text = '']): object => parse(text));
  const [test, ...others] = values.toSorted((a, b) => Number('test' in b) - Number('test' in a));

  it.each(others.map((also) => [Object.keys(also).join(), also] as const))(
    'has values that render, of an image that is somewhere: %s',
    (_, also) => {
      const images = podsOf(render({ also })).flatMap(({ spec }) =>
        spec.containers.map(({ image }) => image),
      );
      expect(images.length).toBeGreaterThan(0);
      for (const image of images) expect(image).toMatch(/^registry\.shop\.example\//);
    },
  );

  it('has values beside those by which `helm test` has a pod', () => {
    for (const first of others) {
      const pods = render({ also: { ...first, ...test } }).filter(({ kind }) => kind === 'Pod');
      expect(pods.map(({ metadata }) => metadata.annotations?.['helm.sh/hook'])).toEqual(['test']);
    }
  });
});
