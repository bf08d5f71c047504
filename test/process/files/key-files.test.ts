import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readSigningKeyFile } from '../../../src/process/files/key-files.ts';
import { readPublicKeyFile } from '../../../src/process/files/public-key-file.ts';
import { importPublicJwk } from '../../../src/protocol/import-public-key.ts';

const ed25519 = generateKeyPairSync('ed25519');
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' });

const pkcs8 = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }).toString();
const spki = (key: KeyObject) => key.export({ type: 'spki', format: 'pem' }).toString();
const jwk = (key: KeyObject) => key.export({ format: 'jwk' });
const thumbprint = (key: KeyObject) => importPublicJwk(jwk(key))?.thumbprint;

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proofgate-keys-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

let count = 0;
async function fileWith(content: string, mode = 0o600): Promise<string> {
  const path = join(folder, `${++count}`);
  await writeFile(path, content, { mode });
  return path;
}

describe('readSigningKeyFile', () => {
  it.each([
    ['Ed25519', ed25519],
    ['ES256', p256],
  ])('reads %s, through a link too', async (algorithm, pair) => {
    const path = await fileWith(pkcs8(pair.privateKey));
    await symlink(path, `${path}.link`);
    expect((await readSigningKeyFile(path)).publicKey.algorithm).toBe(algorithm);
    expect((await readSigningKeyFile(`${path}.link`)).publicKey.thumbprint).toBe(thumbprint(pair.publicKey));
  });

  it.each([
    ['a public key in PEM', spki(ed25519.publicKey), 'public_key_where_private_expected'],
    ['a public JWK', JSON.stringify(jwk(ed25519.publicKey)), 'public_key_where_private_expected'],
    ['a private JWK', JSON.stringify(jwk(ed25519.privateKey)), 'private_key_invalid'],
    ['an RSA key', pkcs8(rsa.privateKey), 'private_key_invalid'],
    ['a P-384 key', pkcs8(p384.privateKey), 'private_key_invalid'],
    ['nothing', '', 'private_key_invalid'],
    ['too much', 'x'.repeat(20_000), 'file_too_large'],
  ])('refuses %s', async (_what, content, code) => {
    await expect(readSigningKeyFile(await fileWith(content))).rejects.toMatchObject({ code, exitCode: 2 });
  });

  it('refuses an encrypted key without asking', async () => {
    const pem = ed25519.privateKey.export({
      type: 'pkcs8',
      format: 'pem',
      cipher: 'aes-256-cbc',
      passphrase: 'x',
    });
    await expect(readSigningKeyFile(await fileWith(pem.toString()))).rejects.toMatchObject({
      code: 'private_key_invalid',
    });
  });

  it.each([0o640, 0o604, 0o620, 0o602, 0o610, 0o601])('refuses mode %o', async (mode) => {
    const { chmod } = await import('node:fs/promises');
    const path = await fileWith(pkcs8(ed25519.privateKey));
    await chmod(path, mode);
    await expect(readSigningKeyFile(path)).rejects.toMatchObject({ code: 'file_permissions' });
  });

  it('quotes nothing of the file', async () => {
    const path = await fileWith(`secret-text ${pkcs8(rsa.privateKey)}`);
    const error = await readSigningKeyFile(path).catch((thrown: unknown) => String(thrown));
    expect(error).not.toMatch(/secret-text|BEGIN|MII/);
  });
});

describe('readPublicKeyFile', () => {
  const members = jwk(ed25519.publicKey);

  it.each([
    ['a JWK', JSON.stringify(members)],
    ['a JWK with kid, alg and use', JSON.stringify({ ...members, kid: 'any', alg: 'Ed25519', use: 'sig' })],
    ['a JWK with the older name of its algorithm', JSON.stringify({ ...members, alg: 'EdDSA' })],
    ['PEM', spki(ed25519.publicKey)],
  ])('reads %s', async (_what, content) => {
    expect((await readPublicKeyFile(await fileWith(content, 0o644))).thumbprint).toBe(
      thumbprint(ed25519.publicKey),
    );
  });

  it.each([
    ['a private JWK', JSON.stringify(jwk(ed25519.privateKey)), 'private_key_where_public_expected'],
    ['a private key in PEM', pkcs8(p256.privateKey), 'private_key_where_public_expected'],
    ['a private key that it would not sign with', pkcs8(rsa.privateKey), 'private_key_where_public_expected'],
    ['an RSA key', spki(rsa.publicKey), 'public_key_invalid'],
    ['a P-384 key', JSON.stringify(jwk(p384.publicKey)), 'public_key_invalid'],
    ['another alg', JSON.stringify({ ...members, alg: 'ES256' }), 'public_key_invalid'],
    ['an alg of no string', JSON.stringify({ ...members, alg: null }), 'public_key_invalid'],
    ['a key for encryption', JSON.stringify({ ...members, use: 'enc' }), 'public_key_invalid'],
    ['a kid that is no string', JSON.stringify({ ...members, kid: 7 }), 'public_key_invalid'],
    ['an unknown member', JSON.stringify({ ...members, x5c: [] }), 'public_key_invalid'],
    ['a point of small order', JSON.stringify({ ...members, x: 'A'.repeat(43) }), 'public_key_invalid'],
    ['a member twice', JSON.stringify(members).replace('{', '{"kty":"OKP",'), 'public_key_invalid'],
    ['a set of keys', JSON.stringify({ keys: [members] }), 'public_key_invalid'],
    ['nothing', '', 'public_key_invalid'],
    ['bytes that are no text', '\u00ff', 'public_key_invalid'],
  ])('refuses %s', async (_what, content, code) => {
    await expect(readPublicKeyFile(await fileWith(content, 0o644))).rejects.toMatchObject({
      code,
      exitCode: 2,
    });
  });
});
