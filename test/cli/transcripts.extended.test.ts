import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, it } from '@jest/globals';
import { LAUNCHER } from '../support/cli/compiled-cli.ts';
import { runInProcess } from '../support/cli/in-process.ts';
import { playTranscript } from '../support/cli/play-transcript.ts';
import { runCli } from '../support/cli/run-cli.ts';
import { parseTranscript } from '../support/cli/transcript.ts';

/** Errors come without a process of their own, which would take most of the time, unless it is the process that has to find them. */
const run: Parameters<typeof playTranscript>[1] = (args, options) =>
  options.isRefused && options.stdin === '' && !args.includes('-')
    ? inFolder(options.cwd, () => runInProcess(args, options.env))
    : runCli(LAUNCHER, args, options);

async function inFolder<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const before = process.cwd();
  process.chdir(folder);
  try {
    return await work();
  } finally {
    process.chdir(before);
  }
}

const FOLDER = join(dirname(fileURLToPath(import.meta.url)), 'transcripts');

describe('command line transcripts', () => {
  it.each(readdirSync(FOLDER).filter((name) => name.endsWith('.txt')))('%s', async (name) => {
    const folder = await mkdtemp(join(tmpdir(), 'proofgate-cli-'));
    try {
      const transcript = parseTranscript(readFileSync(join(FOLDER, name), 'utf8'));
      await playTranscript(transcript, run, folder);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});
