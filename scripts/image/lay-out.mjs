#!/usr/bin/env node
/**
 * A step of the Dockerfile: lays out the image's root directory. It takes the compiled and installed files from the working
 * directory, and Node.js and the libraries that native code needs from another system's root.
 * Usage: lay-out.mjs amd64|arm64 --runtime=ROOT --out=DIRECTORY; SOURCE_DATE_EPOCH is the time of every file, in seconds, by
 * default 0.
 * Beside DIRECTORY it writes the list of its files, DIRECTORY.files.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, posix, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Failure, tellingFailures } from '../failure.mjs';
import { describeImage } from '../sbom/image.mjs';
import {
  HOME,
  isForImage,
  isKept,
  LAUNCHER,
  NODE,
  OWN,
  PACKAGE_MEMBERS,
  PROCESSORS,
  PROGRAM_LINK,
  SBOM,
  SYSTEM_FILES,
} from './contents.mjs';
import { ImageRoot } from './image-root.mjs';
import { librariesFor } from './libraries.mjs';
import { SystemRoot } from './system-root.mjs';

const PACKAGES = 'production/node_modules';

await tellingFailures(async () => {
  const { cpu, out, runtime } = readArguments();
  const processor = PROCESSORS[cpu];
  const epochSeconds = readEpoch();
  const system = new SystemRoot(runtime);
  const image = new ImageRoot(out);
  layOutProgram(image);
  const lock = JSON.parse(readFileSync('production/package-lock.json', 'utf8'));
  const packages = packageFolders(lock).filter(({ name }) => isForImage(name));
  const native = layOutPackages(image, packages, processor);
  const libraries = layOutSystem(image, { native, processor, system });
  const bom = describeImage({ lock, packages, libraries, cpu, epochSeconds, manifest: readManifest() });
  image.write(SBOM, `${JSON.stringify(bom, null, 2)}\n`);
  writeFileSync(`${out}.files`, `${image.finish(epochSeconds).join('\n')}\n`);
});

function readArguments() {
  const options = { runtime: { type: 'string' }, out: { type: 'string' } };
  const { positionals, values } = parseArgs({ options, allowPositionals: true });
  const [cpu] = positionals;
  if (!Object.hasOwn(PROCESSORS, cpu ?? ''))
    throw new Failure('cpu_unknown', 'an image is for amd64 or arm64');
  const { out, runtime } = values;
  if (out === undefined || runtime === undefined)
    throw new Failure('argument_missing', '--runtime and --out are needed');
  if (existsSync(out))
    throw new Failure('out_exists', `${out} is there already: name a directory that is not`);
  return { cpu, out: resolve(out), runtime: resolve(runtime) };
}

function readEpoch() {
  const text = process.env.SOURCE_DATE_EPOCH || '0';
  if (!/^\d{1,10}$/.test(text))
    throw new Failure('bad_epoch', 'SOURCE_DATE_EPOCH is a number of seconds since 1970');
  return Number(text);
}

function readManifest() {
  const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
  return Object.fromEntries(PACKAGE_MEMBERS.map((member) => [member, manifest[member]]));
}

function layOutProgram(image) {
  for (const { endings, path } of OWN) {
    if (endings === undefined) image.copy(`${HOME}/${path}`, path);
    const files = endings === undefined ? [] : filesBelow(path);
    for (const file of files.filter((each) => endings.some((ending) => each.endsWith(ending)))) {
      image.copy(`${HOME}/${path}/${file}`, `${path}/${file}`);
    }
  }
  image.write(`${HOME}/package.json`, `${JSON.stringify(readManifest(), null, 2)}\n`);
  const launcher = readFileSync(LAUNCHER.from, 'utf8').replace(/^#!.*$/m, LAUNCHER.firstLine);
  image.write(`${HOME}/${LAUNCHER.from}`, launcher, { executable: true });
  image.link(PROGRAM_LINK.path, PROGRAM_LINK.to);
}

/** Every package that was installed. @throws Failure when the lock file does not know it in this version */
function packageFolders(lock) {
  const manifests = filesBelow(PACKAGES).filter((file) => isPackageManifest(file));
  return manifests.map((file) => {
    const folder = posix.dirname(file);
    const { name, version } = JSON.parse(readFileSync(join(PACKAGES, file), 'utf8'));
    const locked = lock.packages[`node_modules/${folder}`];
    if (locked?.version !== version || locked.dev === true) {
      throw new Failure(
        'package_not_locked',
        `package-lock.json has no ${name} ${version} at node_modules/${folder}`,
      );
    }
    return { name, folder };
  });
}

/** `a/package.json`, `@s/a/node_modules/b/package.json`: not one of a folder within a package. */
function isPackageManifest(file) {
  return /^(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/@]+\/package\.json$/.test(file) && !/^\./.test(file);
}

/** @returns the native code among their files */
function layOutPackages(image, packages, { nodeCpu }) {
  return packages.flatMap(({ folder }) => {
    const own = filesBelow(join(PACKAGES, folder)).filter(
      (file) => !file.split('/').includes('node_modules'),
    );
    const kept = own.filter((file) => isKept(file, nodeCpu));
    for (const file of kept)
      image.copy(`${HOME}/node_modules/${folder}/${file}`, join(PACKAGES, folder, file));
    return kept.filter((file) => file.endsWith('.node')).map((file) => join(PACKAGES, folder, file));
  });
}

/** @returns the Debian packages of these libraries */
function layOutSystem(image, { native, processor, system }) {
  const node = system.find(NODE);
  if (node === undefined)
    throw new Failure('node_missing', `/${NODE} is not in the system that the image is made of`);
  image.copy(NODE, node, { executable: true });
  copyLicence(image, system, 'usr/local/LICENSE', 'node');
  for (const [path, content] of Object.entries(SYSTEM_FILES)) image.write(path, content);
  const owners = new Map();
  for (const [path, file] of librariesFor([node, ...native], processor, system)) {
    image.copy(path, file, { executable: true });
    const owner = system.ownerOf(file);
    owners.set(owner.name, owner);
  }
  for (const { name } of owners.values()) copyLicence(image, system, `usr/share/doc/${name}/copyright`, name);
  return [...owners.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** The licence of a package, which a distributor must give to every recipient of the program. */
function copyLicence(image, system, path, of) {
  const file = system.find(path);
  if (file === undefined)
    throw new Failure('licence_missing', `/${path} is not in the system that the image is made of`);
  image.copy(`usr/share/doc/${of}/copyright`, file);
}

/** Sorted, so that a tree is always traversed in the same order. */
function filesBelow(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => posix.relative(folder, posix.join(entry.parentPath ?? entry.path, entry.name)))
    .sort();
}
