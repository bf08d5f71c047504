/**
 * Validates where the browser goes after signing in. It never goes to another site: only to a path of this host or, for a
 * command line, to a loopback port.
 * Source: RFC 8252 sections 7.3 and 8.1 (loopback redirects), RFC 7636 (S256), docs/control.md "Operators".
 */
import { isBase64urlOf32Bytes } from '../../protocol/base64url.ts';
import { Refusal } from '../domain/refusal.ts';

/** The query of `/auth/login`. */
export interface SignInQuery {
  readonly return_to?: string;
  readonly cli_redirect?: string;
  readonly cli_challenge?: string;
  readonly cli_state?: string;
}

/** A command line that listens on a loopback port. */
export interface CommandLine {
  readonly redirect: string;
  /** S256 of the verifier that it will send. */
  readonly challenge: string;
  /** Its own state, returned unchanged. */
  readonly state: string;
}

export type Destination =
  | { readonly kind: 'page'; readonly path: string }
  | ({ readonly kind: 'command_line' } & CommandLine);

const MAX_PATH_CHARACTERS = 2048;

/** @throws Refusal `request_malformed` */
export function destinationOf(query: SignInQuery): Destination {
  const { return_to, cli_redirect, cli_challenge, cli_state } = query;
  if (cli_redirect === undefined && cli_challenge === undefined && cli_state === undefined) {
    return { kind: 'page', path: returnPath(return_to ?? '/') };
  }
  if (return_to !== undefined || cli_redirect === undefined) throw malformed('cli_redirect goes alone');
  if (!isLoopbackRedirect(cli_redirect)) {
    throw malformed('cli_redirect must be http://127.0.0.1:PORT/path, or that of [::1] or localhost');
  }
  if (cli_challenge === undefined || !isBase64urlOf32Bytes(cli_challenge))
    throw malformed('cli_challenge must be S256');
  if (cli_state === undefined || !/^[A-Za-z0-9_-]{1,128}$/.test(cli_state)) {
    throw malformed('cli_state must be 1 to 128 characters of base64url');
  }
  return { kind: 'command_line', redirect: cli_redirect, challenge: cli_challenge, state: cli_state };
}

/**
 * Browsers read `//host`, `/\host` and variants with tabs as another host (WHATWG URL, "special authority"). So a path
 * must be visible ASCII without a backslash and must not begin with two slashes.
 */
function returnPath(text: string): string {
  if (text.length > MAX_PATH_CHARACTERS || !/^\/(?!\/)[!-[\]-~]*$/.test(text)) {
    throw malformed('return_to must be a path of this host');
  }
  return text;
}

const LOOPBACK =
  /^http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost):([1-9][0-9]{0,4})(?:\/[A-Za-z0-9._~/-]{0,256})?$/;

function isLoopbackRedirect(text: string): boolean {
  const port = LOOPBACK.exec(text)?.[1];
  return port !== undefined && Number(port) <= 65_535;
}

function malformed(detail: string): Refusal {
  return new Refusal('request_malformed', detail);
}
