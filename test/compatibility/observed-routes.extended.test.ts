/** Releases that do not know observe mode reject a bundle that observes a route. They do not read it as one that enforces. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { formatTime } from '../../src/protocol/rfc3339.ts';
import { checkoutPath } from '../support/harness/checkout.ts';
import { releasesBefore } from '../support/harness/releases.ts';

const directory = mkdtempSync(join(tmpdir(), 'proofgate-observed-'));
afterAll(() => rmSync(directory, { recursive: true }));

const until = formatTime(Math.floor(Date.now() / 1000) + 86_400);
const site = readFileSync(checkoutPath('bundles', 'minimal.yaml'), 'utf8').replace(
  '- route_id: orders-read\n',
  `- route_id: orders-read\n    enforcement: observe\n    observe_until: ${until}\n`,
);
writeFileSync(join(directory, 'observed.yaml'), site);
const run = (program: string, ...args: readonly string[]) =>
  spawnSync(process.execPath, [program, ...args], { cwd: directory, encoding: 'utf8' });
const current = checkoutPath('bin', 'proofgate');

execFileSync('openssl', ['genpkey', '-algorithm', 'ed25519', '-out', 'key.pem'], { cwd: directory });
execFileSync('openssl', ['pkey', '-in', 'key.pem', '-pubout', '-out', 'public.pem'], { cwd: directory });
execFileSync('chmod', ['600', 'key.pem'], { cwd: directory });
const signed = run(current, 'bundle', 'sign', 'observed.yaml', '--key', 'key.pem', '--out', 'bundle');

it('is signed and accepted by the program under test', () => {
  expect(signed.stderr).toBe('');
  const { status, stdout } = run(current, 'bundle', 'lint', 'bundle', '--bundle-key', 'public.pem');
  expect([status, stdout]).toEqual([0, expect.stringContaining('route_observed')]);
});

describe.each(releasesBefore('0.4.0'))('release $version', ({ program }) => {
  it('rejects it', () => {
    const { status, stdout } = run(program, 'bundle', 'lint', 'bundle', '--bundle-key', 'public.pem');
    expect([status, stdout]).toEqual([3, expect.stringContaining('unknown_member /routes/0/enforcement')]);
  });
});
