/** All secrets that a run used, in each encoding in which they could leak. */
import type { KeyObject } from 'node:crypto';

/** Secrets are looked up by this many leading characters; a shorter text is not a secret. */
const PREFIX_CHARACTERS = 16;

export class Secrets {
  /** Descriptions of the secrets, by prefix and text. */
  readonly #byPrefix = new Map<string, Map<string, string>>();

  /** @param what names the secret in a finding, without giving it away */
  add(what: string, text: string): void {
    if (text.length < PREFIX_CHARACTERS) throw new Error(`${what} is too short to tell from other text`);
    const prefix = text.slice(0, PREFIX_CHARACTERS);
    const texts = this.#byPrefix.get(prefix) ?? new Map<string, string>();
    this.#byPrefix.set(prefix, texts.set(text, what));
  }

  /** Adds the bytes as base64, base64url and hex. */
  addBytes(what: string, bytes: Buffer): void {
    for (const encoding of ['base64', 'base64url', 'hex'] as const) {
      this.add(`${what} (${encoding})`, bytes.toString(encoding));
    }
  }

  addPrivateKey(what: string, key: KeyObject): void {
    const pem = key.export({ format: 'pem', type: 'pkcs8' }).toString();
    // A log line would break the PEM's lines apart, or escape their ends: each long one counts.
    const lines = pem.split('\n').filter((line) => line.length >= PREFIX_CHARACTERS && !line.startsWith('-'));
    for (const line of lines) this.add(`${what} (PEM)`, line);
    this.addBytes(what, key.export({ format: 'der', type: 'pkcs8' }));
    const { d } = key.export({ format: 'jwk' });
    if (typeof d === 'string') this.addBytes(`${what} (d)`, Buffer.from(d, 'base64url'));
  }

  /** Names of the secrets that a text holds, each once. There are thousands of them: one pass over the text. */
  foundIn(text: string): readonly string[] {
    const found = new Set<string>();
    for (let at = 0; at + PREFIX_CHARACTERS <= text.length; at += 1) {
      const candidates = this.#byPrefix.get(text.slice(at, at + PREFIX_CHARACTERS));
      for (const [secret, what] of candidates ?? []) if (text.startsWith(secret, at)) found.add(what);
    }
    return [...found];
  }
}
