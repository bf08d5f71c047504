/**
 * Tests the chart's lifecycle in a cluster: installation, upgrades, rollbacks, what an uninstall leaves, and that the API
 * server accepts all objects.
 */
import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { CHART, NAMESPACE, RELEASE, type Rendered, render, VALUE_FILES } from '../support/chart/chart.ts';
import type { Cluster } from './cluster.ts';
import { Helm } from './helm.ts';
import { type ApiObject, Objects } from './objects.ts';

/** Enables everything, but keeps nothing after an uninstall. */
const WHOLE = { file: 'everything', also: { control: { persistence: { keep: false } } } };
const CHANGED = {
  file: 'everything',
  also: {
    image: { tag: '9.9.9' },
    control: { persistence: { keep: false } },
    verifier: { replicas: 3 },
    monitoring: { dashboard: { enabled: false } },
  },
};
const CLAIM = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: `${RELEASE}-proofgate-control`, namespace: NAMESPACE },
};

export function chartSuite(clusterOf: () => Cluster): void {
  describe('as a release', () => lifecycle(clusterOf));

  describe('the API server takes, without a warning,', () => {
    let objects: Objects;
    beforeAll(() => {
      objects = new Objects(clusterOf());
    });

    // Pods need their service accounts: the admission suite submits them.
    it.each(VALUE_FILES)('%s', async (file) => {
      for (const object of render({ file }).filter(({ kind }) => kind !== 'Pod')) {
        const { status, headers, body } = await objects.create(object as object as ApiObject, {
          dryRun: true,
        });
        const { name } = object.metadata;
        expect({ name, status, warning: headers.warning, message: body.message }).toEqual({
          ...{ name, status: 201, warning: undefined, message: undefined },
        });
      }
    });

    it('and nothing with a member that it does not know, or a custom resource with a wrong value', async () => {
      const wrong = [
        changed('Deployment', (spec) => ({ ...spec, replcas: 2 })),
        changed('Certificate', (spec) => ({ ...spec, dnsName: 'x' })),
        changed('ServiceMonitor', (spec) => ({ ...spec, endpoints: [{ interval: 'often' }] })),
      ];
      const statuses = wrong.map((object) => objects.create(object, { dryRun: true }));
      expect((await Promise.all(statuses)).map(({ status }) => status)).toEqual([400, 400, 422]);
    });
  });
}

function lifecycle(clusterOf: () => Cluster): void {
  let objects: Objects;
  let helm: Helm;
  let before: ReadonlyMap<string, string>;
  beforeEach(async () => {
    objects = new Objects(clusterOf());
    helm = new Helm(clusterOf());
    before = await objects.all();
  });
  afterEach(async () => {
    // Cleans up after a failed test, so that the next one finds an empty cluster.
    if ((await changes()).length > 0) await helm.uninstall().catch(() => {});
    if ((await objects.find(CLAIM)) !== undefined) await objects.remove(CLAIM);
  });

  /** Objects that appeared or disappeared. */
  async function changes(): Promise<readonly string[]> {
    const now = await objects.all();
    const added = [...now].filter(([uid]) => !before.has(uid)).map(([, name]) => name);
    const gone = [...before].filter(([uid]) => !now.has(uid)).map(([, name]) => `no ${name}`);
    return [...added, ...gone].sort();
  }

  /** Excludes objects that are not the chart's: the release's record, and the address of each Service that has one. */
  const isOwn = (name: string) =>
    !name.startsWith('IPAddress ') && !name.startsWith(`Secret ${NAMESPACE}/sh.helm.release.`);

  it.each([WHOLE, { file: 'production' }, { file: 'tuned' }])(
    'installs all that it renders, and leaves nothing when it is uninstalled: $file',
    async (values) => {
      await helm.install(values);
      expect((await changes()).filter(isOwn)).toEqual(installed(render(values)).map(nameOf).sort());
      await helm.uninstall();
      expect(await changes()).toEqual([]);
    },
  );

  it('installs the values of the quickstart: Control, one verifier, and nothing that they do not name', async () => {
    const quickstart = {
      files: [`${CHART}/values-quickstart.yaml`],
      also: { control: { persistence: { keep: false } } },
    };
    await helm.install(quickstart);
    const made = (await changes()).filter(isOwn);
    expect(made.filter((name) => /^(?:Deployment|PersistentVolumeClaim|Service) /.test(name))).toEqual([
      `Deployment ${NAMESPACE}/${RELEASE}-proofgate-control`,
      `Deployment ${NAMESPACE}/${RELEASE}-proofgate-verifier`,
      `PersistentVolumeClaim ${NAMESPACE}/${RELEASE}-proofgate-control`,
      `Service ${NAMESPACE}/${RELEASE}-proofgate-control`,
      `Service ${NAMESPACE}/${RELEASE}-proofgate-verifier`,
    ]);
    const verifier = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: placed('verifier') };
    expect((await objects.read(verifier)).spec).toMatchObject({ replicas: 1 });
    await helm.uninstall();
    expect(await changes()).toEqual([]);
  });

  it('upgrades, takes away what is switched off, and rolls back to what was there', async () => {
    await helm.install(WHOLE);
    const first = await contents(render(WHOLE));
    await helm.upgrade(CHANGED);
    const verifier = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: placed('verifier') };
    expect((await objects.read(verifier)).spec).toMatchObject({
      replicas: 3,
      template: { spec: { containers: [{ image: 'proofgate:9.9.9' }] } },
    });
    const gone = { apiVersion: 'v1', kind: 'ConfigMap', metadata: placed('dashboard') };
    expect([first.has(nameOf(gone)), await objects.find(gone)]).toEqual([true, undefined]);
    await helm.rollback(1);
    expect(await contents(render(WHOLE))).toEqual(first);
    await helm.uninstall();
    expect(await changes()).toEqual([]);
  });

  it("keeps Control's claim and nothing else, and takes it up again", async () => {
    await helm.install({ file: 'control-sqlite' });
    const claim = await objects.read(CLAIM);
    await helm.uninstall();
    expect(await changes()).toEqual([nameOf(CLAIM)]);
    await helm.install({ file: 'control-sqlite' });
    expect((await objects.read(CLAIM)).metadata.uid).toBe(claim.metadata.uid);
    await helm.uninstall();
    await objects.remove(CLAIM);
    expect(await changes()).toEqual([]);
  });

  /** Spec or data of each object, by its name. */
  async function contents(rendered: readonly Rendered[]): Promise<ReadonlyMap<string, unknown>> {
    const found = await Promise.all(installed(rendered).map((object) => objects.read(object)));
    return new Map(found.map((object) => [nameOf(object), object.spec ?? object.data ?? {}]));
  }
}

const placed = (component: string) => ({ name: `${RELEASE}-proofgate-${component}`, namespace: NAMESPACE });

/** Without hooks, which helm creates only when they run. */
function installed(rendered: readonly Rendered[]): readonly Rendered[] {
  return rendered.filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'] === undefined);
}

function nameOf({ kind, metadata }: Pick<ApiObject, 'kind' | 'metadata'>): string {
  return `${kind} ${metadata.namespace}/${metadata.name}`;
}

function changed(kind: string, change: (spec: object) => object): ApiObject {
  const found = render(WHOLE).find((object) => object.kind === kind);
  if (found === undefined) throw new Error(`no ${kind}`);
  return { ...found, spec: change(found.spec) };
}
