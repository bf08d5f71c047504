/** An image's bill of materials: the program, its packages, Node.js, and the Debian packages of its libraries. */
import { consoleComponents, withConsole } from './console-packages.mjs';
import { documentOf, rootComponent } from './document.mjs';
import { describePackages } from './npm-packages.mjs';

/**
 * @param lock package-lock.json
 * @param packages whose `folder`, below node_modules, is in the image
 * @param libraries name, version and architecture of Debian packages
 * @param manifest of package.json: name, version, license
 */
export function describeImage({ lock, packages, libraries, cpu, epochSeconds, manifest }) {
  const root = rootComponent(manifest);
  const folders = packages.map(({ folder }) => folder);
  const npm = withConsole(describePackages(lock, folders, root['bom-ref']), consoleComponents(lock));
  const system = [nodeComponent(), ...libraries.map(debianComponent)];
  const refs = system.map((component) => component['bom-ref']);
  const [own, ...others] = npm.dependencies;
  const content = {
    components: [...npm.components, ...system],
    dependencies: [
      { ref: own.ref, dependsOn: [...own.dependsOn, ...refs].sort() },
      ...others,
      ...refs.map((ref) => ({ ref, dependsOn: [] })),
    ],
  };
  return documentOf(content, {
    epochSeconds,
    root: { ...root, properties: [{ name: 'proofgate:cpu', value: cpu }] },
  });
}

/** The image's Node.js comes from the same base image, for its processor, as the one that runs this. */
function nodeComponent() {
  const version = process.versions.node;
  const purl = `pkg:generic/node@${version}`;
  return {
    type: 'platform',
    'bom-ref': purl,
    name: 'node',
    version,
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
    licenses: [{ license: { name: 'Node.js, in /usr/share/doc/node/copyright' } }],
    purl,
  };
}

function debianComponent({ architecture, name, version }) {
  const purl = `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}`;
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    licenses: [{ license: { name: `Debian, in /usr/share/doc/${name}/copyright` } }],
    purl,
  };
}
