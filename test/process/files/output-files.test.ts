/** Replacing a file removes what a killed process left of an earlier replacement, and nothing else. */
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { replaceFile } from '../../../src/process/files/output-files.ts';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proofgate-replace-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const TAIL = '0123456789abcdef';
const HOUR_SECONDS = 3600;

async function put(name: string, ageSeconds: number): Promise<void> {
  await writeFile(join(folder, name), 'left');
  const at = Date.now() / 1000 - ageSeconds;
  await utimes(join(folder, name), at, at);
}

const replace = () => replaceFile({ path: join(folder, 'state.json'), content: 'new', mode: 0o600 });

it('removes temporary files of killed processes', async () => {
  await put(`.state.json.${TAIL}`, HOUR_SECONDS);
  await put(`.state.json.${TAIL.replace('0', 'f')}`, 20 * HOUR_SECONDS);
  await replace();
  expect(await readdir(folder)).toEqual(['state.json']);
  expect(await readFile(join(folder, 'state.json'), 'utf8')).toBe('new');
});

it('keeps the file of a process that may be writing now, and everything of other names', async () => {
  await put(`.state.json.${TAIL}`, 1);
  const others = [`.other.json.${TAIL}`, `.state.json.${TAIL}0`, '.state.json.current', 'state.json.bak'];
  for (const name of others) await put(name, HOUR_SECONDS);
  await mkdir(join(folder, `.state.json.${'a'.repeat(16)}`));
  await symlink('nowhere', join(folder, `.state.json.${'b'.repeat(16)}`));
  const before = await readdir(folder);
  await replace();
  expect((await readdir(folder)).sort()).toEqual([...before, 'state.json'].sort());
});
