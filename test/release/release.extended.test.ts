/**
 * Tests `make release` and `make verify-release`: their output, its reproducibility, and the detection of changes. The commands of
 * docs/operate/release.md make the release.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { describeSession, runOnce, SESSION_TIMEOUT_MS } from '../docs/sessions/session-suite.ts';
import {
  canRelease,
  describeRelease,
  makeReleaseCheckout,
  type ReleaseCheckout,
  runScript,
  writeKeys,
} from './checkout.ts';
import { contentTests } from './content.ts';

let checkout: ReleaseCheckout;
let folder: string;
let release: string;
const session = runOnce('release');

beforeAll(async () => {
  if (!canRelease()) return;
  folder = mkdtempSync(join(tmpdir(), 'pg-releases-'));
  release = join(folder, 'release');
  process.env.RELEASE_OF_SESSION = release;
  const { isWhole, transcript } = await session();
  if (!isWhole) throw new Error(transcript);
  checkout = makeReleaseCheckout(folder);
}, SESSION_TIMEOUT_MS);
afterAll(() => {
  checkout?.remove();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

function verifying(directory: string, publicKeyFile = checkout.publicKeyFile) {
  const args = [`--public-key=${publicKeyFile}`, `--release=${directory}`];
  const { status, stderr } = runScript(checkout.root, 'scripts/release/verify.mjs', args);
  const lines = stderr.split('\n').filter(Boolean);
  return { status, codes: lines.map((line) => /^error: ([a-z_]+): ./.exec(line)?.[1] ?? line) };
}

const GOOD = { status: 0, codes: [] };

describeSession('release', session);

describeRelease('a release', () => {
  it('is as it was signed', () => {
    expect(verifying(release)).toEqual(GOOD);
  });

  it('is signed so that openssl and sha256sum can tell', () => {
    const verify = ['pkeyutl', '-verify', '-pubin', '-inkey', checkout.publicKeyFile, '-rawin'];
    const files = ['-in', 'SHA256SUMS', '-sigfile', 'SHA256SUMS.sig'];
    expect(execFileSync('openssl', [...verify, ...files], { cwd: release, encoding: 'utf8' })).toMatch(
      /success/i,
    );
    expect(spawnSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: release }).status).toBe(0);
  });

  it('is the same bytes when it is made again, over another release, by others, elsewhere, where another compiler is installed', () => {
    const again = join(folder, 'again');
    mkdirSync(again);
    for (const name of [...readdirSync(release), 'proofgate-0.0.1.tgz'])
      writeFileSync(join(again, name), 'old');
    const { keyFile } = checkout;
    checkout.installOtherCompiler();
    const elsewhere = { TZ: 'Asia/Tokyo', LANG: 'tr_TR.UTF-8' };
    const umask = process.umask(0o077);
    try {
      const args = [`--key=${keyFile}`, `--out=${again}`];
      expect(runScript(checkout.root, 'scripts/release/release.mjs', args, elsewhere)).toMatchObject({
        status: 0,
        stderr: '',
      });
    } finally {
      process.umask(umask);
    }
    const names = readdirSync(release).toSorted();
    expect(readdirSync(again).toSorted()).toEqual(names);
    const differing = names.filter(
      (name) => !readFileSync(join(release, name)).equals(readFileSync(join(again, name))),
    );
    expect(differing).toEqual([]);
  });

  it('holds nothing of the private key', () => {
    const unpacked = join(folder, 'unpacked');
    mkdirSync(unpacked);
    for (const name of readdirSync(release)) {
      const file = join(release, name);
      if (/\.(?:tgz|tar\.gz)$/.test(name))
        execFileSync('tar', ['--extract', '--gzip', '--directory', unpacked, '--file', file]);
      else if (/\.(?:whl|zip)$/.test(name))
        execFileSync('python3', ['-m', 'zipfile', '--extract', file, unpacked]);
      else cpSync(file, join(unpacked, name));
    }
    expect(holdersOf(checkout.keyFile, unpacked)).toEqual([]);
    // Proves that the search finds a copy of the key anywhere in the package.
    cpSync(checkout.keyFile, join(unpacked, 'package', 'dist', 'key.js'));
    expect(holdersOf(checkout.keyFile, unpacked)).toEqual([join('package', 'dist', 'key.js')]);
  });

  contentTests(() => release);
});

/** Files that contain a private key: its PEM text, or its secret bytes, raw, in hex or in base64. */
function holdersOf(keyFile: string, directory: string): readonly string[] {
  const pem = readFileSync(keyFile, 'latin1');
  const secret = Buffer.from(createPrivateKey(pem).export({ format: 'jwk' }).d ?? '', 'base64url');
  expect(secret.length).toBe(32);
  const [, line = ''] = pem.split('\n');
  const forms = [
    line,
    ...(['latin1', 'hex', 'base64', 'base64url'] as const).map((form) => secret.toString(form)),
  ];
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((one) =>
    one.isFile(),
  );
  return files
    .map(({ name, parentPath }) => join(parentPath, name))
    .filter((file) => forms.some((form) => readFileSync(file, 'latin1').includes(form)))
    .map((file) => relative(directory, file));
}

