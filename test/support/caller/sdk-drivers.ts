/** Starts the SDK drivers. */
import { execFile, spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { SdkAnswer, SdkJob } from '../../caller/sdk/jobs.ts';

export interface SdkDriver {
  readonly language: string;
  /** Why it cannot run here; undefined when it can. */
  readonly missing: string | undefined;
  /** Compiles, where the language needs it; once. */
  prepare(): Promise<void>;
  /** @param keyFile with its state beside it */
  sign(keyFile: string, jobs: readonly SdkJob[]): Promise<readonly SdkAnswer[]>;
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
    sign: (keyFile, jobs) =>
      runDriver(['python3', pathOf('../../caller/sdk/drivers/driver.py'), keyFile], jobs, PYTHON_ENV),
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
    sign: (keyFile, jobs) => runDriver([program], jobs, { ...GO_ENV, PROOFGATE_SDK_DRIVER_KEY: keyFile }),
  };
}

function nodeDriver(): SdkDriver {
  return {
    language: 'Node',
    missing: undefined,
    prepare: async () => undefined,
    sign: (keyFile, jobs) =>
      runDriver([process.execPath, pathOf('../../caller/sdk/drivers/driver.mjs'), keyFile], jobs),
  };
}

/** A cold cache compiles Go's standard library. */
export const PREPARE_TIMEOUT_MS = 400_000;
export const SDK_DRIVERS: readonly SdkDriver[] = [nodeDriver(), pythonDriver(), goDriver()];

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
