/** Runs the signers in other languages, where this machine has their toolchains. */
import { spawn, spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { IssuedPassport, PassportJob, SignedAnswer, SigningJob } from './job.ts';

export interface ForeignSigner {
  readonly language: 'Python' | 'Go';
  /** Why it cannot run here, in a few words; undefined when it can. */
  readonly missing: string | undefined;
  /** Compiles, where the language wants it; once. */
  prepare(): Promise<void>;
  /** @throws with what the program said when it refuses the job */
  sign(job: SigningJob): Promise<SignedAnswer>;
}

/** A cold cache compiles Go's whole standard library. */
export const PREPARE_TIMEOUT_MS = 400_000;

const folderOf = (name: string) => fileURLToPath(new URL(`../../interop/${name}/`, import.meta.url));

function pythonSigner(): ForeignSigner {
  // Without -B it would leave compiled files beside its own.
  const args = ['-B', join(folderOf('python'), 'sign.py')];
  return {
    language: 'Python',
    missing: unlessAtLeast('python3', ['--version'], [3, 9]),
    prepare: async () => undefined,
    sign: (job) => runSigner('python3', args, job),
  };
}

function goSigner(): ForeignSigner {
  const program = join(tmpdir(), `proofgate-interop-signer-${process.pid}`);
  // Only the standard library is used, because nothing may be fetched: as in ../caller/sdk-drivers.ts.
  const env = {
    ...process.env,
    GOENV: 'off',
    GOFLAGS: '-buildvcs=false -trimpath',
    GOPROXY: 'off',
    GOTOOLCHAIN: 'local',
    GOTELEMETRY: 'off',
  };
  let built: Promise<void> | undefined;
  return {
    language: 'Go',
    missing: unlessAtLeast('go', ['version'], [1, 21], env),
    prepare: () => {
      built ??= run('go', ['build', '-o', program, '.'], { cwd: folderOf('go'), env }).then(() => undefined);
      return built;
    },
    sign: (job) => runSigner(program, [], job),
  };
}

/** Why `getPassport` cannot run here; undefined when it can. */
export function missingForPassports(): string | undefined {
  const ended = spawnSync('python3', ['-c', 'import cryptography'], { timeout: 20_000 });
  if (ended.error !== undefined) return 'python3 is not installed';
  return ended.status === 0 ? undefined : 'python3 has no package cryptography';
}

/** @throws with the code when the broker refuses */
export async function getPassport(job: PassportJob): Promise<IssuedPassport> {
  const args = ['-B', join(folderOf('python'), 'get_passport.py')];
  return JSON.parse(await run('python3', args, { input: JSON.stringify(job) }));
}

export function foreignSigners(): readonly ForeignSigner[] {
  return [pythonSigner(), goSigner()];
}

/** Reports in one line which signers are skipped. */
export function saySkipped({ language, missing }: ForeignSigner): void {
  process.stdout.write(`the signer in ${language} is not tested: ${missing}\n`);
}

function unlessAtLeast(
  command: string,
  args: readonly string[],
  [wantedMajor, wantedMinor]: readonly [number, number],
  env?: NodeJS.ProcessEnv,
): string | undefined {
  const ended = spawnSync(command, args, { encoding: 'utf8', timeout: 20_000, ...(env && { env }) });
  if (ended.error !== undefined || ended.status !== 0) return `${command} is not installed`;
  const [, major = 0, minor = 0] = /(\d+)\.(\d+)/.exec(ended.stdout)?.map(Number) ?? [];
  if (major > wantedMajor || (major === wantedMajor && minor >= wantedMinor)) return undefined;
  return `${command} is ${major}.${minor}, and ${wantedMajor}.${wantedMinor} is needed`;
}

async function runSigner(command: string, args: readonly string[], job: SigningJob): Promise<SignedAnswer> {
  return JSON.parse(await run(command, args, { input: JSON.stringify(job) }));
}

interface RunOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly input?: string;
}

function run(command: string, args: readonly string[], options: RunOptions): Promise<string> {
  const { input = '', ...others } = options;
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...others, stdio: 'pipe' });
    const output = { stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output.stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output.stderr += text;
    });
    // A program that ends before it has read its job reports the reason itself.
    child.stdin.on('error', () => undefined);
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve(output.stdout);
      else reject(new Error(`${command}: ${output.stderr.trim()}`));
    });
    child.stdin.end(input);
  });
}