describeRelease('what is noticed', () => {
  let copy: string;
  const at = (name: string) => join(copy, name);
  const packages = () => readdirSync(copy).filter((name) => !name.startsWith('SHA256SUMS'));

  beforeEach(() => {
    copy = join(folder, 'copy');
    cpSync(release, copy, { recursive: true });
  });
  afterEach(() => rmSync(copy, { recursive: true, force: true }));

  it.each([0, 1, 2])('a changed, a shorter and a missing file: %i', (index) => {
    const name = packages()[index] ?? '';
    const content = readFileSync(at(name));
    const [first = 0] = content;
    writeFileSync(at(name), Buffer.concat([Buffer.from([first ^ 1]), content.subarray(1)]));
    expect(verifying(copy)).toEqual({ status: 1, codes: ['file_changed'] });
    writeFileSync(at(name), content.subarray(1));
    expect(verifying(copy)).toEqual({ status: 1, codes: ['file_changed'] });
    rmSync(at(name));
    expect(verifying(copy)).toEqual({ status: 1, codes: ['file_missing'] });
  });

  it('a file that is not of the release, and one under another name', () => {
    writeFileSync(at('more.tgz'), 'x');
    expect(verifying(copy)).toEqual({ status: 1, codes: ['file_unlisted'] });
    rmSync(at('more.tgz'));
    const [name = ''] = packages();
    renameSync(at(name), at('other.tgz'));
    expect(verifying(copy)).toEqual({ status: 1, codes: ['file_missing', 'file_unlisted'] });
  });

  it('a signature that is shorter, longer, another, or not there', () => {
    truncateSync(at('SHA256SUMS.sig'), 63);
    expect(verifying(copy)).toEqual({ status: 1, codes: ['signature_malformed'] });
    appendFileSync(at('SHA256SUMS.sig'), 'xy');
    expect(verifying(copy)).toEqual({ status: 1, codes: ['signature_malformed'] });
    writeFileSync(at('SHA256SUMS.sig'), Buffer.alloc(64));
    expect(verifying(copy)).toEqual({ status: 1, codes: ['signature_wrong'] });
    rmSync(at('SHA256SUMS.sig'));
    expect(verifying(copy)).toEqual({ status: 1, codes: ['signature_missing'] });
  });

  it('checksums that were written anew for a changed file', () => {
    const [name = ''] = packages();
    appendFileSync(at(name), 'x');
    const sums = execFileSync('sha256sum', packages(), { cwd: copy });
    writeFileSync(at('SHA256SUMS'), sums);
    expect(verifying(copy)).toEqual({ status: 1, codes: ['signature_wrong'] });
  });

  it('checksums with a line fewer, in another form, with a path in them, or not there', () => {
    const sums = readFileSync(at('SHA256SUMS'), 'utf8');
    const [first = '', ...others] = sums.split('\n');
    writeFileSync(at('SHA256SUMS'), others.join('\n'));
    expect(verifying(copy).codes).toEqual(['signature_wrong', 'file_unlisted', 'release_incomplete']);
    for (const text of ['', sums.trimEnd(), sums.replace('  ', ' *'), `${first.slice(0, 66)}../x\n${sums}`]) {
      writeFileSync(at('SHA256SUMS'), text);
      expect(verifying(copy).codes[0]).toBe('signature_wrong');
      expect(verifying(copy).codes.at(-1)).toMatch(/^(?:checksums_malformed|release_incomplete)$/);
    }
    rmSync(at('SHA256SUMS'));
    expect(verifying(copy)).toEqual({ status: 1, codes: ['checksums_missing'] });
  });

  it('another version than the one that was meant, which is signed as well', () => {
    const [, version = ''] = /^proofgate-(\d.*)\.tgz$/m.exec(packages().join('\n')) ?? [];
    const withVersion = (wanted: string) =>
      runScript(checkout.root, 'scripts/release/verify.mjs', [
        ...[`--public-key=${checkout.publicKeyFile}`, `--release=${copy}`, `--version=${wanted}`],
      ]);
    expect(withVersion(version)).toMatchObject({ status: 0, stdout: expect.stringContaining(version) });
    expect(withVersion('99.0.0')).toMatchObject({
      ...{ status: 1, stdout: '' },
      stderr: expect.stringMatching(/^error: version_other: .*\n$/),
    });
  });

  it('a key that did not sign it, and what is no public key', () => {
    const other = writeKeys(folder, 'other');
    expect(verifying(copy, other.publicKeyFile)).toEqual({ status: 1, codes: ['signature_wrong'] });
    expect(verifying(copy, other.keyFile)).toEqual({ status: 2, codes: ['public_key_unreadable'] });
    expect(verifying(copy, '')).toEqual({ status: 2, codes: ['public_key_missing'] });
    expect(verifying(copy, join(folder, 'nothing'))).toEqual({ status: 2, codes: ['public_key_missing'] });
    expect(verifying(join(folder, 'nothing'))).toEqual({ status: 2, codes: ['release_missing'] });
  });
});

