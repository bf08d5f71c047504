/** Starts the SDK drivers. */
import { spawn, spawnSync } from 'node:child_process';
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

function pythonDriver(): SdkDriver {
  const env = { ...process.env, PYTHONPATH: pathOf('../../sdk/python/src') };
  const found = spawnSync('python3', ['-c', 'import cryptography'], { timeout: 20_000 });
  return {
    language: 'Python',
    missing: found.status === 0 ? undefined : 'python3 has no package cryptography',
    prepare: async () => undefined,
    // Without -B it would leave compiled files beside its own.
    sign: (keyFile, jobs) => runDriver(['python3', '-B', pathOf('drivers/driver.py'), keyFile], jobs, env),
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
