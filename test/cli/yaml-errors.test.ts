/** Each command that reads YAML of a user says in its own words where the fault is: stable code, line and column. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { runInProcess } from '../support/cli/in-process.ts';

const FAULTS = [
  { name: 'two.yaml', text: 'a: 1\n---\nb: 2\n', line: 2, column: 1 },
  { name: 'bracket.yaml', text: 'a: 1\nb: [1\n', line: 3, column: 1 },
  { name: 'quote.yaml', text: 'a: 1\nb: "x\n', line: 3, column: 1 },
];
const FILE = /\.(?:yaml|pem)$|^(?:token|headers)$/;

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proofgate-yaml-'));
  for (const { name, text } of FAULTS) await writeFile(join(folder, name), text);
  await writeFile(join(folder, 'token'), 'x'.repeat(47), { mode: 0o600 });
  await runInProcess(['keygen', '--out', join(folder, 'key.pem')]);
});
afterAll(() => rm(folder, { recursive: true }));

const CONTROL = ['--control-url', 'http://127.0.0.1:9', '--token-file', 'token'];
const PROFILE = ['--key', 'key.pem', '--passport-file', 'token', '--profile-file'];

it.each([
  ['config_invalid', ['keygen', '--out', 'other.pem', '--config']],
  ['site_file_invalid', ['ctl', 'apply', ...CONTROL, '-f']],
  ['yaml_invalid', ['bundle', 'lint']],
  ['profile_invalid', ['sign', 'GET', 'https://a.example/', '--out', 'headers', ...PROFILE]],
  ['gateway_file_invalid', ['envoy', 'lint']],
  ['gateway_file_invalid', ['traefik', 'lint']],
])('%s: %j', async (code, words) => {
  for (const { name, column, line } of FAULTS) {
    // Gateways read several documents of one file.
    if (name === 'two.yaml' && code === 'gateway_file_invalid') continue;
    const files = [...words, name].map((word) => (FILE.test(word) ? join(folder, word) : word));
    const { exitCode, stderr, stdout } = await runInProcess(files);
    expect(stderr).toMatch(
      new RegExp(`^error: ${code}: [^\\n]*: line ${line}, column ${column}: [^\\n]+\\n$`),
    );
    expect(stderr).not.toMatch(/YAML\.|implicit|scalar|Flow|token/);
    expect(stderr + stdout).not.toContain('YAML.');
    expect(exitCode).toBe(code === 'yaml_invalid' ? 3 : 2);
  }
});
