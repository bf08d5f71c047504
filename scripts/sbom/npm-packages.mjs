/**
 * Packages of a lock file as CycloneDX components, with their dependencies. Source: CycloneDX 1.6 JSON; package-url's type npm.
 */
export const FOLDER = 'node_modules/';

/** Folders, below node_modules, of all packages except development packages and workspaces, for every system. */
export function productionFolders(lock) {
  return Object.entries(lock.packages)
    .filter(([path, { dev, link }]) => path.startsWith(FOLDER) && dev !== true && link !== true)
    .map(([path]) => path.slice(FOLDER.length));
}

/** Those of {@link productionFolders} that the root's dependencies lead to. */
export function foldersReached(lock) {
  const present = new Set(productionFolders(lock));
  const reached = new Set();
  const follow = (folder, locked) => {
    for (const found of wantedBy(locked).flatMap((name) => foundFrom(folder, name, present))) {
      if (reached.has(found)) continue;
      reached.add(found);
      follow(found, lock.packages[FOLDER + found]);
    }
  };
  follow('', lock.packages['']);
  return [...reached];
}

/**
 * @param folders below node_modules
 * @returns `components`, one for each name and version, and `dependencies`, the root's first
 */
export function describePackages(lock, folders, rootRef) {
  const present = new Set(folders);
  const components = new Map();
  for (const folder of [...folders].sort()) {
    const component = componentOf(folder, lock.packages[FOLDER + folder]);
    const known = components.get(component['bom-ref']);
    if (known === undefined) components.set(component['bom-ref'], component);
    else known.properties.push(...component.properties);
  }
  const refOf = (folder) => purlOf(nameOf(folder), lock.packages[FOLDER + folder].version);
  const dependsOn = (folder, locked) => [
    ...new Set(
      wantedBy(locked)
        .flatMap((name) => foundFrom(folder, name, present))
        .map(refOf),
    ),
  ];
  const edges = new Map([[rootRef, dependsOn('', lock.packages[''])]]);
  for (const folder of folders) {
    const more = dependsOn(folder, lock.packages[FOLDER + folder]);
    edges.set(refOf(folder), [...new Set([...(edges.get(refOf(folder)) ?? []), ...more])]);
  }
  return {
    components: [...components.values()],
    dependencies: [...edges].map(([ref, refs]) => ({ ref, dependsOn: refs.sort() })),
  };
}

/** @param folder below node_modules @param locked its entry in the lock file */
export function componentOf(folder, locked) {
  const { groups } = /^(?:(?<group>@[^/]+)\/)?(?<name>.+)$/.exec(nameOf(folder));
  const purl = purlOf(nameOf(folder), locked.version);
  return {
    type: 'library',
    'bom-ref': purl,
    ...(groups.group === undefined ? {} : { group: groups.group }),
    name: groups.name,
    version: locked.version,
    scope: locked.optional === true ? 'optional' : 'required',
    hashes: hashesOf(locked.integrity),
    licenses: licensesOf(locked.license),
    purl,
    properties: [{ name: 'cdx:npm:package:path', value: FOLDER + folder }],
  };
}

/** `a/node_modules/@s/b` is of `@s/b`. */
function nameOf(folder) {
  return folder.split(FOLDER).at(-1);
}

export function purlOf(name, version) {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}

/** Subresource integrity, as the lock file has it: `sha512-` and base64. */
function hashesOf(integrity) {
  return integrity.split(' ').map((each) => {
    const [algorithm, digest] = each.split(/-(.*)/);
    const content = Buffer.from(digest, 'base64').toString('hex');
    return { alg: algorithm.toUpperCase().replace('SHA', 'SHA-'), content };
  });
}

/** A single SPDX identifier, or an SPDX expression. */
export function licensesOf(license) {
  return /^[\w.+-]+$/.test(license) ? [{ license: { id: license } }] : [{ expression: license }];
}

function wantedBy({ dependencies = {}, optionalDependencies = {}, peerDependencies = {} }) {
  return Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies });
}

/**
 * Resolves a package like Node: in the folder's own node_modules, then further up. Empty for a package that is not
 * installed.
 */
function foundFrom(folder, name, present) {
  for (let at = folder; ; at = at.slice(0, Math.max(0, at.lastIndexOf(`/${FOLDER}`)))) {
    const candidate = at === '' ? name : `${at}/${FOLDER}${name}`;
    if (present.has(candidate)) return [candidate];
    if (at === '') return [];
  }
}
