/**
 * How values of a request are shown. Nothing that can be spent is: passport, transcript and signature appear as size and
 * hash, a `jti` as its beginning, and what looks like a credential elsewhere as size and hash.
 */
import { hash } from 'node:crypto';

/** Header and parameter names whose values are nobody's to read. */
const CREDENTIAL_NAME =
  /^(?:authorization|proxy-authorization|cookie|set-cookie|x-api-key|apikey|api_key|key|code|sig|signature)$|token|secret|passw|credential|session|api-?key/i;

export function looksLikeCredential(name: string): boolean {
  return CREDENTIAL_NAME.test(name);
}

/** Visible ASCII and spaces as they are, everything else escaped: a terminal shows what is there and does nothing. */
export function quoted(value: string): string {
  return value.replace(/[^\x20-\x7e]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code <= 0xff ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
  });
}

const HASH_CHARACTERS = 8;

/** `[24 characters, sha256 1a2b3c4d]` */
export function veiled(value: string): string {
  const digest = hash('sha256', value, 'hex').slice(0, HASH_CHARACTERS);
  return `[${value.length} characters, sha256 ${digest}]`;
}

const JTI_CHARACTERS = 6;

/** `aBcD12… (22 characters)` */
export function shownJti(jti: string): string {
  return `${quoted(jti.slice(0, JTI_CHARACTERS))}… (${jti.length} characters)`;
}

/** Values of parameters that look like credentials are veiled. */
export function shownTarget(target: string): string {
  const query = target.indexOf('?');
  if (query === -1) return quoted(target);
  const parameters = target.slice(query + 1).split('&');
  return `${quoted(target.slice(0, query))}?${parameters.map(shownParameter).join('&')}`;
}

function shownParameter(parameter: string): string {
  const at = parameter.indexOf('=');
  const name = at === -1 ? parameter : parameter.slice(0, at);
  const isSecret = at !== -1 && looksLikeCredential(decoded(name));
  return isSecret ? `${quoted(name)}=${veiled(parameter.slice(at + 1))}` : quoted(parameter);
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** Without a user's name and password. */
export function shownAuthority(authority: string): string {
  const at = authority.lastIndexOf('@');
  return at === -1
    ? quoted(authority)
    : `${veiled(authority.slice(0, at))}@${quoted(authority.slice(at + 1))}`;
}

/** @param signedNames headers that the caller signed: others are never shown */
export function shownLine(line: string, value: string, signedNames: ReadonlySet<string>): string {
  if (line === 'jti') return shownJti(value);
  if (line === 'target') return shownTarget(value);
  if (line === 'authority') return shownAuthority(value);
  if (!line.startsWith('header.')) return quoted(value);
  const name = line.slice('header.'.length);
  return signedNames.has(name) && !looksLikeCredential(name) ? quoted(value) : veiled(value);
}
