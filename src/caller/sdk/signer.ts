/** Signs requests with a key file: `fetch`, an undici interceptor, and headers for other clients. Source: docs/tutorials/signing.md. */
import { inspect } from 'node:util';
import { KeyFileIdentity } from '../enroll/key-file-identity.ts';
import { parseRequestUrl } from '../request-url.ts';
import {
  type SignerOptions as EngineOptions,
  type FoundProfile,
  RequestSigner,
  type SigningFailure,
} from '../sign/request-signer.ts';
import { ClockCheck } from './clock-check.ts';
import type { FollowPolicy } from './follow-policy.ts';
import { type HeadersLike, headerLinesOf, isOfSigner } from './header-lines.ts';
import type { PreparedRequest, ReadAnswer, SignedHeaders } from './prepared-request.ts';
import { bytesOf, isAbsent } from './signable-body.ts';
import { type FetchLike, signedFetch } from './signed-fetch.ts';
import { asSignerError, SignerError } from './signer-error.ts';
import { type Interceptor, signingInterceptor } from './signing-interceptor.ts';

/** Key of a `Signer`, and its handling of warnings, denials and redirects. */
export interface SignerOptions {
  /** Private key, with its state beside it, as `proofgate agent` and `proofgate enroll` write them. */
  readonly keyFile: string;
  /** Receives warnings about a wrong clock or about replaced files that cannot be used. Default: `process.emitWarning`. */
  readonly onWarning?: (text: string) => void;
  /** `fetch` throws `RequestDenied` when a verifier denies a request. Default: it returns the response. */
  readonly throwOnDenial?: boolean;
  /** Redirects that are signed anew and followed. Default: `same-origin`. */
  readonly follow?: FollowPolicy;
  /**
   * Format of the proofs; the routes must accept it. `http-message-signatures` is RFC 9421, without a passport: for a key with a
   * key ID, not for one with a broker's passports. `dpop` is RFC 9449, and covers neither query, headers nor body. Default: `transcript-v1`.
   */
  readonly proof?: 'transcript-v1' | 'http-message-signatures' | 'dpop';
}

/** Clock and random identifiers. */
export type SignerSources = Pick<EngineOptions, 'nowMs' | 'newJti'>;

/** A request that another client sends. */
export interface RequestToSign {
  /** Default: `GET`. */
  readonly method?: string;
  /** Exactly as the client sends it. */
  readonly url: string | URL;
  /** Headers of the request; those that the route requires are signed. */
  readonly headers?: HeadersLike;
  /** A string, bytes, `URLSearchParams` or a `Blob`. Other bodies work only if the route does not bind the body. */
  readonly body?: unknown;
  /** Names of further headers to sign. */
  readonly signHeaders?: readonly string[];
  /** Name of the profile, if several fit. */
  readonly profile?: string;
  /** `DPoP-Nonce` of the server's last answer, with `proof: 'dpop'`. Default: the last that `fetch` or the interceptor got. */
  readonly dpopNonce?: string;
}

/** Signs with a key file and the state beside it, and follows both when they are replaced. */
export class Signer {
  readonly #options: SignerOptions;
  readonly #identity: KeyFileIdentity;
  readonly #engine: RequestSigner;
  readonly #clock: ClockCheck;

