/**
 * Client of the operators' identity provider: OpenID Connect's code flow with PKCE. The administrator chooses the
 * provider, so its address may be private. TLS is verified against the system's CAs or the configured file.
 * Source: OpenID Connect Core 1.0 section 3.1, RFC 7636, RFC 9207, RFC 9700.
 */
import * as oidc from 'openid-client';
import { Agent, fetch as undiciFetch } from 'undici';
import { ApiProblem } from '../domain/api-problem.ts';
import { claimedIdentity, type OperatorIdentity } from './operator-identity.ts';

export interface IdentityProviderOptions {
  /** As in its discovery document and its tokens. https. */
  readonly issuer: string;
  readonly clientId: string;
  /** A secret. Absent for a public client, which relies on PKCE alone. */
  readonly clientSecret: string | undefined;
  /** Certificates (PEM) to trust instead of the system's. */
  readonly caPem: string | undefined;
  /** The claim that lists the operator's groups. Without it, operators have no groups. */
  readonly groupsClaim: string | undefined;
  /** Such as `openid profile email`. */
  readonly scope: string;
  readonly nowMs: () => number;
}

/** Values that the callback must match, and the PKCE verifier. Secrets. */
export interface SignInSecrets {
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
}

const TIMEOUT_SECONDS = 10;
const MAX_ANSWER_BYTES = 1024 * 1024;
/** As the library allows for `exp` and `nbf`. */
const CLOCK_SKEW_SECONDS = 30;
/** Age after which metadata is fetched again. Old metadata stays in use while the provider is unreachable. */
const METADATA_AGE_MS = 3_600_000;

export class IdentityProvider {
  readonly #options: IdentityProviderOptions;
  readonly #agent: Agent;
  #known: { readonly configuration: oidc.Configuration; readonly atMs: number } | undefined;
  #discovering: Promise<oidc.Configuration> | undefined;

