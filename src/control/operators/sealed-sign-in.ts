/**
 * Stores a sign-in between two steps: sealed in the database, keyed by the hash of its handle, taken once. A reader of
 * the database learns neither the nonce nor the verifier, and cannot complete a sign-in.
 */

import { randomBytes } from 'node:crypto';
import { isBase64urlOf32Bytes } from '../../protocol/base64url.ts';
import { MAX_PORT } from '../../protocol/limits.ts';
import { parseStrictJson } from '../../protocol/strict-json.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { tokenHash } from '../secrets/bearer-token.ts';
import { UnsealError } from '../secrets/master-key.ts';
import type { MasterKeys } from '../secrets/master-keys.ts';
import type { ControlStore } from '../store/port.ts';
import type { SignInSecrets } from './identity-provider.ts';
import type { OperatorIdentity } from './operator-identity.ts';

/** Waits for the browser to return from the identity provider. */
export interface PendingSignIn {
  readonly step: 'pending';
  /** Hash of the cookie of the browser that began it. */
  readonly browserHash: string;
  readonly redirectUri: string;
  readonly destination: Destination;
  readonly secrets: SignInSecrets;
}

/** Waits for the operator to confirm the command line. */
interface UnconfirmedSignIn {
  readonly step: 'unconfirmed';
  readonly browserHash: string;
  readonly identity: OperatorIdentity;
  readonly commandLine: CommandLine;
}

/** Waits for the command line to send its verifier. */
interface ConfirmedSignIn {
  readonly step: 'confirmed';
  readonly identity: OperatorIdentity;
  readonly challenge: string;
}

type SignInStep = PendingSignIn | UnconfirmedSignIn | ConfirmedSignIn;

const STEP_LIFETIME_MS = {
  pending: 600_000,
  unconfirmed: 300_000,
  confirmed: 60_000,
} as const satisfies { readonly [S in SignInStep['step']]: number };

export interface SignInSteps {
  /** @param handle what the caller will bring back; random if absent @returns the handle */
  keep(step: SignInStep, handle?: string): Promise<string>;
  /** Undefined when it does not exist, has expired, or waits for another step. Removes it in any case. */
  take<S extends SignInStep['step']>(
    step: S,
    handle: string,
  ): Promise<Extract<SignInStep, { readonly step: S }> | undefined>;
}

export function signInSteps(store: ControlStore, masterKeys: MasterKeys, nowMs: () => number): SignInSteps {
  return {
    async keep(step, handle = randomBytes(32).toString('base64url')) {
      const stateHash = tokenHash(handle);
      const secret = Buffer.from(JSON.stringify(step));
      const expiresAtMs = nowMs() + STEP_LIFETIME_MS[step.step];
      await store.writeUnaudited({ kind: 'encrypting' }, async (tx) => {
        const sealed = (await masterKeys.current(tx)).seal(secret, purposeOf(step.step, stateHash));
        await tx.operators.addSignIn({ stateHash, sealed, expiresAtMs });
      });
      return handle;
    },
    async take(step, handle) {
      const stateHash = tokenHash(handle);
      const row = await store.writeUnaudited(undefined, (tx) => tx.operators.takeSignIn(stateHash));
      if (row === undefined || row.expiresAtMs <= nowMs()) return undefined;
      return unsealed(masterKeys, row.sealed, step, stateHash);
    },
  };
}

/** The sealing purpose binds the text to its step and handle, which makes the type assertion safe. */
function unsealed<S extends SignInStep['step']>(
  masterKeys: MasterKeys,
  sealed: string,
  step: S,
  stateHash: string,
): Extract<SignInStep, { readonly step: S }> | undefined {
  try {
    const text = masterKeys.unseal(sealed, purposeOf(step, stateHash)).toString();
    return parseStrictJson(text) as Extract<SignInStep, { readonly step: S }>;
  } catch (error) {
    if (error instanceof UnsealError) return undefined;
    throw error;
  }
}

/** Every purpose for which the text of a stored sign-in may be sealed. */
export function signInPurposes(stateHash: string): readonly string[] {
  return (['pending', 'unconfirmed', 'confirmed'] as const).map((step) => purposeOf(step, stateHash));
}

function purposeOf(step: SignInStep['step'], stateHash: string): string {
  return `sign-in:${step}:${stateHash}`;
}

/**
 * Validates where the browser goes after signing in. It never goes to another site: only to a path of this host or, for a
 * command line, to a loopback port.
 * Source: RFC 8252 sections 7.3 and 8.1 (loopback redirects), RFC 7636 (S256), docs/operate/control.md "Operators".
 */

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

/** @throws ApiProblem `request_malformed` */
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
 * must be visible ASCII without a backslash and must not begin with two slashes. Without dot segments it also stays below
 * the path of the public URL.
 */
function returnPath(text: string): string {
  const hasDotSegment = /\/(?:\.|%2e){1,2}(?:[/?#]|$)/i.test(text);
  if (text.length > MAX_PATH_CHARACTERS || hasDotSegment || !/^\/(?!\/)[!-[\]-~]*$/.test(text)) {
    throw malformed('return_to must be a path of this host');
  }
  return text;
}

const LOOPBACK =
  /^http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost):([1-9][0-9]{0,4})(?:\/[A-Za-z0-9._~/-]{0,256})?$/;

function isLoopbackRedirect(text: string): boolean {
  const port = LOOPBACK.exec(text)?.[1];
  return port !== undefined && Number(port) <= MAX_PORT;
}

function malformed(detail: string): ApiProblem {
  return new ApiProblem('request_malformed', detail);
}
