/** Completion in real interactive shells: a key is pressed, and the command that the shell then runs is recorded. */
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { SHELLS, type Shell } from '../../../src/cli/completion/shell-scripts.ts';
import { LAUNCHER } from '../../support/cli/compiled-cli.ts';

const DRIVER = join(dirname(fileURLToPath(import.meta.url)), 'press-tab.py');
const TIMEOUT_MS = 90_000;
const SETUP: { readonly [S in Shell]: string } = {
  bash: 'source <(proofgate completion bash)',
  zsh: 'source <(proofgate completion zsh)',
  fish: 'proofgate completion fish | source',
};

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'completion-'));
  await writeFile(join(folder, 'order one.json'), '{}');
  // Completion runs the real program; any other command line is recorded, and the shell ends.
  const program = `#!/bin/sh
case $1 in completion*) exec node '${LAUNCHER}' "$@" ;; esac
printf '%s\\n' "$@" >recorded
`;
  await writeFile(join(folder, 'proofgate'), program);
  await chmod(join(folder, 'proofgate'), 0o755);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** @param line in which \t is the Tab key @returns arguments of the command that ran */
async function run(shell: Shell, line: string): Promise<readonly string[]> {
  await rm(join(folder, 'recorded'), { force: true });
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}`, TERM: 'xterm', HOME: folder };
  const { stdout } = await promisify(execFile)('python3', [DRIVER, shell, SETUP[shell], `${line}; exit`], {
    cwd: folder,
    env,
    timeout: TIMEOUT_MS,
  });
  const recorded = await readFile(join(folder, 'recorded'), 'utf8').catch(() => `not run: ${stdout}`);
  return recorded.trimEnd().split('\n');
}

describe.each(SHELLS)('%s', (shell) => {
  it.each([
    ['proofgate ctl appl\\t', ['ctl', 'apply']],
    ['proofgate ctl get prop\\t', ['ctl', 'get', 'propagation']],
    [
      'proofgate sign GET https://a.example/ --form\\tj\\t',
      ['sign', 'GET', 'https://a.example/', '--format', 'json'],
    ],
    [
      'proofgate request POST x --body-file order\\t',
      ['request', 'POST', 'x', '--body-file', 'order one.json'],
    ],
  ])('%s', async (line, words) => {
    expect(await run(shell, line)).toEqual(words);
  });
});
