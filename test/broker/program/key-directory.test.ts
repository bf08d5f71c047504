/** Tests the broker's signing keys: the rules of the directory, its rotation, and what a running broker notices. */
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { SigningKeys } from '../../../src/broker/broker-ports.ts';
import { type Followed, follow } from '../../../src/broker/program/followed-file.ts';
import {
  keyDirectoryFingerprint,
  readKeyDirectory,
} from '../../../src/broker/program/key-directory-files.ts';
import { rotateKey } from '../../../src/broker/program/rotate-key.ts';
import type { RotateKeySettings } from '../../../src/broker/program/rotate-key-settings.ts';
import { createLogger } from '../../../src/process/telemetry/logger.ts';
import { generateSigningKey } from '../../../src/protocol/signing.ts';
import { verifySignature } from '../../../src/protocol/verify-signature.ts';
import { waitFor } from '../../support/wait.ts';

const SHOP = 'shop.example';
const BANK = 'bank.example';

let directory = '';
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'proofgate-keys-'));
});
afterEach(async () => {
  await rm(directory, { recursive: true });
});

function rotate(step: Partial<RotateKeySettings> = {}) {
  const settings = {
    keyDir: directory,
    trustDomain: SHOP,
    algorithm: 'Ed25519',
    activate: undefined,
    remove: undefined,
  };
  return rotateKey({ ...settings, ...step } as RotateKeySettings);
}

function read(...trustDomains: string[]): Promise<SigningKeys> {
  return readKeyDirectory({ directory, trustDomains });
}

/** Writes a key file as a user who brings a key. */
async function put(
  trustDomain: string,
  keyId: string,
  key = generateSigningKey('Ed25519'),
  mode = 0o600,
): Promise<void> {
  await mkdir(join(directory, trustDomain), { recursive: true });
  const pem = key.privateKey.export({ type: 'pkcs8', format: 'pem' });
  await writeFile(join(directory, trustDomain, `${keyId}.pem`), pem, { mode });
}

async function setCurrent(trustDomain: string, content: string): Promise<void> {
  await writeFile(join(directory, trustDomain, 'current'), content);
}

function publishedIds(keys: SigningKeys, trustDomain = SHOP): readonly string[] {
  return keys.published().flatMap((key) => (key.trustDomain === trustDomain ? [key.keyId] : []));
}

describe('rotation', () => {
  it('makes a first key that is in use, which the broker signs with', async () => {
    const first = await rotate();
    expect(first).toMatchObject({ step: 'created', isCurrent: true, keyId: `bk_${first.thumbprint}` });
    const key = (await read()).current(SHOP);
    expect(key).toMatchObject({ keyId: first.keyId, trustDomain: SHOP });
    const message = Buffer.from('passport');
    const signature = (await key?.sign(message)) ?? Buffer.alloc(0);
    expect(key && verifySignature(key.publicKey, message, signature)).toBe(true);
    const path = join(directory, SHOP, `${first.keyId}.pem`);
    expect([(await stat(path)).mode & 0o777, (await stat(join(directory, SHOP))).mode & 0o777]).toEqual([
      0o600, 0o700,
    ]);
  });

  it('publishes the next key before its use, and the old one until it is removed', async () => {
    const first = await rotate();
    const next = await rotate({ algorithm: 'ES256' });
    expect(next).toMatchObject({ step: 'created', isCurrent: false, algorithm: 'ES256' });
    const both = [first.keyId, next.keyId].sort();
    let keys = await read();
    expect([keys.current(SHOP)?.keyId, publishedIds(keys)]).toEqual([first.keyId, both]);

    await expect(rotate({ remove: first.keyId })).rejects.toMatchObject({ code: 'key_in_use' });
    expect(await rotate({ activate: next.keyId })).toMatchObject({ step: 'activated', isCurrent: true });
    keys = await read();
    expect([keys.current(SHOP)?.keyId, publishedIds(keys)]).toEqual([next.keyId, both]);

    expect(await rotate({ remove: first.keyId })).toMatchObject({ step: 'removed', keyId: first.keyId });
    keys = await read();
    expect([keys.current(SHOP)?.keyId, publishedIds(keys)]).toEqual([next.keyId, [next.keyId]]);
  });

  it('keeps a single key in use that has no "current" beside it', async () => {
    await put(SHOP, 'own');
    const next = await rotate();
    expect(next.isCurrent).toBe(false);
    expect((await read()).current(SHOP)?.keyId).toBe('own');
    await expect(rotate({ remove: 'own' })).rejects.toMatchObject({ code: 'key_in_use' });
  });

  it.each([
    ['rotate_one_step', { activate: 'a', remove: 'b' }],
    ['key_id_unknown', { activate: 'nobody' }],
    ['key_id_unknown', { remove: '../../etc/passwd' }],
    ['trust_domain_invalid', { trustDomain: '../shop' }],
    ['trust_domain_invalid', { trustDomain: 'Shop.example' }],
    ['key_dir_unusable', { trustDomain: 'typo.example', activate: 'a' }],
    ['key_dir_unusable', { keyDir: '/nonexistent/keys' }],
  ])('ends with %s for %p', async (code, step) => {
    await rotate();
    await expect(rotate(step)).rejects.toMatchObject({ code });
    expect(await readdir(directory)).toEqual([SHOP]);
  });

  it('does not guess which of several keys is in use', async () => {
    await put(SHOP, 'a');
    await put(SHOP, 'b');
    for (const step of [{}, { remove: 'a' }]) {
      await expect(rotate(step)).rejects.toMatchObject({ code: 'current_key_missing' });
    }
    await rotate({ activate: 'b' });
    expect((await read()).current(SHOP)?.keyId).toBe('b');
  });
});

