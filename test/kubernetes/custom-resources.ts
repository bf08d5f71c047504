/**
 * Installs the custom resource definitions of the chart's and the gateways' objects, as their projects publish them. In a real
 * cluster, an operator's chart installs them.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { render, VALUE_FILES } from '../support/chart/chart.ts';
import { waitFor } from '../support/wait.ts';
import { type Cluster, KUBERNETES_CACHE } from './cluster.ts';
import { gatewayManifests } from './gateway-manifests.ts';
import { type ApiObject, Objects } from './objects.ts';

interface Definition extends ApiObject {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string; readonly plural: string };
    readonly versions: readonly { readonly name: string; readonly served: boolean }[];
  };
}

/** @returns `group kind` of each, once the server serves it */
export async function installCustomResources(cluster: Cluster): Promise<readonly string[]> {
  const objects = new Objects(cluster);
  const wanted = await customKinds(cluster);
  const found = (await definitions(wanted)).filter((each) => wanted.has(kindOf(each)));
  for (const definition of found) await objects.mustCreate(definition);
  for (const { metadata, spec } of found) {
    const version = spec.versions.find(({ served }) => served);
    const path = `/apis/${spec.group}/${version?.name}/${spec.names.plural}`;
    // The server answers 429 for a moment after it knows the kind.
    await waitFor(`${metadata.name} to be served`, async () => {
      const { status } = await cluster.call({ path });
      return status === 200 ? true : undefined;
    });
  }
  return found.map(kindOf).sort();
}

function kindOf({ spec }: Definition): string {
  return `${spec.group} ${spec.names.kind}`;
}

/** Custom kinds that the chart and the gateway manifests use. */
async function customKinds(cluster: Cluster): Promise<ReadonlySet<string>> {
  const { body } = await cluster.call({ path: '/apis' });
  const brought = new Set((body.groups as readonly { readonly name: string }[]).map(({ name }) => name));
  const rendered = VALUE_FILES.flatMap((file) => render({ file }));
  const kinds = [...rendered, ...gatewayManifests().map(({ object }) => object)].flatMap(
    ({ apiVersion, kind }) => {
      const [group = '', version] = apiVersion.split('/');
      return version === undefined || brought.has(group) ? [] : [`${group} ${kind}`];
    },
  );
  return new Set(kinds);
}

/** Reads only files that may contain a wanted definition, because all files together have many megabytes. */
async function definitions(wanted: ReadonlySet<string>): Promise<readonly Definition[]> {
  const folder = join(KUBERNETES_CACHE, 'custom-resources');
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.yaml'));
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
  const near = texts.filter((text) =>
    [...wanted].some((each) => {
      const [group, kind] = each.split(' ');
      return text.includes(`group: ${group}\n`) && text.includes(`kind: ${kind}\n`);
    }),
  );
  return near
    .flatMap((text) => parseAllDocuments(text))
    .map((document) => document.toJS())
    .filter((object) => object?.kind === 'CustomResourceDefinition');
}
