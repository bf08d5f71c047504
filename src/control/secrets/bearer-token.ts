/** Bearer tokens of targets, automation, sessions and the bootstrap: shown once, stored only as hashes. */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto';

/** Prefix of each kind of token, by which secret scanners find leaked ones. */
export const TOKEN_KINDS = {
  bootstrap: 'pgb',
  target: 'pgt',
  access: 'pga',
  session: 'pgs',
} as const;
export type TokenKind = keyof typeof TOKEN_KINDS;

const TOKEN = /^(pgb|pgt|pga|pgs)_[A-Za-z0-9_-]{43}$/;

/** A prefix and 256 random bits. */
export function newToken(kind: TokenKind): string {
  return `${TOKEN_KINDS[kind]}_${randomBytes(32).toString('base64url')}`;
}

/** @returns undefined unless the text is one of Control's tokens */
export function tokenKind(token: string): TokenKind | undefined {
  const prefix = TOKEN.exec(token)?.[1];
  return (Object.keys(TOKEN_KINDS) as TokenKind[]).find((kind) => TOKEN_KINDS[kind] === prefix);
}

/** The stored hash, base64url SHA-256. Tokens hold 256 random bits, so a plain hash is enough. */
export function tokenHash(token: string): string {
  return hash('sha256', token, 'base64url');
}

/** Compares in constant time. The lengths are not secret. */
export function isSameSecret(one: string, other: string): boolean {
  const oneBytes = Buffer.from(one);
  const otherBytes = Buffer.from(other);
  return oneBytes.length === otherBytes.length && timingSafeEqual(oneBytes, otherBytes);
}
