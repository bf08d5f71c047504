/**
 * Tests `bundle diff`, `bundle inspect` and `bundle reset-mark` as commands: exit codes, output, and hostile files that try to
 * control the terminal.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { stringify } from 'yaml';
import { lockDirectory } from '../../src/process/files/directory-lock.ts';
import { FileMark, MARK_FILE } from '../../src/verifier/loading/state/high-water-mark.ts';
import { runInProcess } from '../support/cli/in-process.ts';
import { AUTH_SITE, bundleContent, edited, newTestKeys } from '../support/fixtures/bundle-content.ts';

const keys = newTestKeys();
const written = edited(bundleContent(keys), { at: '/revision' }, { at: '/issued_at' }, { at: '/expires_at' });

let folder = '';
const at = (name: string) => join(folder, name);
const run = (...args: string[]) => runInProcess(['bundle', ...args]);

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proofgate-diff-'));
  await writeFile(at('bundle.yaml'), stringify(written));
  for (const name of ['key', 'other']) {
    await runInProcess(['keygen', '--out', at(`${name}.pem`), '--public-out', at(`${name}.jwk.json`)]);
  }
  const signed = await run('sign', at('bundle.yaml'), '--key', at('key.pem'), '--out', at('out'));
  expect(signed).toMatchObject({ exitCode: 0, stderr: '' });
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Changes the payload of the signed bundle, so that every signature becomes invalid. */
async function forge(change: (content: string) => string): Promise<void> {
  const path = at('out/bundle.jws');
  const document = JSON.parse(await readFile(path, 'utf8'));
  const content = change(Buffer.from(document.payload, 'base64url').toString());
  document.payload = Buffer.from(content).toString('base64url');
  await writeFile(path, JSON.stringify(document));
}

/** In JSON: ESC and a line feed as escapes, the C1 form of CSI and a right-to-left override as raw characters. */
const HOSTILE = `https://\\u001b[2J\\n${String.fromCharCode(0x9b, 0x202e)}`;
const putHostileOrigin = () =>
  forge((content) => content.replace('https://api.shop.example"]', `${HOSTILE}"]`));