describe('the directory', () => {
  it('serves every trust domain that has keys, or those that are named', async () => {
    await rotate();
    await rotate({ trustDomain: BANK });
    await writeFile(join(directory, 'challenge-key'), 'not a trust domain');
    await mkdir(join(directory, '.trash'));
    expect((await read()).trustDomains()).toEqual([BANK, SHOP]);
    const named = await read(SHOP);
    expect([named.trustDomains(), named.current(BANK), publishedIds(named, BANK)]).toEqual([
      [SHOP],
      undefined,
      [],
    ]);
  });

  it('takes keys as a Kubernetes Secret with fsGroup mounts them', async () => {
    await put(SHOP, 'a', undefined, 0o440);
    await put(SHOP, 'b', undefined, 0o440);
    const folder = join(directory, SHOP);
    await mkdir(join(folder, '..2026_11_24'));
    for (const name of ['a.pem', 'b.pem'])
      await rename(join(folder, name), join(folder, '..2026_11_24', name));
    await writeFile(join(folder, '..2026_11_24', 'current'), 'b');
    await symlink('..2026_11_24', join(folder, '..data'));
    for (const name of ['a.pem', 'b.pem', 'current']) await symlink(`..data/${name}`, join(folder, name));
    const keys = await read();
    expect([keys.current(SHOP)?.keyId, publishedIds(keys)]).toEqual(['b', ['a', 'b']]);
  });

  const same = generateSigningKey('Ed25519');
  const FAULTS: readonly (readonly [string, () => Promise<void>])[] = [
    ['broker_keys_missing', async () => undefined],
    ['broker_keys_missing', async () => void (await mkdir(join(directory, SHOP)))],
    [
      'current_key_missing',
      async () => {
        await put(SHOP, 'a');
        await put(SHOP, 'b');
      },
    ],
    [
      'current_key_unknown',
      async () => {
        await put(SHOP, 'a');
        await setCurrent(SHOP, 'b');
      },
    ],
    [
      'current_key_unknown',
      async () => {
        await put(SHOP, 'a');
        await setCurrent(SHOP, '');
      },
    ],
    ['key_id_invalid', () => put(SHOP, 'a b')],
    ['trust_domain_invalid', () => put('Shop.example', 'a')],
    [
      'key_id_repeated',
      async () => {
        await put(SHOP, 'a');
        await put(BANK, 'a');
      },
    ],
    [
      'key_repeated',
      async () => {
        await put(SHOP, 'a', same);
        await put(BANK, 'b', same);
      },
    ],
    ['file_permissions', () => put(SHOP, 'a', undefined, 0o604)],
    [
      'private_key_invalid',
      async () => {
        await mkdir(join(directory, SHOP));
        await writeFile(join(directory, SHOP, 'a.pem'), 'hello', { mode: 0o600 });
      },
    ],
  ];
  it.each(FAULTS)('is rejected with %s', async (code, prepare) => {
    await prepare();
    await expect(read()).rejects.toMatchObject({ code, kind: 'usage' });
  });

  it('is rejected when it is not there, or has no key of a named trust domain', async () => {
    await expect(
      readKeyDirectory({ directory: join(directory, 'x'), trustDomains: [] }),
    ).rejects.toMatchObject({
      code: 'key_dir_unusable',
    });
    await rotate();
    await expect(read(SHOP, BANK)).rejects.toMatchObject({ code: 'broker_keys_missing' });
  });
});

describe('a running broker', () => {
  let followed: Followed<SigningKeys> | undefined;
  afterEach(() => followed?.close());

  it('notices each step, and keeps its keys while the directory is faulty', async () => {
    const lines: string[] = [];
    const first = await rotate();
    const options = { directory, trustDomains: [] };
    followed = await follow({
      name: 'key_dir',
      fingerprint: () => keyDirectoryFingerprint(options),
      read: () => readKeyDirectory(options),
      logger: createLogger('info', { write: (line) => void lines.push(line) }),
    });
    const keys = followed;
    const next = await rotate();
    await waitFor('the next key', async () => publishedIds(keys.value).includes(next.keyId) || undefined);
    expect(keys.value.current(SHOP)?.keyId).toBe(first.keyId);

    await chmod(join(directory, SHOP, `${next.keyId}.pem`), 0o644);
    await rotate({ activate: next.keyId }).catch(() => undefined);
    await setCurrent(SHOP, next.keyId);
    await waitFor('the fault', async () => keys.check().warning);
    expect(keys.check()).toMatchObject({
      problem: undefined,
      warning: expect.stringContaining('file_permissions'),
    });
    expect(keys.value.current(SHOP)?.keyId).toBe(first.keyId);

    await chmod(join(directory, SHOP, `${next.keyId}.pem`), 0o600);
    await waitFor('the key in use', async () => keys.value.current(SHOP)?.keyId === next.keyId || undefined);
    expect(keys.check().warning).toBeUndefined();
    expect(lines.map((line) => JSON.parse(line).event)).toEqual([
      'file_reloaded',
      'file_rejected',
      'file_reloaded',
    ]);
    const pem = await readFile(join(directory, SHOP, `${next.keyId}.pem`), 'utf8');
    expect(lines.join('')).not.toContain(pem.split('\n')[1]);
  });
});
