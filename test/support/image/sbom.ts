/** Checks the bill of materials in an image against its schema and the image's content. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { Ajv } from 'ajv';
import { HOME, SBOM } from '../../../scripts/image/contents.mjs';
import { checkoutPath } from '../harness/checkout.ts';
import { type BuiltImage, IMAGE_TOOLS } from './built.ts';

export interface Bom {
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

export interface Component {
  readonly 'bom-ref': string;
  readonly group?: string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  readonly licenses: readonly object[];
  readonly properties?: readonly { readonly name: string; readonly value: string }[];
}

/** Errors by the schema of CycloneDX 1.6; empty without any. */
export function schemaFaults(bom: unknown): readonly string[] {
  const schema = (name: string) =>
    JSON.parse(readFileSync(join(IMAGE_TOOLS, 'schemas', `${name}.SNAPSHOT.schema.json`), 'utf8'));
  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
  for (const name of ['spdx', 'jsf-0.82', 'cryptography-defs']) {
    ajv.addSchema(schema(name), `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`);
  }
  const validate = ajv.compile(schema('bom-1.6'));
  validate(bom);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

/** Expects every reference to name a component, and every component except the root to be a dependency. */
export function expectWholeGraph({ components, dependencies, metadata }: Bom): void {
  const refs = components.map((component) => component['bom-ref']);
  expect(new Set(refs).size).toBe(refs.length);
  expect(dependencies.map(({ ref }) => ref).toSorted()).toEqual(
    [...refs, metadata.component['bom-ref']].toSorted(),
  );
  const used = new Set(dependencies.flatMap(({ dependsOn }) => dependsOn));
  expect(refs.filter((ref) => !used.has(ref))).toEqual([]);
  expect([...used].filter((ref) => !refs.includes(ref))).toEqual([]);
}

/** Expects version, licence and integrity as in the lock file. */
export function expectAsLocked(components: readonly Component[]): void {
  const lock = JSON.parse(readFileSync(checkoutPath('package-lock.json'), 'utf8'));
  for (const { group, hashes, licenses, name, properties, version } of components) {
    for (const value of pathsOf(properties)) {
      const locked = lock.packages[value];
      const whole = group === undefined ? name : `${group}/${name}`;
      expect(value.endsWith(`node_modules/${whole}`)).toBe(true);
      const [algorithm = '', digest = ''] = locked.integrity.split(/-(.*)/);
      const hash = {
        alg: algorithm.replace('sha', 'SHA-'),
        content: Buffer.from(digest, 'base64').toString('hex'),
      };
      expect({ version, hashes, licenses }).toEqual({
        version: locked.version,
        hashes: [hash],
        licenses: [{ license: { id: locked.license } }],
      });
    }
  }
}

/** Where a package is; empty for one that the console bundles. */
export function pathsOf(properties: Component['properties'] = []): readonly string[] {
  return properties.filter(({ name }) => name === 'cdx:npm:package:path').map(({ value }) => value);
}

export function billOfMaterialsTests(image: () => BuiltImage, cpu: string): void {
  const read = (): Bom => JSON.parse(readFileSync(join(image().root, SBOM), 'utf8'));
  const ofNpm = () => read().components.filter(({ purl }) => purl.startsWith('pkg:npm/'));

  it('is valid CycloneDX 1.6; without a name in it, it would not be', () => {
    expect(schemaFaults(read())).toEqual([]);
    const [first, ...others] = read().components.map((each) => ({ ...each }));
    const { name: _name, ...nameless } = first ?? { name: '' };
    expect(schemaFaults({ ...read(), components: [nameless, ...others] })).not.toEqual([]);
  });

  it('has every package of the image, in its version, and no other', () => {
    const manifests = image().files.filter(({ path }) => MANIFEST.test(path));
    const present = manifests.map(({ path }) => path.slice(HOME.length + 1, -'/package.json'.length));
    const listed = ofNpm().flatMap(({ properties }) => pathsOf(properties));
    expect(listed.toSorted()).toEqual(present.toSorted());
    expect(listed.length).toBeGreaterThan(100);
    for (const { properties, version } of ofNpm()) {
      for (const value of pathsOf(properties)) {
        const manifest = JSON.parse(readFileSync(join(image().root, HOME, value, 'package.json'), 'utf8'));
        expect(manifest.version).toBe(version);
      }
    }
  });

  it('has what the console bundles, whose licences are beside it', () => {
    const bundled = ofNpm().filter(({ properties }) => pathsOf(properties).length === 0);
    expect(bundled.map(({ purl }) => purl)).toContainEqual(expect.stringMatching(/^pkg:npm\/react-dom@19/));
    const licences = readFileSync(join(image().root, HOME, 'dist/console/LICENSES.md'), 'utf8');
    for (const { group, name, version } of bundled) {
      const whole = group === undefined ? name : `${group}/${name}`;
      expect(licences).toContain(`## ${whole} - ${version} (`);
    }
  });

  it('has their licences and integrity as the lock file', () => {
    expectAsLocked(ofNpm());
  });

  it('has Node.js and the packages of the libraries, with their licences in the image', () => {
    const others = read().components.filter(({ purl }) => !purl.startsWith('pkg:npm/'));
    const names = others.map(({ name }) => name);
    expect(names).toEqual(['node', 'libc6', 'libgcc-s1', 'libstdc++6']);
    const paths = new Set(image().files.map(({ path }) => path));
    expect(names.filter((name) => !paths.has(`usr/share/doc/${name}/copyright`))).toEqual([]);
    const debian = others.filter(({ purl }) => purl.startsWith('pkg:deb/'));
    for (const { purl } of debian) expect(purl).toContain(`?arch=${cpu}`);
  });

  it('says what depends on what, without a gap', () => {
    expectWholeGraph(read());
  });
}

const MANIFEST = new RegExp(`^${HOME}/(?:.*/)?node_modules/(?:@[^/]+/)?[^/@]+/package\\.json$`);
