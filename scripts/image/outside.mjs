/**
 * Runs the Dockerfile's steps without a container engine: in an empty directory with an empty environment, with Node.js and the
 * libraries that scripts/install-image-tools.sh has put into .cache/image. It writes the image's root, and beside it the list
 * of its files. As in BuildKit, the steps before `ARG TARGETARCH` run once for all processors.
 * Usage: outside.mjs [--amd64=DIRECTORY] [--arm64=DIRECTORY]
 */
import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { Failure, tellingFailures } from '../failure.mjs';
import { PROCESSORS } from './contents.mjs';
import { copiedBy, parseDockerfile, parseDockerignore } from './dockerfile.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const CACHE = join(ROOT, '.cache', 'image');
/** Programs that the step itself needs: sh, cp, mkdir. */
const SYSTEM_PATH = ['/usr/bin', '/bin'];
/** The stage that builds, and the stage from which it copies Node.js. */
const BUILD = 'build';

await tellingFailures(async () => {
  const outs = readArguments();
  const { stages } = parseDockerfile(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'));
  const { steps } = stages.find(({ name }) => name === BUILD);
  const directory = mkdtempSync(join(tmpdir(), 'proofgate-image-'));
  try {
    await build(steps, { image: builtAt(stages), outs, directory });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

/** @returns directories by processor */
function readArguments() {
  const options = Object.fromEntries(Object.keys(PROCESSORS).map((cpu) => [cpu, { type: 'string' }]));
  const outs = Object.entries(parseArgs({ options }).values).map(([cpu, out]) => [cpu, resolve(out)]);
  if (outs.length === 0) throw new Failure('argument_missing', '--amd64 or --arm64 is needed');
  if (outs.some(([cpu]) => !existsSync(join(CACHE, cpu))))
    throw new Failure('image_tools_missing', 'run scripts/install-image-tools.sh first');
  return outs;
}

/** The paths that the last stage copies from the build stage. */
function builtAt(stages) {
  const copy = stages.at(-1).steps.find(({ flags }) => flags.from === BUILD);
  return copiedBy(copy).sources[0].replace(/\/$/, '');
}

async function build(steps, { directory, image, outs }) {
  const context = join(directory, 'context');
  mkdirSync(context);
  const environment = {
    PATH: [programsIn(directory), ...SYSTEM_PATH].join(delimiter),
    HOME: directory,
    ...npmSettings(),
  };
  const first = steps.findIndex(({ instruction, text }) => instruction === 'ARG' && text === 'TARGETARCH');
  await carryOut(steps.slice(0, first), { context, environment });
  const shared = new Set(readdirSync(context));
  for (const [cpu, out] of outs) {
    await carryOut(steps.slice(first), { context, environment: { ...environment }, cpu, image, out });
    for (const name of readdirSync(context).filter((each) => !shared.has(each)))
      rmSync(join(context, name), { recursive: true });
  }
}

async function carryOut(steps, { context, cpu, environment, image, out }) {
  for (const step of steps) {
    if (step.instruction === 'COPY') copy(step, context);
    if (step.instruction === 'ARG') Object.assign(environment, argumentOf(step, cpu));
    if (step.instruction === 'RUN')
      await run(step, { context, environment, places: placesOf(step, { cpu, image, out }) });
  }
}

/** The image's Node.js, whatever version runs this script, and this machine's npm. */
function programsIn(directory) {
  const programs = join(directory, 'programs');
  mkdirSync(programs);
  symlinkSync(join(CACHE, 'node'), join(programs, 'node'));
  symlinkSync(npmProgram(), join(programs, 'npm'));
  return programs;
}

function npmProgram() {
  const folders = [dirname(process.execPath), ...(process.env.PATH ?? '').split(delimiter)];
  const found = folders.map((folder) => join(folder, 'npm')).find((file) => existsSync(file));
  if (found === undefined) throw new Failure('npm_missing', 'install npm, which comes with Node.js');
  return realpathSync(found);
}

/** This machine's settings of its registry and cache, which do not change what is installed. */
function npmSettings() {
  const {
    NODE_EXTRA_CA_CERTS: certificates,
    npm_config_cache: cache,
    npm_config_registry: registry,
  } = process.env;
  const home = cache ?? join(process.env.HOME ?? ROOT, '.npm');
  return {
    npm_config_cache: home,
    npm_config_prefer_offline: 'true',
    ...(registry === undefined ? {} : { npm_config_registry: registry }),
    ...(certificates === undefined ? {} : { NODE_EXTRA_CA_CERTS: certificates }),
  };
}

function argumentOf({ text }, cpu) {
  const [name, value = ''] = text.split('=', 2);
  return { [name]: name === 'TARGETARCH' ? cpu : (process.env[name] ?? value) };
}

/** Files that .dockerignore excludes cannot be copied. */
function copy(step, context) {
  const isIgnored = parseDockerignore(readFileSync(join(ROOT, '.dockerignore'), 'utf8'));
  const { destination, sources } = copiedBy(step);
  const filter = (source) => statSync(source).isDirectory() || !isIgnored(relative(ROOT, source));
  for (const source of sources) {
    const to = destination.endsWith('/') ? join(context, destination, source) : join(context, destination);
    cpSync(join(ROOT, source), to, { recursive: true, filter });
  }
}

/** Maps absolute paths of the Dockerfile to this machine. */
function placesOf({ flags }, { cpu, image, out }) {
  const target = /(?:^|,)target=([^,]+)/.exec(flags.mount ?? '')?.[1];
  return new Map([[image, out], ...(target === undefined ? [] : [[target, join(CACHE, cpu)]])]);
}

async function run({ text }, { context, environment, places }) {
  const here = text.replace(/(?<=[\s=])(\/[a-z]+)(?=\s|$)/g, (path) => places.get(path) ?? path);
  const step = promisify(execFile)('sh', ['-c', here], {
    cwd: context,
    env: environment,
    maxBuffer: 2 ** 26,
  });
  await step.catch(({ stderr = '' }) => {
    const last = stderr.trim().split('\n').at(-1);
    throw new Failure('step_failed', `${text}: ${last.replace(/^error: /, '')}`);
  });
}
