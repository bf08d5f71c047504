import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  isSameSecret,
  newToken,
  TOKEN_KINDS,
  type TokenKind,
  tokenHash,
  tokenKind,
} from '../../../src/control/secrets/bearer-token.ts';
import { MASTER_KEY_BYTES, MasterKey, UnsealError } from '../../../src/control/secrets/master-key.ts';
import { createLogger } from '../../../src/process/telemetry/logger.ts';

const bytes = MasterKey.random();
const key = new MasterKey(bytes);
const PURPOSE = 'signing-key:sk_1';
const SECRET = Buffer.from('a private key of some length');

describe('sealing', () => {
  it('gives back what was sealed, whatever it was', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.string(), (secret, purpose) => {
        expect(key.unseal(key.seal(secret, purpose), purpose)).toEqual(Buffer.from(secret));
      }),
    );
  });

  it('seals one text differently each time, and shows nothing of it', () => {
    const sealed = Array.from({ length: 100 }, () => key.seal(SECRET, PURPOSE));
    expect(new Set(sealed).size).toBe(sealed.length);
    for (const text of sealed) expect(Buffer.from(text, 'base64url').includes(SECRET)).toBe(false);
  });

  it('holds for its purpose and its key', () => {
    const sealed = key.seal(SECRET, PURPOSE);
    for (const purpose of ['', 'signing-key:sk_2', `${PURPOSE} `, 'Signing-key:sk_1']) {
      expect(() => key.unseal(sealed, purpose)).toThrow(UnsealError);
    }
    expect(() => new MasterKey(MasterKey.random()).unseal(sealed, PURPOSE)).toThrow(UnsealError);
    expect(new MasterKey(Buffer.from(bytes)).unseal(sealed, PURPOSE)).toEqual(SECRET);
  });

  it('notices a change of any bit of any byte', () => {
    const sealed = Buffer.from(key.seal(SECRET, PURPOSE), 'base64url');
    for (let at = 0; at < sealed.length; at++) {
      for (let bit = 0; bit < 8; bit++) {
        const changed = Buffer.from(sealed);
        changed[at] = (changed[at] ?? 0) ^ (1 << bit);
        expect(() => key.unseal(changed.toString('base64url'), PURPOSE)).toThrow(UnsealError);
      }
    }
  });

  it('takes one spelling, and nothing that is cut or longer', () => {
    const sealed = key.seal(SECRET, PURPOSE);
    for (let length = 0; length < sealed.length; length++) {
      expect(() => key.unseal(sealed.slice(0, length), PURPOSE)).toThrow(UnsealError);
    }
    const others = [`${sealed}=`, ` ${sealed}`, `${sealed}\n`, `${sealed}A`, `${sealed}AAAA`, `!${sealed}`];
    for (const other of others) expect(() => key.unseal(other, PURPOSE)).toThrow(UnsealError);
    const ofTwo = key.seal(Buffer.alloc(2), PURPOSE);
    expect(ofTwo).toHaveLength(40);
    const ofOne = key.seal(Buffer.alloc(1), PURPOSE);
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const spellings = [...alphabet].filter((last) => {
      try {
        key.unseal(ofOne.slice(0, -1) + last, PURPOSE);
        return true;
      } catch {
        return false;
      }
    });
    expect(spellings).toEqual([ofOne.at(-1)]);
  });

  it('needs a key of 32 bytes', () => {
    for (const length of [0, 16, MASTER_KEY_BYTES - 1, MASTER_KEY_BYTES + 1]) {
      expect(() => new MasterKey(Buffer.alloc(length))).toThrow(RangeError);
    }
  });
});

describe('challenges', () => {
  it('are always the same for the same challenge, and 256 bits', () => {
    const challenge = key.challenge('ch_1', 'ep_1', 'thumbprint');
    expect(challenge).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(new MasterKey(Buffer.from(bytes)).challenge('ch_1', 'ep_1', 'thumbprint')).toBe(challenge);
  });

  it('differ by challenge, policy, key and master key', () => {
    const challenges = [
      key.challenge('ch_1', 'ep_1', 't'),
      key.challenge('ch_2', 'ep_1', 't'),
      key.challenge('ch_1', 'ep_2', 't'),
      key.challenge('ch_1', 'ep_1', 'u'),
      key.challenge('ch_1ep_1', '', 't'),
      new MasterKey(MasterKey.random()).challenge('ch_1', 'ep_1', 't'),
    ];
    expect(new Set(challenges).size).toBe(challenges.length);
  });
});

it('a master key is named without being shown, and printed nowhere', () => {
  expect(new MasterKey(Buffer.from(bytes)).id).toBe(key.id);
  expect(new MasterKey(MasterKey.random()).id).not.toBe(key.id);
  const lines: string[] = [];
  createLogger('info', { write: (line) => void lines.push(line) }).info({ key, nested: { key } }, `${key}`);
  const texts = [
    String(key),
    JSON.stringify({ key }),
    inspect(key, { depth: 9, showHidden: true }),
    ...lines,
  ];
  expect(lines).toHaveLength(1);
  for (const text of texts) {
    expect(text).not.toContain(bytes.toString('base64url'));
    expect(text).not.toContain(bytes.toString('hex'));
    expect(text).not.toMatch(/<Buffer|Uint8Array/);
  }
});

describe('bearer tokens', () => {
  const kinds = Object.keys(TOKEN_KINDS) as TokenKind[];

  it.each(kinds)('of kind %s are known by their beginning', (kind) => {
    const tokens = Array.from({ length: 100 }, () => newToken(kind));
    expect(new Set(tokens).size).toBe(tokens.length);
    for (const token of tokens) {
      expect(token).toMatch(new RegExp(`^${TOKEN_KINDS[kind]}_[A-Za-z0-9_-]{43}$`));
      expect(tokenKind(token)).toBe(kind);
    }
  });

  it('are nothing when they are cut, longer, of another alphabet or of no kind', () => {
    const token = newToken('access');
    const others = ['', 'pga_', token.slice(0, -1), `${token}A`, ` ${token}`, `${token}\n`, `x${token}`];
    for (const other of [...others, token.replace('pga', 'pgx'), token.replace('pga', 'PGA')]) {
      expect(tokenKind(other)).toBeUndefined();
    }
  });

  it('are kept as hashes that say nothing of them', () => {
    const token = newToken('target');
    const hash = tokenHash(token);
    expect(hash).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(hash).toBe(tokenHash(token));
    expect(token).not.toContain(hash);
    expect(hash).not.toBe(tokenHash(newToken('target')));
  });

  it('compare as texts do', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => {
        expect(isSameSecret(a, b)).toBe(a === b);
        expect(isSameSecret(a, a)).toBe(true);
      }),
    );
  });
});
