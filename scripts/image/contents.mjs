/** Lists the contents of an image: a file that is not listed here is not in the image. */

/** The program's directory in the image. */
export const HOME = 'opt/proofgate';

/** Our files, below the build's directory; in a folder, those with one of the endings. */
export const OWN = [
  { path: 'LICENSE' },
  { path: 'dist', endings: ['.js'] },
  { path: 'dist/bundle/format/schemas', endings: ['.json'] },
  { path: 'dist/console', endings: ['.html', '.css', '.br', '.gz', '.md'] },
  { path: 'proto', endings: ['.proto'] },
];

/** Files of each production package: code, data and native code by their endings, and its licence. */
const PACKAGE_ENDINGS = ['.js', '.cjs', '.mjs', '.json', '.node', '.proto'];
const LICENCE = /^(?:licen[cs]e|notice|copying)(?:[.-][\w.-]*)?$/i;

/** Top-level folders of a package from which no program loads files. */
const LEFT_OUT = new Set([
  '.github',
  'benchmark',
  'benchmarks',
  'coverage',
  'doc',
  'docs',
  'example',
  'examples',
  'test',
  'tests',
]);

/** Compiled tests lie beside the compiled code. */
const COMPILED_TESTS = /^(?:build|dist|lib)\/tests?\//;

/** Packages have native code for many systems; the image's system uses glibc. */
const OTHER_LIBC = /-musl(?:eabihf)?$/;
const PREBUILDS = /^prebuilds\/([^/]+)\//;

/** @param name the name of a package, such as `@libsql/linux-x64-musl` */
export function isForImage(name) {
  return !OTHER_LIBC.test(name);
}

/**
 * @param file a file of a package, below its folder @param nodeCpu Node's name of the processor: `x64`, `arm64`
 */
export function isKept(file, nodeCpu) {
  const [top] = file.split('/', 1);
  const name = file.slice(file.lastIndexOf('/') + 1);
  const system = PREBUILDS.exec(file)?.[1];
  if (system !== undefined && system !== `linux-${nodeCpu}`) return false;
  if (LICENCE.test(name)) return !name.endsWith('.map');
  if (LEFT_OUT.has(top) || COMPILED_TESTS.test(file)) return false;
  return PACKAGE_ENDINGS.some((ending) => name.endsWith(ending));
}

/** The kernel starts the program by its first line. It names node directly, because the image has no `env`. */
export const LAUNCHER = { from: 'bin/proofgate', firstLine: '#!/usr/local/bin/node' };

/** The members of package.json that the program reads. */
export const PACKAGE_MEMBERS = ['name', 'version', 'license', 'type'];

/** User and group, which helm/proofgate and the Dockerfile must repeat. */
export const USER = { name: 'proofgate', id: 65532 };

/** System files that the C library reads: names of users, and settings of host lookup. */
export const SYSTEM_FILES = {
  'etc/passwd': `root:x:0:0:root:/:/nonexistent\n${USER.name}:x:${USER.id}:${USER.id}:${USER.name}:/nonexistent:/nonexistent\n`,
  'etc/group': `root:x:0:\n${USER.name}:x:${USER.id}:\n`,
  'etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
};

export const NODE = 'usr/local/bin/node';
export const PROGRAM_LINK = { path: 'usr/local/bin/proofgate', to: `/${HOME}/bin/proofgate` };
export const SBOM = 'usr/share/sbom/proofgate.cdx.json';

/** By Docker's name of a processor: Node's name, Debian's folder of libraries, and the number in an ELF header. */
export const PROCESSORS = {
  amd64: { nodeCpu: 'x64', libraries: 'x86_64-linux-gnu', elfMachine: 62 },
  arm64: { nodeCpu: 'arm64', libraries: 'aarch64-linux-gnu', elfMachine: 183 },
};
