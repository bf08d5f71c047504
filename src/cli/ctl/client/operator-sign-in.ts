/**
 * Signs in with the browser (PKCE): the operator signs in and confirms this command line there. A code returns to a loopback
 * port and is exchanged for a session with a verifier that never left this process.
 * Source: docs/operate/control.md "Signing in for a command line"; RFC 7636, RFC 8252.
 */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { hasTooManyLines, KEPT_HEADER_LINES } from '../../../protocol/header-line-limit.ts';
import { signInCode } from '../../../protocol/sign-in-code.ts';
import type { ControlApi, Schemas } from './control-api.ts';
import { OperatorError } from './operator-error.ts';
import { pathWith } from './paths.ts';

interface SignInRun {
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
    const query = { cli_redirect: redirect.url, cli_challenge: challenge, cli_state: state };
    const path = pathWith('/auth/login', { query });
    // Reports a fault of the sign-in URL here; otherwise it would only appear in the browser.
    await run.api.untyped.expectRedirect(path);
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
  const { token } = (await api.act('/v1/session/exchange', { body: { code, verifier } })).body;
  if (!isSessionToken(token)) throw unexpected('holds no session');
  return token;
}

/** The signed-in operator. */
export type SignedIn = Schemas['Session'] & { readonly expires_at: string };