  constructor(options: IdentityProviderOptions) {
    this.#options = options;
    this.#agent = new Agent({
      connections: 8,
      maxResponseSize: MAX_ANSWER_BYTES,
      connect: { rejectUnauthorized: true, ...(options.caPem === undefined ? {} : { ca: options.caPem }) },
    });
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }

  /** Checks at start-up that the provider is reachable. @throws ApiProblem `identity_provider_unavailable` */
  async probe(): Promise<void> {
    await this.#configuration();
  }

  static newSecrets(): SignInSecrets {
    return {
      state: oidc.randomState(),
      nonce: oidc.randomNonce(),
      codeVerifier: oidc.randomPKCECodeVerifier(),
    };
  }

  /** URL to which the browser goes to sign in. @throws ApiProblem `identity_provider_unavailable` */
  async authorizationUrl(redirectUri: string, secrets: SignInSecrets): Promise<string> {
    const configuration = await this.#configuration();
    const url = oidc.buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      scope: this.#options.scope,
      state: secrets.state,
      nonce: secrets.nonce,
      code_challenge: await oidc.calculatePKCECodeChallenge(secrets.codeVerifier),
      code_challenge_method: 'S256',
    });
    return url.href;
  }

  /**
   * Exchanges the code and verifies the ID token: signature, issuer, audience, times, nonce.
   * @param answer the callback's query as received
   * @throws ApiProblem `sign_in_refused`, `identity_provider_unavailable`
   */
  async identify(redirectUri: string, answer: string, secrets: SignInSecrets): Promise<OperatorIdentity> {
    const configuration = await this.#configuration();
    try {
      const tokens = await oidc.authorizationCodeGrant(configuration, new URL(`${redirectUri}?${answer}`), {
        expectedState: secrets.state,
        expectedNonce: secrets.nonce,
        pkceCodeVerifier: secrets.codeVerifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (claims === undefined) throw new ApiProblem('sign_in_refused', 'no ID token');
      // The library checks `exp` and `nbf` alone.
      if (!(claims.iat <= this.#options.nowMs() / 1000 + CLOCK_SKEW_SECONDS)) {
        throw new ApiProblem('sign_in_refused', 'the iat of the ID token lies ahead; are both clocks right?');
      }
      const more = await this.#userInfo(configuration, tokens.access_token, claims);
      return claimedIdentity({ ...more, ...claims }, this.#options.groupsClaim);
    } catch (error) {
      throw error instanceof ApiProblem ? error : refusalOf(error);
    }
  }

  /** Some providers return groups and names only here. The subject must match the ID token's (Core 5.3.2). */
  async #userInfo(
    configuration: oidc.Configuration,
    accessToken: string,
    claims: oidc.IDToken,
  ): Promise<{ readonly [claim: string]: unknown }> {
    const { groupsClaim } = this.#options;
    const isComplete = [groupsClaim ?? 'sub', 'name'].every((claim) => claim in claims);
    if (isComplete || configuration.serverMetadata().userinfo_endpoint === undefined) return {};
    return oidc.fetchUserInfo(configuration, accessToken, claims.sub);
  }

  /** Runs one discovery at a time. */
  async #configuration(): Promise<oidc.Configuration> {
    const { nowMs } = this.#options;
    if (this.#known !== undefined && nowMs() - this.#known.atMs < METADATA_AGE_MS) {
      return this.#known.configuration;
    }
    this.#discovering ??= this.#discover().finally(() => {
      this.#discovering = undefined;
    });
    try {
      const configuration = await this.#discovering;
      this.#known = { configuration, atMs: nowMs() };
      return configuration;
    } catch (error) {
      if (this.#known !== undefined) return this.#known.configuration;
      throw new ApiProblem(
        'identity_provider_unavailable',
        `its metadata is unavailable (${faultCode(error)})`,
      );
    }
  }

  #discover(): Promise<oidc.Configuration> {
    const { issuer, clientId, clientSecret } = this.#options;
    const authentication = clientSecret === undefined ? oidc.None() : secretInItsPlace(clientSecret);
    return oidc.discovery(new URL(issuer), clientId, {}, authentication, {
      // Verifies the ID token's signature, although it came directly over TLS.
      execute: [oidc.enableNonRepudiationChecks],
      timeout: TIMEOUT_SECONDS,
      [oidc.customFetch]: (url, options) => this.#fetch(url, options),
    });
  }

  async #fetch(url: string, options: oidc.CustomFetchOptions): Promise<Response> {
    const { body, headers, method, redirect, signal } = options;
    const answer = await undiciFetch(url, {
      method,
      headers,
      redirect,
      dispatcher: this.#agent,
      ...(body === undefined || body === null ? {} : { body: new URLSearchParams(String(body)) }),
      ...(signal === undefined ? {} : { signal }),
    });
    // openid-client requires Node's own Response class.
    const hasBody = answer.status !== 204 && answer.status !== 304;
    return new Response(hasBody ? await answer.arrayBuffer() : null, {
      status: answer.status,
      headers: [...answer.headers],
    });
  }
}

/** RFC 6749 section 2.3.1: HTTP Basic where the provider supports it, which is also the default if it does not say. */
function secretInItsPlace(clientSecret: string): oidc.ClientAuth {
  const basic = oidc.ClientSecretBasic(clientSecret);
  const post = oidc.ClientSecretPost(clientSecret);
  return (server, client, body, headers) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const inPlace = methods.includes('client_secret_basic') ? basic : post;
    return inPlace(server, client, body, headers);
  };
}

/** Maps a provider's error response, or a fault on the way, to a refusal. Never quotes the provider's text. */
function refusalOf(error: unknown): ApiProblem {
  if (error instanceof oidc.AuthorizationResponseError || error instanceof oidc.ResponseBodyError) {
    return new ApiProblem('sign_in_refused', `it answered ${errorWord(error.error)}`);
  }
  const code = faultCode(error);
  return UNAVAILABLE.test(code)
    ? new ApiProblem('identity_provider_unavailable', `it does not answer (${code})`)
    : new ApiProblem('sign_in_refused', `its answer is invalid (${code})`);
}

const UNAVAILABLE = /^(OAUTH_(TIMEOUT|ABORT)|E[A-Z]+|UND_ERR_.*|fetch_failed)$/;

/** RFC 6749 section 4.1.2.1 allows these characters in error codes; anything else is hidden. */
function errorWord(error: string): string {
  return /^[a-z_]{1,64}$/.test(error) ? error : 'an error';
}

/** The innermost error code: openid-client wraps errors. */
function faultCode(error: unknown): string {
  let code = 'unknown';
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ('code' in cause && typeof cause.code === 'string') code = cause.code;
    else if (cause.message === 'fetch failed') code = 'fetch_failed';
  }
  return /^[A-Za-z0-9_]{1,64}$/.test(code) ? code : 'unknown';
}
