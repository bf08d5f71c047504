/** Starts the SDK drivers. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { SdkAnswer, SdkJob } from './jobs.ts';

export interface SdkDriver {
  readonly language: string;
  /** Undefined: it can run here. Otherwise why not. */
  readonly missing: string | undefined;
  /** Compiles, where the language needs it; once. */
  prepare(): Promise<void>;
  /** @param keyFile with its state beside it */
  sign(keyFile: string, jobs: readonly SdkJob[]): Promise<readonly SdkAnswer[]>;
}

const pathOf = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** Installed by `make sdk-tools`. */
export const PYTHON_PACKAGES = pathOf('../../.cache/sdk-python/packages');
export const MISSING_PYTHON = existsSync(PYTHON_PACKAGES) ? undefined : 'run make sdk-tools';
/** Runs the Python SDK from its source. */
export const PYTHON_ENV: NodeJS.ProcessEnv = {
  ...process.env,
  PYTHONPATH: `${pathOf('../../sdk/python/src')}:${PYTHON_PACKAGES}`,
  // Compiled files would stay beside the sources.
  PYTHONDONTWRITEBYTECODE: '1',
};

function pythonDriver(): SdkDriver {
  return {
    language: 'Python',
    missing: MISSING_PYTHON,
    prepare: async () => undefined,
    sign: (keyFile, jobs) => runDriver(['python3', pathOf('drivers/driver.py'), keyFile], jobs, PYTHON_ENV),
  };
}

export const SDK_DRIVERS: readonly SdkDriver[] = [pythonDriver()];

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
  // A driver that ends early says why by itself.
  child.stdin.on('error', () => undefined);
  child.stdin.end(jobs.map((job) => `${JSON.stringify(job)}\n`).join(''));
  const answers: SdkAnswer[] = [];
  for await (const line of createInterface({ input: child.stdout })) answers.push(JSON.parse(line));
  const code = await ended;
  if (code !== 0 || answers.length !== jobs.length)
    throw new Error(`${program} ${code}: ${complaint.trim()}`);
  return answers;
}