/** @param api with the session's token @throws OperatorError */
export async function readSignedIn(api: ControlApi): Promise<SignedIn> {
  const { body } = await api.get('/v1/session');
  const { expires_at } = body;
  if (expires_at === undefined) throw unexpected('does not say until when the operator is signed in');
  return { ...body, expires_at };
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

/** Format of an operator's session token: 256 random bits. Source: docs/operate/control.md "Operators". */
const SESSION_TOKEN = /^pgs_[A-Za-z0-9_-]{43}$/;

export function isSessionToken(text: string): boolean {
  return SESSION_TOKEN.test(text);
}

type SignInAnswer =
  /** Single-use; exchanged together with the PKCE verifier. */
  { readonly kind: 'code'; readonly code: string } | { readonly kind: 'denied' };

interface SignInRedirectOptions {
  /** 0: any free port. */
  readonly port: number;
  /** Must be in the redirect. Visible ASCII. */
  readonly state: string;
  /** Called once, at the first rejected request. */
  readonly onStrayAnswer: () => void;
}

const HOST = '127.0.0.1';
const PATH = '/signed-in';
/** Codes of Control (`src/control/contract/operators-contract.ts`), with a higher limit. */
const CODE = /^[A-Za-z0-9._~-]{1,128}$/;

/**
 * Loopback HTTP server for the redirect of one sign-in. Other programs and web pages do not know the `state`: their requests
 * are rejected and do not end the sign-in.
 * Source: RFC 8252 sections 7.3 and 8.3, RFC 9700 section 4.7 (state); docs/operate/control.md "Signing in for a command line".
 */
export class SignInRedirect {
  readonly #options: SignInRedirectOptions;
  readonly #server: Server;
  readonly #authority: string;
  readonly #answer: Promise<SignInAnswer>;
  #settle: (answer: SignInAnswer) => void = () => {};
  #isAnswered = false;
  #hasReportedStray = false;

  private constructor(server: Server, options: SignInRedirectOptions) {
    this.#server = server;
    this.#options = options;
    this.#authority = `${HOST}:${portOf(server)}`;
    this.#answer = new Promise((resolve) => {
      this.#settle = resolve;
    });
    server.on('request', (request, response) => this.#respond(request, response));
  }

  /** @throws OperatorError `listen_failed` */
  static async listen(options: SignInRedirectOptions): Promise<SignInRedirect> {
    const server = createServer();
    server.maxHeadersCount = KEPT_HEADER_LINES;
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error) => reject(listenFailed(error, options.port)));
      server.listen(options.port, HOST, resolve);
    });
    return new SignInRedirect(server, options);
  }

  /** Value of `cli_redirect`. */
  get url(): string {
    return `http://${this.#authority}${PATH}`;
  }

  /**
   * Waits for the first redirect with the right state, until the browser has its page.
   * @throws OperatorError `sign_in_timed_out`, `sign_in_stopped`
   */
  async answer({ timeoutMs, stop }: { readonly timeoutMs: number; readonly stop: AbortSignal }) {
    let giveUp: (error: OperatorError) => void = () => {};
    const ended = new Promise<never>((_resolve, reject) => {
      giveUp = reject;
    });
    const onStop = () => giveUp(new OperatorError('timed_out', 'sign_in_stopped', 'stopped: not signed in'));
    const timer = setTimeout(() => giveUp(timedOut()), timeoutMs);
    stop.addEventListener('abort', onStop, { once: true });
    if (stop.aborted) onStop();
    try {
      return await Promise.race([this.#answer, ended]);
    } finally {
      clearTimeout(timer);
      stop.removeEventListener('abort', onStop);
    }
  }

  /** Closes all connections, because browsers keep idle ones open. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  #respond(request: IncomingMessage, response: ServerResponse): void {
    const answer = this.#judge(request);
    if (typeof answer === 'string') {
      sendPage(response, REFUSALS[answer]);
      return;
    }
    this.#isAnswered = true;
    // Only after the browser has its page, because this process may end next.
    response.once('close', () => this.#settle(answer));
    sendPage(response, answer.kind === 'code' ? ALLOWED : DENIED);
  }

  #judge({ headers, method, rawHeaders, url = '' }: IncomingMessage): SignInAnswer | Refusal {
    if (hasTooManyLines(rawHeaders)) return 'too_many_headers';
    const [path, query = ''] = url.split(/\?(.*)/s);
    // Another host name that resolves to loopback is a DNS rebinding attack.
    if (headers.host !== this.#authority || path !== PATH) return 'not_here';
    if (method !== 'GET') return 'wrong_method';
    if (this.#isAnswered) return 'answered';
    const answer = readAnswer(new URLSearchParams(query), this.#options.state);
    if (answer !== undefined) return answer;
    if (!this.#hasReportedStray) this.#options.onStrayAnswer();
    this.#hasReportedStray = true;
    return 'stray';
  }
}

/** Undefined for a request that is not the redirect of this sign-in. */
function readAnswer(query: URLSearchParams, expectedState: string): SignInAnswer | undefined {
  const [state, ...moreStates] = query.getAll('state');
  if (state === undefined || moreStates.length > 0 || !isSame(state, expectedState)) return undefined;
  const [code, ...moreCodes] = query.getAll('code');
  if (query.has('error')) return code === undefined ? { kind: 'denied' } : undefined;
  if (code === undefined || moreCodes.length > 0 || !CODE.test(code)) return undefined;
  return { kind: 'code', code };
}

/** Compares in constant time. */
function isSame(one: string, other: string): boolean {
  return timingSafeEqual(hash('sha256', one, 'buffer'), hash('sha256', other, 'buffer'));
}

interface StaticPage {
  readonly status: number;
  readonly title: string;
  readonly text: string;
}

const ALLOWED: StaticPage = {
  status: 200,
  title: 'Back to the terminal',
  text: 'The command line goes on there. This page can be closed.',
};
const DENIED: StaticPage = {
  status: 200,
  title: 'Not signed in',
  text: 'The command line was denied. This page can be closed.',
};

type Refusal = 'too_many_headers' | 'not_here' | 'wrong_method' | 'answered' | 'stray';
const REFUSALS: { readonly [R in Refusal]: StaticPage } = {
  too_many_headers: { status: 431, title: 'Nothing here', text: 'The request has too many headers.' },
  not_here: { status: 404, title: 'Nothing here', text: 'This port waits for a sign-in.' },
  wrong_method: { status: 405, title: 'Nothing here', text: 'This port waits for a sign-in.' },
  answered: { status: 410, title: 'Over', text: 'This sign-in has had its answer.' },
  stray: {
    status: 400,
    title: 'Not this sign-in',
    text: 'This is no answer to the sign-in that is waited for.',
  },
};

/** The page contains nothing of the request and no script, and sends no Referer with its URL, which contained the code. */
function sendPage(response: ServerResponse, { status, title, text }: StaticPage): void {
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    connection: 'close',
    ...(status === 405 ? { allow: 'GET' } : {}),
  });
  response.end(
    `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><h1>${title}</h1><p>${text}</p></html>\n`,
  );
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('listens on no port');
  return address.port;
}

function listenFailed(error: Error, port: number): OperatorError {
  const code = 'code' in error ? String(error.code) : 'unknown';
  const where = port === 0 ? 'any port' : `port ${port}`;
  return new OperatorError('usage', 'listen_failed', `cannot listen on ${where} of ${HOST} (${code})`);
}

function timedOut(): OperatorError {
  return new OperatorError('timed_out', 'sign_in_timed_out', 'no answer came from the browser in time');
}
