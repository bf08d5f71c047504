import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, it } from '@jest/globals';
import { LAUNCHER } from '../support/cli/compiled-cli.ts';
import { playTranscript } from '../support/cli/play-transcript.ts';
import { runCli } from '../support/cli/run-cli.ts';
import { parseTranscript } from '../support/cli/transcript.ts';

const FOLDER = join(dirname(fileURLToPath(import.meta.url)), 'transcripts');

describe('command line transcripts', () => {
  it.each(readdirSync(FOLDER).filter((name) => name.endsWith('.txt')))('%s', async (name) => {
    const folder = await mkdtemp(join(tmpdir(), 'proofgate-cli-'));
    try {
      const transcript = parseTranscript(readFileSync(join(FOLDER, name), 'utf8'));
      await playTranscript(transcript, (args, options) => runCli(LAUNCHER, args, options), folder);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});
