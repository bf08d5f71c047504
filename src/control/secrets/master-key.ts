/**
 * The master key: encrypts secrets in the database (signing keys, sign-ins) and derives challenges, which therefore need
 * no storage.
 * Source: docs/operate/control.md "Scope, permissions, secrets"; AES-256-GCM (NIST SP 800-38D), HKDF (RFC 5869).
 */

import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { decodeBase64url } from '../../protocol/base64url.ts';
import { REDACTED } from '../../protocol/redacted.ts';

export const MASTER_KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The sealed text was modified, has another purpose, or another key sealed it. */
export class UnsealError extends Error {
  override readonly name = 'UnsealError';
}

export class MasterKey {
  readonly #sealing: Buffer;
  readonly #challenges: Buffer;
  /** Identifies the key without revealing it. */
  readonly id: string;

  /** @param bytes {@link MASTER_KEY_BYTES} random bytes */
  constructor(bytes: Buffer) {
    if (bytes.length !== MASTER_KEY_BYTES) throw new RangeError('a master key has 32 bytes');
    this.#sealing = subkey(bytes, 'sealing');
    this.#challenges = subkey(bytes, 'challenges');
    this.id = subkey(bytes, 'id').toString('base64url').slice(0, 22);
  }

  static random(): Buffer {
    return randomBytes(MASTER_KEY_BYTES);
  }

  /** @param purpose binds the sealed text to its use and owner, such as `signing-key:sk_…` */
  seal(secret: Uint8Array, purpose: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#sealing, nonce).setAAD(Buffer.from(purpose));
    const text = Buffer.concat([cipher.update(secret), cipher.final()]);
    return Buffer.concat([nonce, text, cipher.getAuthTag()]).toString('base64url');
  }

  /** @throws UnsealError */
  unseal(sealed: string, purpose: string): Buffer {
    const bytes = decodeBase64url(sealed);
    if (bytes === undefined || bytes.length < NONCE_BYTES + TAG_BYTES) {
      throw new UnsealError('not a sealed text');
    }
    const nonce = bytes.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv('aes-256-gcm', this.#sealing, nonce, { authTagLength: TAG_BYTES })
      .setAAD(Buffer.from(purpose))
      .setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
    } catch {
      throw new UnsealError('the sealed text does not belong to this key and purpose');
    }
  }

  /** As {@link unseal}, but undefined instead of an UnsealError. */
  unsealed(sealed: string, purpose: string): Buffer | undefined {
    try {
      return this.unseal(sealed, purpose);
    } catch (error) {
      if (error instanceof UnsealError) return undefined;
      throw error;
    }
  }

  /** Derives a challenge: 256 bits, base64url, unguessable without this key and deterministic. */
  challenge(challengeId: string, policyId: string, keyThumbprint: string): string {
    const text = `${challengeId}\n${policyId}\n${keyThumbprint}\n`;
    return createHmac('sha256', this.#challenges).update(text).digest('base64url');
  }

  toString(): string {
    return REDACTED;
  }

  toJSON(): string {
    return REDACTED;
  }
}

function subkey(master: Buffer, name: string): Buffer {
  return Buffer.from(hkdfSync('sha256', master, Buffer.alloc(0), `proofgate-control-${name}`, 32));
}
