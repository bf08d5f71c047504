/** Tests the scripts that build tools from Go modules: checkouts share a complete set, and a failed build leaves none. */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { checkoutPath } from '../support/harness/checkout.ts';

/** Scripts with the files that they read before a build. */
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

const keptSets = (cache: string) => join(root, 'shared', 'proofgate', cache);

/** Runs a script in a separate checkout, with a fake Go that builds nothing. */
function install(script: string, reads: readonly string[]) {
  for (const file of [script, 'scripts/tool-cache.sh', ...reads]) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    cpSync(checkoutPath(file), join(root, file));
  }
  const env = {
    ...process.env,
    PATH: `${join(root, 'bin')}:${process.env.PATH}`,
    XDG_CACHE_HOME: join(root, 'shared'),
  };
  return spawnSync(join(root, script), [], { env, encoding: 'utf8' });
}

it.each(SCRIPTS)('$script leaves nothing behind when a build fails', ({ cache, reads, script }) => {
  const older = join(keptSets(cache), 'older');
  mkdirSync(older, { recursive: true });
  mkdirSync(join(root, '.cache'));
  symlinkSync(older, join(root, '.cache', cache));
  const { status, stderr } = install(script, reads);
  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining('no such module') });
  expect(existsSync(join(root, '.cache', cache))).toBe(false);
  expect(readdirSync(keptSets(cache))).toEqual(['older']);
});

/** Two checkouts that build the same set concurrently. */
const TWO_CHECKOUTS = `
. ${checkoutPath('scripts', 'tool-cache.sh')}
use() { root=$XDG_CACHE_HOME/$1; }
use first; first=$(unfinished_tools helm); echo first >"$first/tool"
use second; ! link_tools helm HASH; second=$(unfinished_tools helm); echo second >"$second/tool"
use first; keep_tools helm HASH "$first"
use second; keep_tools helm HASH "$second"
use third; link_tools helm HASH
`;

it('a set is installed once, complete, and found by every checkout', () => {
  const env = { ...process.env, XDG_CACHE_HOME: root };
  // Bash reads its startup file, too, when its input is a socket and no shell started it.
  const { status, stderr } = spawnSync('bash', ['--norc', '-euc', TWO_CHECKOUTS], { env, encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  for (const checkout of ['first', 'second', 'third'])
    expect(readFileSync(join(root, checkout, '.cache', 'helm', 'tool'), 'utf8')).toBe('first\n');
  expect(readdirSync(join(root, 'proofgate', 'helm'))).toEqual(['HASH']);
});
