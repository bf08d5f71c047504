/**
 * Signs in with the browser (PKCE): the operator signs in and confirms this command line there. A code returns to a loopback
 * port and is exchanged for a session with a verifier that never left this process.
 * Source: docs/control.md "Signing in for a command line"; RFC 7636, RFC 8252.
 */
import { hash, randomBytes } from 'node:crypto';
import { signInCode } from '../../protocol/sign-in-code.ts';
import type { ControlApi } from './control-api.ts';
import { OperatorError } from './operator-error.ts';
import { SignInRedirect } from './sign-in-redirect.ts';

export interface SignInRun {
  /** A connection without a token. */
  readonly api: ControlApi;
  /** Control's base URL, for the browser. */
  readonly controlUrl: string;
  /** Loopback port for the redirect; 0: any free port. */
  readonly port: number;
  /** Timeout for the operator. */
  readonly timeoutMs: number;
  readonly stop: AbortSignal;
  /** @param code must also be on the page in the browser */
  readonly show: (url: string, code: string) => void;
  /** Called when a redirect of another sign-in was rejected. */
  readonly onStrayAnswer: () => void;
}

/** 256 bits, as 43 characters of base64url. */
const SECRET_BYTES = 32;

/**
 * @returns the session's token, a secret
 * @throws OperatorError `sign_in_denied`, `sign_in_timed_out`, `sign_in_stopped`, `listen_failed`; codes of Control, such as
 *   `sign_in_not_configured`, `sign_in_code_invalid`
 */
export async function signIn(run: SignInRun): Promise<string> {
  const verifier = newSecret();
  const challenge = hash('sha256', verifier, 'base64url');
  const state = newSecret();
  const { port, onStrayAnswer } = run;
  const redirect = await SignInRedirect.listen({ port, state, onStrayAnswer });
  try {
    const query = new URLSearchParams({
      cli_redirect: redirect.url,
      cli_challenge: challenge,
      cli_state: state,
    });
    const path = `/auth/login?${query}`;
    // Reports a fault of the sign-in URL here; otherwise it would only appear in the browser.
    await run.api.expectRedirect(path);
    run.show(`${run.controlUrl}${path}`, signInCode(challenge));
    const answer = await redirect.answer({ timeoutMs: run.timeoutMs, stop: run.stop });
    if (answer.kind === 'denied')
      throw new OperatorError('refused', 'sign_in_denied', 'denied in the browser');
    return await exchange(run.api, answer.code, verifier);
  } finally {
    await redirect.close();
  }
}

/** Not retried: a code works only once, and if the response is lost, the session's token is lost too. */
async function exchange(api: ControlApi, code: string, verifier: string): Promise<string> {
  const { token } = (await api.act('/v1/session/exchange', { code, verifier })).body;
  if (typeof token !== 'string' || !isSessionToken(token)) throw unexpected('holds no session');
  return token;
}

/** The signed-in operator, as shown to the user. */
export interface SignedIn {
  readonly actor: string;
  readonly displayName: string;
  /** RFC 3339. */
  readonly expiresAt: string;
  readonly roles: readonly unknown[];
}

/** @param api with the session's token @throws OperatorError */
export async function readSignedIn(api: ControlApi): Promise<SignedIn> {
  const { body } = await api.get('/v1/session');
  const { actor, display_name: displayName, expires_at: expiresAt, roles } = body;
  if (
    typeof actor !== 'string' ||
    typeof displayName !== 'string' ||
    typeof expiresAt !== 'string' ||
    !Array.isArray(roles)
  ) {
    throw unexpected('says not who is signed in');
  }
  return { actor, displayName, expiresAt, roles };
}

/** Ends the session of the connection's token; a session that has already ended is not an error. @throws OperatorError */
export async function signOut(api: ControlApi): Promise<void> {
  await api.act('/auth/logout');
}

function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url');
}

function unexpected(problem: string): OperatorError {
  return new OperatorError('unreachable', 'answer_unexpected', `Control's answer ${problem}`);
}

/** Format of an operator's session token: 256 random bits. Source: docs/control.md "Operators". */
const SESSION_TOKEN = /^pgs_[A-Za-z0-9_-]{43}$/;

export function isSessionToken(text: string): boolean {
  return SESSION_TOKEN.test(text);
}
