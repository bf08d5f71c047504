/**
 * Makes the JSON schemas that kubeconform reads from a folder.
 *
 *     node scripts/make-helm-schemas.mjs kubernetes FOLDER OUT          from those of the PyPI package kubernetes-validate
 *     node scripts/make-helm-schemas.mjs custom-resources PATH OUT      from CustomResourceDefinitions; closed where they are
 */
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseAllDocuments } from 'yaml';

const [kind, source, out] = process.argv.slice(2);
if (kind === 'kubernetes') convertKubernetes(source, out);
else if (kind === 'custom-resources') convertCustomResources(source, out);
else throw new Error(`not a kind of schemas: ${kind}`);

/**
 * The schemas refer to each other and to themselves by URLs of a server, which are replaced by names of the files
 * beside them.
 */
function convertKubernetes(folder, target) {
  mkdirSync(target, { recursive: true });
  for (const name of readdirSync(folder)) {
    const text = readFileSync(path.join(folder, name), 'utf8');
    const { $id, ...schema } = JSON.parse(text.replaceAll('"/api/_definitions.json#', '"_definitions.json#'));
    writeFileSync(path.join(target, name), JSON.stringify(schema));
  }
}

function convertCustomResources(place, target) {
  const definitions = yamlFiles(place)
    .flatMap((file) => parseAllDocuments(readFileSync(file, 'utf8')))
    .map((document) => document.toJS())
    .filter((object) => object?.kind === 'CustomResourceDefinition');
  if (definitions.length === 0) throw new Error(`${place} holds no CustomResourceDefinition`);
  for (const { spec } of definitions) {
    for (const { name, schema } of spec.versions) {
      const folder = path.join(target, spec.group);
      mkdirSync(folder, { recursive: true });
      const file = path.join(folder, `${spec.names.kind.toLowerCase()}_${name}.json`);
      writeFileSync(file, JSON.stringify(rootSchema(schema.openAPIV3Schema)));
    }
  }
}

function yamlFiles(place) {
  if (statSync(place).isFile()) return [place];
  return readdirSync(place)
    .filter((name) => name.endsWith('.yaml'))
    .map((name) => path.join(place, name));
}

/** Definitions may omit members that every object has. */
function rootSchema(schema) {
  const anyObject = { type: 'object' };
  const properties = {
    apiVersion: { type: 'string' },
    kind: { type: 'string' },
    ...schema.properties,
    metadata: anyObject,
  };
  return closed({ ...schema, properties });
}

/** Refuses members that a server would drop. */
function closed(schema) {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const copy = Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, closedMember(key, value)]),
  );
  const isOpen =
    copy.properties === undefined ||
    copy.additionalProperties !== undefined ||
    copy['x-kubernetes-preserve-unknown-fields'] === true;
  return isOpen ? copy : { ...copy, additionalProperties: false };
}

/** Alternatives narrow the schema beside them and name only some members. */
function closedMember(key, value) {
  if (key === 'properties') {
    return Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, closed(schema)]));
  }
  return ['items', 'additionalProperties'].includes(key) ? closed(value) : value;
}