  private constructor(options: SignerOptions, sources: SignerSources) {
    this.#options = options;
    this.#engine = new RequestSigner({ ...sources, ...(options.proof && { proof: options.proof }) });
    const { onWarning = emitWarning } = options;
    this.#identity = new KeyFileIdentity(options.keyFile, {
      ...sources,
      onRejected: () => onWarning(`replaced files of ${options.keyFile} cannot be used yet`),
    });
    this.#clock = new ClockCheck(onWarning, Date.now);
  }

  /**
   * Reads the key file, and reads it again whenever it is replaced.
   * @param sources for tests that need the same bytes each time
   * @throws SignerError, and TypeError without `keyFile`
   */
  static async open(options: SignerOptions, sources: SignerSources = {}): Promise<Signer> {
    if (typeof options?.keyFile !== 'string') throw new TypeError('Signer.open needs { keyFile: PATH }');
    const signer = new Signer(options, sources);
    await signer.#load();
    return signer;
  }

  /**
   * `fetch` that signs each request, also after a redirect. It can be passed to libraries that take a `fetch`.
   * @throws SignerError before the request, or that of a redirect, is sent; otherwise as `fetch`
   */
  readonly fetch: FetchLike = (input, init) =>
    signedFetch(input, init, {
      sign: (request) => this.#sign(request),
      readAnswer: this.#readAnswer,
      clock: this.#clock,
      throwOnDenial: this.#options.throwOnDenial === true,
      follow: this.#follow,
    });

  /**
   * Signs a request that another client sends, such as node:http, axios or got. The client must send exactly this URL, and
   * must not follow redirects or retry with these headers.
   * @throws SignerError
   */
  async sign(request: RequestToSign): Promise<SignedHeaders> {
    const { body } = request;
    const bytes = isAbsent(body) ? undefined : await bytesOf(body);
    return this.#sign({
      method: request.method ?? 'GET',
      url: String(request.url),
      headers: headerLinesOf(request.headers),
      body: bytes ?? (isAbsent(body) ? undefined : 'stream'),
      ...(request.signHeaders && { signHeaders: request.signHeaders }),
      ...(request.profile !== undefined && { choice: { kind: 'name', name: request.profile } }),
      ...(request.dpopNonce !== undefined && { dpopNonce: request.dpopNonce }),
    });
  }

  /**
   * Creates an interceptor for `dispatcher.compose` of undici. Place it first, so that retries and redirects of other
   * interceptors are signed anew. Place undici's redirect interceptor directly after it, because otherwise a redirect
   * is not recognized.
   */
  interceptor(): Interceptor {
    return signingInterceptor({
      sign: (request) => this.#sign(request),
      readAnswer: this.#readAnswer,
      clock: this.#clock,
      follow: this.#follow,
    });
  }

  get #follow(): FollowPolicy {
    return this.#options.follow ?? 'same-origin';
  }

  /** Shows the name of the key file, never the key. */
  toJSON(): string {
    return `Signer(${this.#options.keyFile})`;
  }

  [inspect.custom](): string {
    return this.toJSON();
  }

  readonly #readAnswer: ReadAnswer = (url, status, headers) =>
    this.#engine.readAnswer(parseRequestUrl(url).origin, status, headers);

  async #load(): Promise<void> {
    try {
      const identity = await this.#identity.current();
      if (identity !== this.#engine.identity) this.#engine.replaceIdentity(identity);
    } catch (error) {
      this.#engine.replaceIdentity(undefined);
      throw asSignerError(error);
    }
  }

  async #sign({ body, ...request }: PreparedRequest): Promise<SignedHeaders> {
    await this.#load();
    if (body === 'stream') this.#requireUncovered(this.#engine.profileFor(request));
    const headers = request.headers.filter(({ name, value }) => !isOfSigner(name, value));
    const signed = this.#engine.sign({ ...request, headers, body: body === 'stream' ? undefined : body });
    if (signed.kind === 'failed') throw new SignerError(signed.code, signed.message);
    return Object.fromEntries(signed.headers.reveal().map(({ name, value }) => [name, value]));
  }

  /** @throws SignerError `body_not_replayable` */
  #requireUncovered(found: FoundProfile | SigningFailure): void {
    if (found.kind === 'failed') throw new SignerError(found.code, found.message);
    if (!this.#engine.coversBody(found.profile)) return;
    throw new SignerError(
      'body_not_replayable',
      'the proof covers the body, and this one can be read only once: pass its bytes, such as ' +
        'await new Response(body).arrayBuffer(), or have the route declared with body: unbound',
    );
  }
}

function emitWarning(text: string): void {
  process.emitWarning(text, { type: 'ProofgateWarning' });
}
