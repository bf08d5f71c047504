/** Bearer tokens of targets, automation, operators' sessions and the bootstrap: shown once, kept as hashes only. */
import { hash, randomBytes } from 'node:crypto';

/** What a token is for; its first letters, so that a scanner finds a leaked one. */
export const TOKEN_KINDS = {
  bootstrap: 'pgb',
  target: 'pgt',
  access: 'pga',
  session: 'pgs',
} as const;
export type TokenKind = keyof typeof TOKEN_KINDS;

const TOKEN = /^(pgb|pgt|pga|pgs)_[A-Za-z0-9_-]{43}$/;

/** 256 random bits with their prefix. */
export function newToken(kind: TokenKind): string {
  return `${TOKEN_KINDS[kind]}_${randomBytes(32).toString('base64url')}`;
}

/** @returns undefined for a text that is no token of ours */
export function tokenKind(token: string): TokenKind | undefined {
  const prefix = TOKEN.exec(token)?.[1];
  return (Object.keys(TOKEN_KINDS) as TokenKind[]).find((kind) => TOKEN_KINDS[kind] === prefix);
}

/** What is kept. A token holds 256 random bits, so a plain hash is enough. base64url SHA-256. */
export function tokenHash(token: string): string {
  return hash('sha256', token, 'base64url');
}
