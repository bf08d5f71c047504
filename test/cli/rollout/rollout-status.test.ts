/** `proofgate rollout status`: what audit files say about the callers of a route. */
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from '@jest/globals';
import { runInProcess } from '../../support/cli/in-process.ts';
import { readText } from '../../support/docs/markdown.ts';

const directory = await mkdtemp(join(tmpdir(), 'proofgate-rollout-'));
const event = (members: object) =>
  JSON.stringify({
    event: 'proofgate.decision',
    time: '2026-11-28T00:00:00.000Z',
    decision_id: '5d9279f4-3c12-4ca5-8bc3-42ef88789323',
    caller_verified: false,
    duration_us: 1,
    ...members,
  });
const billing = { issuer: 'https://control.example', subject: 'client:billing' };
const verified = event({ outcome: 'allowed', route_id: 'orders-read', ...billing, caller_verified: true });
const unsigned = { outcome: 'observed', route_id: 'orders-read', reason: 'invalid_request_proof' };
const LINES = [
  ...Array.from({ length: 14_997 }, () => verified),
  event({ ...unsigned, detail: 'authorization_missing', time: '2026-11-29T00:00:00.000Z' }),
  event({ ...unsigned, detail: 'proof_expired', ...billing }),
  event({ ...unsigned, detail: 'key_unknown', subject: 'ci:\u001b[2Jx', issuer: 'https://ci.example' }),
  event({ outcome: 'observed', reason: 'bundle_route_missing', detail: 'no_match' }),
  '{"event":"proofgate.audit_gap","lost":3}',
  'not JSON',
];

async function file(name: string, content: string | Buffer): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, content);
  return path;
}

const status = (...args: readonly string[]) => runInProcess(['rollout', 'status', ...args]);

test('callers by reason, and whether it is safe to enforce', async () => {
  const path = await file('audit.jsonl', `${LINES.join('\n')}\n`);
  const { exitCode, stderr, stdout } = await status('orders-read', '--audit-file', path);
  expect([exitCode, stderr]).toEqual([0, '']);
  expect(stdout.split('\n')).toEqual([
    'orders-read: 15000 requests from 2026-11-28T00:00:00.000Z to 2026-11-29T00:00:00.000Z',
    '  verified:',
    '    14997  client:billing of https://control.example',
    '  not verified:',
    '    1  observed invalid_request_proof (authorization_missing)  no passport',
    expect.stringMatching(
      /^ {4}1 {2}observed invalid_request_proof \(key_unknown\) {2}ci:\\u\S+x of https:\/\/ci\.example$/,
    ),
    '    1  observed invalid_request_proof (proof_expired)  client:billing of https://control.example',
    '  not safe to enforce yet: 99.98 % verified, 3 sources left',
    '2 lines were skipped: they are not decisions, or too long',
    '',
  ]);
});

test('the report is as docs/operate/observe.md shows it', async () => {
  const lines = LINES.slice(0, -3).map((line) => line.replace(/ci:[^"]+/, 'ci:build'));
  const path = await file('page.jsonl', lines.join('\n'));
  const { stdout } = await status('--audit-file', path);
  expect(readText('docs/operate/observe.md')).toContain(stdout);
});

test('all routes of several files as JSON, a rotated one too', async () => {
  const rotated = await file('audit.jsonl.1.gz', gzipSync(`${verified}\n${verified}\n`));
  const current = await file('now.jsonl', LINES.slice(-4).join('\n'));
  const { stdout } = await status('--audit-file', rotated, '--audit-file', current, '--output', 'json');
  expect(JSON.parse(stdout)).toMatchObject({
    lines_skipped: 2,
    routes: [
      { route_id: 'orders-read', requests: 3, verified: 2, verified_percent: 66.66, sources_left: 1 },
      { route_id: null, requests: 1, verified: 0, verified_percent: 0, sources_left: 1 },
    ],
  });
});

test('only verified callers: nothing is left', async () => {
  const path = await file('good.jsonl', verified);
  expect((await status('--audit-file', path)).stdout).toContain(
    '\n  safe to enforce: 100 % verified, 0 sources left',
  );
});

test('a hostile file: invented reasons, routes and a long line are skipped', async () => {
  const routes = Array.from({ length: 50_100 }, (_, n) => event({ ...unsigned, route_id: `r${n}` }));
  const reasons = Array.from({ length: 100 }, (_, n) => event({ ...unsigned, reason: `reason_${n}` }));
  const long = event({ ...unsigned, subject: 'x'.repeat(2 ** 20) });
  const path = await file('hostile.jsonl', [long, ...reasons, ...routes].join('\n'));
  const { stdout } = await status('--audit-file', path, '--output', 'json');
  const report = JSON.parse(stdout);
  expect([report.routes.length, report.lines_skipped]).toEqual([50_001, 1 + 100 + 99]);
});

test('mistakes', async () => {
  const good = await file('one.jsonl', verified);
  const broken = await file('broken.gz', gzipSync(`${verified}\n`).subarray(0, 40));
  expect((await status()).stderr).toMatch(/^error: flag_required/);
  expect((await status('--audit-file', join(directory, 'none'))).stderr).toMatch(/^error: file_not_found/);
  expect((await status('--audit-file', broken)).stderr).toMatch(/^error: audit_file_damaged/);
  expect((await status('misspelled', '--audit-file', good)).stdout).toBe(
    'no decision of this route in these files\n',
  );
});
