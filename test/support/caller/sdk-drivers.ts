/** Starts the SDK drivers. */
import { execFile, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { ProofFormat } from '../../../src/protocol/proof-format.ts';
import type { SdkAnswer, SdkJob } from '../../caller/sdk/jobs.ts';

export interface SdkDriver {
  readonly language: string;
  /** Why it cannot run here; undefined when it can. */
  readonly missing: string | undefined;
  /** Compiles, where the language needs it; once. */
  prepare(): Promise<void>;
  /** @param keyFile with its state beside it @param proof default: transcript-v1 */
  sign(keyFile: string, jobs: readonly SdkJob[], proof?: ProofFormat): Promise<readonly SdkAnswer[]>;
}

const pathOf = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** Installed by `make sdk-tools`. */
export const PYTHON_PACKAGES = pathOf('../../../.cache/sdk-python/packages');
export const MISSING_PYTHON = existsSync(PYTHON_PACKAGES) ? undefined : 'run make sdk-tools';
/** Runs the Python SDK from its source. */
export const PYTHON_ENV: NodeJS.ProcessEnv = {
  ...process.env,
  PYTHONPATH: `${pathOf('../../../sdk/python/src')}:${PYTHON_PACKAGES}`,
  // Compiled files would stay beside the sources.
  PYTHONDONTWRITEBYTECODE: '1',
};

function pythonDriver(): SdkDriver {
  return {
    language: 'Python',
    missing: MISSING_PYTHON,
    prepare: async () => undefined,
    sign: (keyFile, jobs, proof = 'transcript-v1') =>
      runDriver(['python3', pathOf('../../caller/sdk/drivers/driver.py'), keyFile, proof], jobs, PYTHON_ENV),
  };
}

const GO_FOLDER = pathOf('../../../sdk/go/');
/**
 * Only the standard library is used, because nothing may be fetched. The user's build cache has it compiled: with the flag that
 * scripts/install-*.sh build tools with, or from an earlier run.
 */
export const GO_ENV: NodeJS.ProcessEnv = {
  ...process.env,
  GOENV: 'off',
  GOFLAGS: '-buildvcs=false -trimpath',
  GOPROXY: 'off',
  GOTELEMETRY: 'off',
  GOTOOLCHAIN: 'local',
};
const goVersion = spawnSync('go', ['version'], { env: GO_ENV, timeout: 20_000 });
export const MISSING_GO = goVersion.status === 0 ? undefined : 'go is not installed';

/** The SDK's test binary is its driver, because only tests may choose clock and identifiers. */
function goDriver(): SdkDriver {
  const program = join(tmpdir(), `proofgate-sdk-driver-${process.pid}`);
  let built: Promise<unknown> | undefined;
  return {
    language: 'Go',
    missing: MISSING_GO,
    prepare: async () => {
      built ??= promisify(execFile)('go', ['test', '-c', '-o', program, '.'], {
        cwd: GO_FOLDER,
        env: GO_ENV,
      });
      await built;
    },
    sign: (keyFile, jobs, proof = 'transcript-v1') => {
      const driver = { PROOFGATE_SDK_DRIVER_KEY: keyFile, PROOFGATE_SDK_DRIVER_PROOF: proof };
      return runDriver([program], jobs, { ...GO_ENV, ...driver });
    },
  };
}

/** Starts fast rather than runs fast: each test is short. */
const JAVA_FLAGS = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Xshare:auto'];
const JAVA_FOLDER = pathOf('../../../sdk/java/');
/** Installed by `make sdk-tools`: OkHttp and Spring, for which the SDK has adapters. */
const JAVA_JARS = pathOf('../../../.cache/sdk-java/jars');
const hasJavac = spawnSync('javac', ['-version'], { timeout: 60_000 }).status === 0;
export const MISSING_JAVA = existsSync(JAVA_JARS) && hasJavac ? undefined : 'run make sdk-tools';

/** Compiles the SDK for Java with its tests and examples; once for all test files. @returns the arguments of `java` */
export async function javaProgram(): Promise<readonly string[]> {
  const sources = readdirSync(JAVA_FOLDER, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.java'))
    .sort()
    .map((file) => join(JAVA_FOLDER, file));
  const hash = createHash('sha256').update(realpathSync(JAVA_JARS));
  for (const source of sources) hash.update(readFileSync(source));
  const classes = pathOf(`../../../.build/sdk-java/${hash.digest('hex').slice(0, 16)}`);
  if (!existsSync(classes)) {
    mkdirSync(dirname(classes), { recursive: true });
    const unfinished = mkdtempSync(`${classes}-`);
    const lint = [
      '--release',
      '17',
      '-Xlint:all,-classfile',
      '-Xdoclint:all,-missing',
      '-Werror',
      '-proc:none',
    ];
    await promisify(execFile)('javac', [...lint, '-cp', `${JAVA_JARS}/*`, '-d', unfinished, ...sources]);
    try {
      renameSync(unfinished, classes);
    } catch (error) {
      // The first of two that finish at the same time is kept.
      rmSync(unfinished, { recursive: true });
      if (!existsSync(classes)) throw error;
    }
  }
  return [...JAVA_FLAGS, '-cp', `${classes}:${JAVA_JARS}/*`];
}

/** Runs a class of the SDK, its tests or its examples. */
export async function runJava(args: readonly string[]): Promise<{ readonly stdout: string }> {
  // A test that hangs ends before its caller.
  const timeout = PREPARE_TIMEOUT_MS - 60_000;
  return promisify(execFile)('java', [...(await javaProgram()), ...args], { timeout });
}

function javaDriver(): SdkDriver {
  let program: readonly string[] = [];
  return {
    language: 'Java',
    missing: MISSING_JAVA,
    prepare: async () => {
      program = await javaProgram();
    },
    sign: (keyFile, jobs, proof = 'transcript-v1') =>
      runDriver(['java', ...program, 'example.proofgate.Driver', keyFile, proof], jobs),
  };
}

function nodeDriver(): SdkDriver {
  return {
    language: 'Node',
    missing: undefined,
    prepare: async () => undefined,
    sign: (keyFile, jobs, proof = 'transcript-v1') =>
      runDriver([process.execPath, pathOf('../../caller/sdk/drivers/driver.mjs'), keyFile, proof], jobs),
  };
}

/** A cold cache compiles Go's standard library. */
export const PREPARE_TIMEOUT_MS = 400_000;
export const SDK_DRIVERS: readonly SdkDriver[] = [nodeDriver(), pythonDriver(), goDriver(), javaDriver()];

/** @throws with what the driver wrote to standard error when it does not answer every job */
export async function runDriver(
  [program = '', ...args]: readonly string[],
  jobs: readonly SdkJob[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<readonly SdkAnswer[]> {
  const child = spawn(program, args, { env, stdio: 'pipe' });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint += text;
  });
  // A driver that ends early reports the reason itself.
  child.stdin.on('error', () => undefined);
  child.stdin.end(jobs.map((job) => `${JSON.stringify(job)}\n`).join(''));
  const answers: SdkAnswer[] = [];
  for await (const line of createInterface({ input: child.stdout })) answers.push(JSON.parse(line));
  const code = await ended;
  if (code !== 0 || answers.length !== jobs.length)
    throw new Error(`${program} ${code}: ${complaint.trim()}`);
  return answers;
}
