/** Runs the Python SDK's own tests, and its examples. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { MISSING_PYTHON, PYTHON_ENV } from '../../support/caller/sdk-drivers.ts';

const SDK = fileURLToPath(new URL('../../../sdk/python/', import.meta.url));
const itRuns = MISSING_PYTHON === undefined ? it : it.skip;

itRuns('passes its own tests with httpx and requests', () => {
  const args = ['-W', 'error::ResourceWarning', '-m', 'unittest', 'discover', '-s', 'tests'];
  const ended = spawnSync('python3', args, { cwd: SDK, env: PYTHON_ENV, encoding: 'utf8', timeout: 240_000 });
  expect(ended.stderr).toMatch(/\nRan \d\d tests in .*\n\nOK\n$/);
});
