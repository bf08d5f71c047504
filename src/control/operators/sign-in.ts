/**
 * The sign-in flow through the identity provider, with one more step for a command line. Each step is bound to the
 * browser that began it, works once, and expires soon.
 *
 *     begin → browser at the identity provider → finish → session in a cookie
 *                                                       → page "is this command line yours?" → decide → code → exchange
 *
 * Source: RFC 9700 section 4.7 (login CSRF), RFC 8252, RFC 7636; docs/operate/control.md "Operators".
 */
import { createHash, randomBytes } from 'node:crypto';
import { ApiProblem } from '../domain/api-problem.ts';
import { isSameSecret, tokenHash } from '../secrets/bearer-token.ts';
import { IdentityProvider } from './identity-provider.ts';
import type { OperatorIdentity } from './operator-identity.ts';
import type { CommandLine, Destination, PendingSignIn, SignInSteps } from './sealed-sign-in.ts';
import type { Sessions, StartedSession } from './sessions.ts';

/** Redirect to the identity provider, and the cookie that binds the sign-in to this browser. */
export interface BegunSignIn {
  readonly location: string;
  /** A secret of this browser. */
  readonly browserSecret: string;
}

export type FinishedSignIn =
  | { readonly kind: 'session'; readonly session: StartedSession; readonly path: string }
  | {
      readonly kind: 'confirm';
      /** The page's form returns it. A secret of this browser. */
      readonly confirmation: string;
      readonly displayName: string;
      readonly commandLine: CommandLine;
    };

export interface SignInOptions {
  /** Undefined when none is configured: every step then fails. */
  readonly identityProvider: Pick<IdentityProvider, 'authorizationUrl' | 'identify'> | undefined;
  readonly steps: SignInSteps;
  readonly sessions: Sessions;
}

export class SignIns {
  readonly #options: SignInOptions;

  constructor(options: SignInOptions) {
    this.#options = options;
  }

  /** Whether an identity provider is configured. */
  get isConfigured(): boolean {
    return this.#options.identityProvider !== undefined;
  }

  /**
   * @param redirectUri the callback under the public URL that the browser uses
   * @throws ApiProblem `sign_in_not_configured`, `identity_provider_unavailable`
   */
  async begin(redirectUri: string, destination: Destination): Promise<BegunSignIn> {
    const secrets = IdentityProvider.newSecrets();
    const location = await this.#provider().authorizationUrl(redirectUri, secrets);
    const browserSecret = randomBytes(32).toString('base64url');
    const browserHash = tokenHash(browserSecret);
    await this.#options.steps.keep(
      { step: 'pending', browserHash, redirectUri, destination, secrets },
      secrets.state,
    );
    return { location, browserSecret };
  }

  /**
   * Handles the callback. It consumes the state before it contacts the provider.
   * @param answer the query as received
   * @throws ApiProblem `sign_in_state_invalid`, `sign_in_refused`, `identity_provider_unavailable`, `sign_in_not_configured`
   */
  async finish(
    answer: string,
    browserSecret: string | undefined,
    requestId: string,
  ): Promise<FinishedSignIn> {
    const provider = this.#provider();
    const pending = await this.#takePending(answer, browserSecret);
    const identity = await provider.identify(pending.redirectUri, answer, pending.secrets);
    if (pending.destination.kind === 'page') {
      const session = await this.#options.sessions.start(identity, 'browser', requestId);
      return { kind: 'session', session, path: pending.destination.path };
    }
    return this.#askFirst(identity, pending.browserHash, pending.destination);
  }

  async #takePending(answer: string, browserSecret: string | undefined): Promise<PendingSignIn> {
    const [state, ...more] = new URLSearchParams(answer).getAll('state');
    if (state === undefined || more.length > 0) throw new ApiProblem('sign_in_state_invalid');
    const pending = await this.#options.steps.take('pending', state);
    if (pending === undefined || !isSameBrowser(browserSecret, pending.browserHash)) {
      throw new ApiProblem('sign_in_state_invalid');
    }
    return pending;
  }

  /**
   * A link can begin this flow, and an identity provider with a live session asks the operator nothing. So no loopback
   * port gets a code before the operator confirms the command line (RFC 8252 section 8.6).
   */
  async #askFirst(
    identity: OperatorIdentity,
    browserHash: string,
    commandLine: CommandLine,
  ): Promise<FinishedSignIn> {
    const confirmation = await this.#options.steps.keep({
      step: 'unconfirmed',
      browserHash,
      identity,
      commandLine: {
        redirect: commandLine.redirect,
        challenge: commandLine.challenge,
        state: commandLine.state,
      },
    });
    return { kind: 'confirm', confirmation, displayName: identity.displayName, commandLine };
  }

  /**
   * @returns the redirect to the command line, with a code or with `error=access_denied`
   * @throws ApiProblem `sign_in_state_invalid`
   */
  async decide(confirmation: string, allowed: boolean, browserSecret: string | undefined): Promise<string> {
    const { steps } = this.#options;
    const unconfirmed = await steps.take('unconfirmed', confirmation);
    if (unconfirmed === undefined || !isSameBrowser(browserSecret, unconfirmed.browserHash)) {
      throw new ApiProblem('sign_in_state_invalid');
    }
    const { identity, commandLine } = unconfirmed;
    const answer = new URLSearchParams({ state: commandLine.state });
    if (allowed) {
      const { challenge } = commandLine;
      answer.set('code', await steps.keep({ step: 'confirmed', identity, challenge }));
    } else {
      answer.set('error', 'access_denied');
    }
    return `${commandLine.redirect}?${answer}`;
  }

  /**
   * @param verifier the preimage of `cli_challenge` (S256, RFC 7636 section 4.6)
   * @throws ApiProblem `sign_in_code_invalid`; the code is consumed in that case too
   */
  async exchange(code: string, verifier: string, requestId: string): Promise<StartedSession> {
    const { steps, sessions } = this.#options;
    const confirmed = await steps.take('confirmed', code);
    const shown = createHash('sha256').update(verifier, 'ascii').digest('base64url');
    if (confirmed === undefined || !isSameSecret(shown, confirmed.challenge)) {
      throw new ApiProblem('sign_in_code_invalid');
    }
    return sessions.start(confirmed.identity, 'command_line', requestId);
  }

  #provider(): Pick<IdentityProvider, 'authorizationUrl' | 'identify'> {
    const { identityProvider } = this.#options;
    if (identityProvider === undefined) throw new ApiProblem('sign_in_not_configured');
    return identityProvider;
  }
}

function isSameBrowser(browserSecret: string | undefined, browserHash: string): boolean {
  return browserSecret !== undefined && isSameSecret(tokenHash(browserSecret), browserHash);
}
