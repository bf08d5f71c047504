import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { expectCliError, runCli } from '../support/cli/run-cli.ts';

const LAUNCHER = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'bin', 'proofgate');

it('says so when there is nothing to launch yet', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'proofgate-launcher-'));
  try {
    await mkdir(join(folder, 'bin'));
    await writeFile(join(folder, 'package.json'), '{"type":"module"}');
    await copyFile(LAUNCHER, join(folder, 'bin', 'proofgate'));
    const run = await runCli(join(folder, 'bin', 'proofgate'), ['--version'], { cwd: folder });
    expectCliError(run, 'not_built', 1);
    expect(run.stderr).toMatch('make build');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
