/** The scripts that build tools from Go modules: one that ends halfway leaves nothing that says all of them are there. */
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { checkoutPath } from '../e2e/harness/checkout.ts';

/** What a script reads before it builds anything. */
const SCRIPTS = [
  {
    script: 'scripts/install-helm-tools.sh',
    cache: 'helm',
    reads: ['scripts/make-helm-schemas.mjs', 'scripts/check-rules/main.go'],
  },
  {
    script: 'scripts/install-gateway-translators.sh',
    cache: 'gateways',
    reads: ['test/gateways/istio/translate_test.go'],
  },
];

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'pg-tools-'));
  const go = join(root, 'bin', 'go');
  mkdirSync(dirname(go));
  writeFileSync(go, '#!/bin/sh\necho "no such module" >&2\nexit 1\n');
  chmodSync(go, 0o755);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

it.each(SCRIPTS)('$script', ({ cache, reads, script }) => {
  for (const file of [script, ...reads]) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    cpSync(checkoutPath(file), join(root, file));
  }
  const stamp = join(root, '.cache', cache, 'installed');
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, 'of an older script\n');
  const env = { ...process.env, PATH: `${join(root, 'bin')}:${process.env.PATH}` };
  const { status, stderr } = spawnSync(join(root, script), [], { env, encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining('no such module') });
  expect(existsSync(stamp)).toBe(false);
});
