/** Format of an operator's session token: 256 random bits. Source: docs/control.md "Operators". */

const SESSION_TOKEN = /^pgs_[A-Za-z0-9_-]{43}$/;

export function isSessionToken(text: string): boolean {
  return SESSION_TOKEN.test(text);
}
