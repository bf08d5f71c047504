/** Runs the arm64 image on an emulated processor: it starts, and its native code works. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from '@jest/globals';
import { HOME, NODE } from '../../scripts/image/contents.mjs';
import { readText } from '../support/docs/markdown.ts';
import { type BuiltImage, IMAGE_TOOLS } from '../support/image/built.ts';

const TIMEOUT_MS = 180_000;

export function emulatedTests(image: () => BuiltImage): void {
  const folder = mkdtempSync(join(tmpdir(), 'pg-emulated-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Libraries come from the image; its files are accessed through this machine's root. */
  const node = (...args: readonly string[]) => {
    const { root } = image();
    const command = [`-L`, root, join(root, NODE), ...args];
    const env = { PATH: '/nowhere', HOME: folder };
    return spawnSync(join(IMAGE_TOOLS, 'qemu-aarch64'), command, {
      encoding: 'utf8',
      env,
      timeout: TIMEOUT_MS,
    });
  };
  const program = () => join(image().root, HOME, 'bin', 'proofgate');

  // Emulated, each process takes seconds to start.
  it('says its version, and makes a key', () => {
    expect(node(program(), '--version').stdout.trim()).toBe(JSON.parse(readText('package.json')).version);
    const publicKey = join(folder, 'key.jwk.json');
    const made = node(program(), 'keygen', '--out', join(folder, 'key.pem'), '--public-out', publicKey);
    expect(made.status).toBe(0);
    expect(JSON.parse(readFileSync(publicKey, 'utf8'))).toMatchObject({ kty: 'OKP', crv: 'Ed25519' });
  });

  it('is Node.js 22 for arm64, loads libsodium, and writes to SQLite', () => {
    const signature = join(image().root, HOME, 'dist', 'protocol', 'signature.js');
    const libsql = join(image().root, HOME, 'node_modules', 'libsql');
    const script = `import { createRequire } from 'node:module';
        await import('${signature}');
        const D = createRequire('${libsql}/')('${libsql}'); const d = new D('${join(folder, 'x.db')}');
        d.exec('create table t (a)'); d.exec('insert into t values (7)');
        console.log(process.version, process.arch, d.prepare('select a from t').get().a)`;
    expect(node('--input-type=module', '-e', script).stdout).toMatch(/^v22\.\S+ arm64 7\n$/);
  });
}