describe('diff', () => {
  it('ends with 0 and says nothing when both are the same', async () => {
    expect(await run('diff', at('out'), at('bundle.yaml'), '--bundle-key', at('key.jwk.json'))).toEqual({
      exitCode: 0,
      stdout: '',
      stderr: '',
    });
  });

  it('ends with 1 and shows what differs', async () => {
    const next = edited(
      written,
      { at: '/routes/0/max_staleness_seconds', put: 60 },
      { at: '/derived_keys', put: [] },
      { at: '/clients/0/grants/-', put: { resource: 'refunds', access: 'read' } },
    );
    await writeFile(at('next.yaml'), stringify(next));
    const shown = await run('diff', at('out'), at('next.yaml'), '--bundle-key', at('key.jwk.json'));
    expect([shown.exitCode, shown.stderr]).toEqual([1, '']);
    const [grant = '', key = '', route, member] = shown.stdout.split('\n');
    expect(grant).toBe('+ grant billing refunds: access "read"');
    expect(key).toMatch(/^- derived_key dk_billing: /);
    expect([route, member]).toEqual(['~ route orders-read', '    max_staleness_seconds: 300 -> 60']);
    const json = await run('diff', at('out'), at('next.yaml'), '--output', 'json');
    expect(json.exitCode).toBe(1);
    expect(JSON.parse(json.stderr)).toMatchObject({ note: 'signatures_not_checked' });
    expect(JSON.parse(json.stdout)).toMatchObject({
      old: { revision: 1, signatures: 'not_checked' },
      new: { revision: null, head: null, signatures: 'none' },
      differences: [
        { change: 'added', kind: 'grant', name: ['billing', 'refunds'] },
        { change: 'removed', kind: 'derived_key' },
        { change: 'changed', kind: 'route', members: [{ before: 300, after: 60 }] },
      ],
    });
  });

  it.each([
    ['a source that is not there', ['nowhere', 'out'], 'file_not_found'],
    ['a directory without a bundle', ['.', 'out'], 'file_missing'],
    ['YAML that is no bundle', ['key.jwk.json', 'out'], 'missing_member'],
    [
      'signatures by another',
      ['out', 'bundle.yaml', '--bundle-key', 'other.jwk.json'],
      'signatures_insufficient',
    ],
  ])('ends with 2 after %s', async (_what, args, code) => {
    const { exitCode, stderr, stdout } = await run(
      'diff',
      ...args.map((arg) => (arg.startsWith('--') ? arg : at(arg))),
    );
    expect([exitCode, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(new RegExp(`^error: ${code}: `));
  });

  it('shows no control character of an unsigned file', async () => {
    await putHostileOrigin();
    for (const format of ['text', 'json']) {
      const { exitCode, stdout } = await run('diff', at('out'), at('bundle.yaml'), '--output', format);
      expect(exitCode).toBe(1);
      expect(stdout).toContain('[2J');
      expect(stdout.replaceAll('\n', '')).not.toMatch(/\p{C}/u);
    }
  });
});

describe('inspect', () => {
  it('shows no control character of an unsigned file', async () => {
    await putHostileOrigin();
    for (const format of ['text', 'json']) {
      const { exitCode, stdout } = await run('inspect', at('out'), '--output', format);
      expect(exitCode).toBe(0);
      expect(stdout).toContain('[2J');
      expect(stdout.replaceAll('\n', '')).not.toMatch(/\p{C}/u);
    }
    const { stdout } = await run('inspect', at('out'));
    expect(stdout).toContain('\\u{1b}[2J\\u{a}\\u{9b}\\u{202e}');
  });

  it('ends with 3 when the given keys did not sign, after showing what is there', async () => {
    const holds = await run('inspect', at('out'), '--bundle-key', at('key.jwk.json'));
    expect([holds.exitCode, holds.stderr]).toEqual([0, '']);
    const other = await run('inspect', at('out'), '--bundle-key', at('other.jwk.json'));
    expect(other.exitCode).toBe(3);
    expect(other.stdout).toContain('auth site      shop-eu-1');
    expect(other.stderr).toMatch(/^error: signatures_insufficient: /);
    const both = ['--bundle-key', at('key.jwk.json'), '--bundle-key', at('other.jwk.json')];
    expect((await run('inspect', at('out'), ...both, '--bundle-threshold', '2')).exitCode).toBe(3);
    await forge((content) => `${content} `);
    const forged = await run('inspect', at('out'), '--bundle-key', at('key.jwk.json'));
    expect([forged.exitCode, forged.stderr.split(': ')[1]]).toEqual([3, 'signature_invalid']);
  });
});

describe('reset-mark', () => {
  const mark = { revision: 7, head: 'A'.repeat(43) };
  beforeEach(() => new FileMark({ stateDirectory: folder, authSite: AUTH_SITE }).raise(mark));
  const reset = (...args: string[]) => run('reset-mark', AUTH_SITE, '--state-dir', folder, ...args);

  it('says what it forgot', async () => {
    const { exitCode, stderr, stdout } = await reset('--confirm', AUTH_SITE, '--output', 'json');
    expect([exitCode, stderr]).toEqual([0, '']);
    const own_mark = mark;
    expect(JSON.parse(stdout)).toEqual({
      auth_site: AUTH_SITE,
      own_mark,
      shared_mark: 'not_asked',
      kept_bundle: null,
    });
    await expect(readFile(at(MARK_FILE))).rejects.toMatchObject({ code: 'ENOENT' });
    const [begun = ''] = (await readFile(at('mark-resets.jsonl'), 'utf8')).split('\n');
    expect(JSON.parse(begun)).toMatchObject({ phase: 'begun', own_mark, by: { pid: process.pid } });
    expect((await reset('--yes')).stdout).toContain('own mark       there was none');
  });

  it.each([
    ['without a word of confirmation', [], 'confirmation_missing'],
    ['confirmed for another site', ['--confirm', 'shop-eu-2', '--yes'], 'confirmation_differs'],
  ])('forgets nothing %s', async (_what, args, code) => {
    const { exitCode, stderr } = await reset(...args);
    expect([exitCode, stderr.split(': ')[1]]).toEqual([2, code]);
    expect(await readFile(at(MARK_FILE), 'utf8')).toContain(mark.head);
  });

  it('forgets nothing under a verifier at work, nor of another site, nor where there is no directory', async () => {
    const lock = await lockDirectory(folder);
    expect(await reset('--yes')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/^error: state_dir_in_use: /),
    });
    await lock.release();
    const other = await run('reset-mark', 'other', '--state-dir', folder, '--yes');
    expect(other).toMatchObject({
      exitCode: 3,
      stderr: expect.stringMatching(/^error: mark_of_another_site: /),
    });
    const nowhere = await run('reset-mark', AUTH_SITE, '--state-dir', at('nowhere'), '--yes');
    expect(nowhere).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/^error: state_dir_unusable: /),
    });
    const elsewhere = await run('reset-mark', AUTH_SITE, '--state-dir', at('out'), '--yes');
    expect(elsewhere).toMatchObject({
      exitCode: 3,
      stderr: expect.stringMatching(/^error: mark_missing: /),
    });
    await expect(readFile(at('out/mark-resets.jsonl'))).rejects.toMatchObject({ code: 'ENOENT' });
    expect(await readFile(at(MARK_FILE), 'utf8')).toContain(mark.head);
  });
});
