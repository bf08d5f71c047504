/** Reads the API of the Python package: api.py prints it, because Python's own parser knows its docstrings. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Failure } from '../../failure.mjs';

/** @returns {readonly import('./main.mjs').Entry[]} */
export function pythonEntries(root) {
  const args = [
    fileURLToPath(new URL('api.py', import.meta.url)),
    join(root, 'sdk', 'python', 'src', 'proofgate'),
  ];
  const { error, status, stdout, stderr } = spawnSync('python3', args, { encoding: 'utf8' });
  if (error !== undefined || status !== 0)
    throw new Failure('python_failed', error?.message ?? stderr.trim());
  return JSON.parse(stdout);
}