describeRelease('what no release is made of', () => {
  const refusal = (...args: readonly string[]) => {
    const out = join(folder, 'refused');
    const { status, stderr, stdout } = checkout.release(`--out=${out}`, ...args);
    expect({ status, stdout, lines: stderr.split('\n').length }).toEqual({ status: 2, stdout: '', lines: 2 });
    return /^error: ([a-z_]+): ./.exec(stderr)?.[1];
  };
  const key = () => `--key=${checkout.keyFile}`;

  it('no key, one that is not there, is open to others, or is none', () => {
    expect(refusal()).toBe('signing_key_missing');
    expect(refusal('--key=')).toBe('signing_key_missing');
    expect(refusal(`--key=${join(folder, 'nothing')}`)).toBe('signing_key_missing');
    const { keyFile } = writeKeys(folder, 'open');
    chmodSync(keyFile, 0o640);
    expect(refusal(`--key=${keyFile}`)).toBe('signing_key_open');
    const ec = join(folder, 'ec.pem');
    execFileSync('openssl', [
      'genpkey',
      '-algorithm',
      'EC',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-out',
      ec,
    ]);
    chmodSync(ec, 0o600);
    expect(refusal(`--key=${ec}`)).toBe('signing_key_unreadable');
  });

  it('a place where something else is, which stays', () => {
    const out = join(folder, 'in-use');
    const refusedThere = () => {
      const { status, stderr } = checkout.release(key(), `--out=${out}`);
      expect(status).toBe(2);
      return /^error: ([a-z_]+): ./.exec(stderr)?.[1];
    };
    writeFileSync(out, 'mine');
    expect(refusedThere()).toBe('out_not_a_release');
    expect(readFileSync(out, 'utf8')).toBe('mine');
    rmSync(out);
    mkdirSync(out);
    writeFileSync(join(out, 'mine'), '');
    expect(refusedThere()).toBe('out_not_a_release');
    rmSync(out, { recursive: true });
    cpSync(release, out, { recursive: true });
    writeFileSync(join(out, 'mine'), '');
    expect(refusedThere()).toBe('out_not_a_release');
    expect(readdirSync(out)).toContain('mine');
    rmSync(join(out, 'mine'));
    rmSync(join(out, 'SHA256SUMS'));
    expect(refusedThere()).toBe('out_not_a_release');
    expect(readdirSync(out).length).toBeGreaterThan(0);
  });

  it.each([
    ['README.md', (text: string) => `${text}\n`, 'worktree_not_clean'],
    [
      'CHANGELOG.md',
      (text: string) => text.replace(/^## \[\d.*$/m, '## [0.0.1] - 2026-01-01'),
      'changelog_entry_missing',
    ],
    [
      'CHANGELOG.md',
      (text: string) => text.replace(/^(## \[\d[^\]]*\]).*$/m, '$1'),
      'changelog_entry_missing',
    ],
    [
      'helm/proofgate/Chart.yaml',
      (text: string) => text.replace(/^appVersion: .*$/m, 'appVersion: 9.9.9'),
      'version_mismatch',
    ],
    [
      'package.json',
      (text: string) => text.replace(/"version": "[^"]+"/, '"version": "9.9.9"'),
      'version_mismatch',
    ],
    [
      'sdk/node/package.json',
      (text: string) => text.replace(/"version": "[^"]+"/, '"version": "9.9.9"'),
      'version_mismatch',
    ],
  ])('%s that was changed', (file, change, code) => {
    const path = join(checkout.root, file);
    const before = readFileSync(path, 'utf8');
    try {
      writeFileSync(path, change(before));
      expect(refusal(key())).toBe(code);
    } finally {
      writeFileSync(path, before);
    }
  });
});
