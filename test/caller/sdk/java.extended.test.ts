/** Runs the Java SDK's own tests: the signer with its files and with keys in each form of PEM, the adapters against servers. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from '@jest/globals';
import { writeEnrolledKey } from '../../support/caller/key-files.ts';
import { MISSING_JAVA, PREPARE_TIMEOUT_MS, runJava } from '../../support/caller/sdk-drivers.ts';
import { checkoutPath } from '../../support/harness/checkout.ts';

const folder = mkdtempSync(join(tmpdir(), 'pg-sdk-java-'));
afterAll(() => rmSync(folder, { recursive: true }));

const p256 = (namedCurve = 'P-256') => generateKeyPairSync('ec', { namedCurve }).privateKey;
const pkcs8 = (key: KeyObject) => key.export({ format: 'pem', type: 'pkcs8' });
const sec1 = (key: KeyObject) => key.export({ format: 'pem', type: 'sec1' });

/** PKCS#8 may leave out the public key, which then must be computed. */
function withoutPublicKey(key: KeyObject): string {
  const head = '3041020100301306072a8648ce3d020106082a8648ce3d0301070427302502010104';
  const scalar = Buffer.from(key.export({ format: 'jwk' }).d ?? '', 'base64url');
  const der = Buffer.concat([Buffer.from(`${head}20`, 'hex'), scalar]);
  return `-----BEGIN PRIVATE KEY-----\n${der.toString('base64')}\n-----END PRIVATE KEY-----\n`;
}

const FORMS: readonly (readonly [
  name: string,
  key: () => KeyObject,
  form: (key: KeyObject) => string | Buffer,
])[] = [
  ['ed25519', () => generateKeyPairSync('ed25519').privateKey, pkcs8],
  ['p256', p256, pkcs8],
  ['p256-bare', p256, withoutPublicKey],
  ['p256-sec1', p256, sec1],
];
const REFUSED = {
  p384: pkcs8(p256('P-384')),
  'k256-sec1': sec1(p256('secp256k1')),
  rsa: pkcs8(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey),
  encrypted: p256().export({ format: 'pem', type: 'pkcs8', cipher: 'aes-128-cbc', passphrase: 'x' }),
};

/** Of each form so many that some have a coordinate with a zero at the beginning, and y of each parity. */
function writeKeys() {
  const keys = join(folder, 'keys');
  mkdirSync(keys);
  for (const [name, newKey, form] of FORMS) {
    for (let i = 0; i < 24; i++) {
      const key = newKey();
      const at = { authSite: 'shop-eu', key_id: 'dk_1', issuer: 'i', subject: 's', trust_domain: 't' };
      const file = writeEnrolledKey(keys, `${name}-${i}`, {
        ...{ ...at, key, expiresAt: '2099-01-01T00:00:00Z', profiles: [] },
      });
      writeFileSync(file, form(key));
    }
  }
  mkdirSync(join(folder, 'refused'));
  for (const [name, pem] of Object.entries(REFUSED))
    writeFileSync(join(folder, 'refused', `${name}.pem`), pem, { mode: 0o600 });
}

(MISSING_JAVA === undefined ? it : it.skip)(
  'passes its own tests',
  async () => {
    writeKeys();
    const properties = [`-Dproofgate.folder=${folder}`, `-Dproofgate.checkout=${checkoutPath()}`];
    const { stdout } = await runJava([...properties, 'example.proofgate.RunTests']);
    const lines = stdout.trim().split('\n');
    expect(lines.filter((line) => !line.startsWith('ok '))).toEqual([]);
    expect(lines.length).toBeGreaterThan(19);
  },
  PREPARE_TIMEOUT_MS,
);
