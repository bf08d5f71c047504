/**
 * A connection to a Redis server that is used only while the server is known to meet the requirements. Every new
 * connection is checked before the first command, and again at intervals.
 */
import type { Redis } from 'ioredis';
import { withinMs } from '../../process/program/time-limit.ts';
import type { RedisConnection } from './client.ts';
import { createRedisClient } from './client.ts';
import { addressLabel } from './endpoint.ts';
import { classifyFault, describeConnectionError, describeRefusal, describeSilence } from './faults.ts';
import type { RedisScript } from './script.ts';

/** Interval between checks of a server that was found unfit, each over a new connection. */
const UNFIT_RECHECK_MS = 1_000;

export type Examination =
  /**
   * `fenceMarginSeconds`: F of docs/design/protocol.md "Replay"; `neededReplicas`: number of replicas that must follow;
   * `warning`: one line about a possible problem that cannot be verified.
   */
  | {
      readonly kind: 'fit';
      readonly fenceMarginSeconds: number;
      readonly neededReplicas: number;
      readonly warning?: string | undefined;
    }
  /** One line that describes the server's problem. */
  | { readonly kind: 'unfit'; readonly problem: string };

export interface RedisLinkOptions {
  readonly connection: RedisConnection;
  /** Interval between checks of a server that is fit. */
  readonly recheckIntervalMs: number;
  /** Checks whether the server is fit. Sends commands over the link and rejects when they do. */
  readonly examine: (link: RedisLink) => Promise<Examination>;
  /**
   * Additional check of the link's user; may send commands. Resolves to one line that says what is wrong, or undefined.
   * Rejects when its commands do.
   */
  readonly prepare: (link: RedisLink) => Promise<string | undefined>;
}

export class RedisLink {
  readonly #options: RedisLinkOptions;
  /** `host:port`, for messages. */
  readonly label: string;
  readonly #redis: Redis;
  /** Incremented with each connection or requirement change, so that a check can detect that its result is outdated. */
  #generation = 0;
  #fenceMarginSeconds = 0;
  #neededReplicas = 0;
  #warning: string | undefined;
  #isFit = false;
  #isChecking = false;
  #isClosed = false;
  #problem: string;
  /** Why the current attempt to connect failed; cleared when a check succeeds. */
  #connectionProblem: string | undefined;
  #recheckTimer: NodeJS.Timeout | undefined;
  #whenFit = new Signal();
  #isCorked = false;

  /** Starts to connect at once and retries until `close`. */
  constructor(options: RedisLinkOptions) {
    this.#options = options;
    this.label = addressLabel(options.connection.address);
    this.#problem = `connecting to Redis at ${this.label}`;
    this.#redis = createRedisClient(options.connection);
    this.#redis.on('ready', () => this.#handleReady());
    this.#redis.on('close', () => this.#handleClose());
    this.#redis.on('error', (error: unknown) => {
      this.#connectionProblem = describeConnectionError(error, this.label);
      if (!this.#isFit) this.#problem = this.#connectionProblem;
    });
    // The failure also arrives as an `error` event.
    this.#redis.connect().catch(() => undefined);
  }

  /** Whether commands may be sent now. */
  get isServing(): boolean {
    return this.#isFit && this.#redis.status === 'ready';
  }

  /** One line that says why commands are not sent; undefined while they are. */
  get problem(): string | undefined {
    return this.isServing ? undefined : this.#problem;
  }

  /** F of docs/design/protocol.md, from the last check. */
  get fenceMarginSeconds(): number {
    return this.#fenceMarginSeconds;
  }

  /** Number of replicas that must follow the server, from the last check. */
  get neededReplicas(): number {
    return this.#neededReplicas;
  }

  /** One line about a possible problem of a server that is in use. */
  get warning(): string | undefined {
    return this.isServing ? this.#warning : undefined;
  }

  /** Whether the connection is established, to a server that is fit or not. */
  get isConnected(): boolean {
    return !this.#isClosed && this.#redis.status === 'ready';
  }

  /** Resolves when commands may be sent; never rejects, and may never resolve. */
  whenServing(): Promise<void> {
    return this.isServing ? Promise.resolve() : this.#whenFit.promise;
  }

  /**
   * Runs a cached script with `EVALSHA`, once; `keysAndArguments` begins with its keys. Rejections: see
   * `classifyFault`; `NOSCRIPT` when the server does not have it.
   */
  runScript(script: RedisScript, keysAndArguments: readonly (string | number)[]): Promise<unknown> {
    this.#corkUntilEndOfTurn();
    return this.#redis.evalsha(script.sha1, script.keyCount, ...keysAndArguments);
  }

  /** Runs the script with `EVAL`, which also caches it on the server. */
  runScriptInFull(script: RedisScript, keysAndArguments: readonly (string | number)[]): Promise<unknown> {
    return this.#redis.eval(script.source, script.keyCount, ...keysAndArguments);
  }

  /** Caches a script on the server, so that `runScript` need not send it. */
  async loadScript(script: RedisScript): Promise<void> {
    await this.#redis.script('LOAD', script.source);
  }

  /** Reads a field of a hash. */
  async readField(key: string, field: string): Promise<string | null> {
    return await this.#redis.hget(key, field);
  }

  /** Sends any other command. */
  call(command: string, ...words: readonly string[]): Promise<unknown> {
    return this.#redis.call(command, ...words);
  }

  /** Checks the server again now, after an unexpected failure. */
  suspect(): void {
    if (this.#isFit) this.#scheduleCheck(0);
  }

  /** The requirements or the use of the server have changed: sends no command before the next check. */
  requalify(): void {
    this.#generation += 1;
    if (this.#isFit) this.#setUnfit(`looking at Redis at ${this.label} again`);
    if (this.#redis.status === 'ready') this.#scheduleCheck(0);
  }

  /** The address now leads to another server: sends nothing more over this connection, and connects again. */
  reconnect(): void {
    if (this.#isClosed) return;
    this.#connectAgain(`Redis at ${this.label} was replaced: connecting again`);
  }

  /** Waits for pending commands while Redis still answers; always returns soon. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#isFit = false;
    this.#problem = 'the connection to Redis is closed';
    clearTimeout(this.#recheckTimer);
    const hasEnded = new Promise<void>((resolve) => this.#redis.once('end', resolve));
    const isConnected = this.#redis.status === 'ready';
    const { commandTimeoutMs } = this.#options.connection;
    if (isConnected)
      await withinMs(
        commandTimeoutMs,
        this.#redis.quit().catch(() => undefined),
        undefined,
      );
    if (this.#redis.status !== 'end') this.#redis.disconnect();
    if (isConnected) await withinMs(commandTimeoutMs, hasEnded, undefined);
  }

  #handleReady(): void {
    this.#generation += 1;
    this.#scheduleCheck(0);
  }

  #handleClose(): void {
    this.#generation += 1;
    this.#setUnfit(this.#connectionProblem ?? `the connection to Redis at ${this.label} was lost`);
  }

  #setUnfit(problem: string): void {
    if (this.#isClosed) return;
    if (this.#isFit) this.#whenFit = new Signal();
    this.#isFit = false;
    this.#problem = problem;
  }

  #scheduleCheck(delayMs: number): void {
    if (this.#isClosed || this.#isChecking) return;
    clearTimeout(this.#recheckTimer);
    if (delayMs === 0) {
      this.#recheckTimer = undefined;
      void this.#check();
    } else {
      this.#recheckTimer = setTimeout(() => this.#scheduleCheck(0), delayMs).unref();
    }
  }

  async #check(): Promise<void> {
    const generation = this.#generation;
    this.#isChecking = true;
    const verdict = await this.#examine();
    this.#isChecking = false;
    if (this.#isClosed) return;
    if (generation !== this.#generation) {
      // A new connection may have become ready while this check was running.
      if (this.#redis.status === 'ready') this.#scheduleCheck(0);
      return;
    }
    if (verdict.kind === 'fit') {
      this.#connectionProblem = undefined;
      this.#isFit = true;
      this.#whenFit.send();
    } else {
      this.#setUnfit(verdict.problem);
    }
    if (verdict.kind === 'fit') this.#scheduleCheck(this.#options.recheckIntervalMs);
    else if (verdict.kind === 'silent') this.#connectAgain(verdict.problem);
    else this.#connectAgainLater(verdict.problem);
  }

  /** The server may have been demoted, and its name may lead to another one since: only a new connection shows that. */
  #connectAgainLater(problem: string): void {
    clearTimeout(this.#recheckTimer);
    const generation = this.#generation;
    this.#recheckTimer = setTimeout(() => {
      if (generation === this.#generation) this.#connectAgain(problem);
    }, UNFIT_RECHECK_MS).unref();
  }

  /** `problem` is reported until a check succeeds, or until connecting fails. */
  #connectAgain(problem: string): void {
    this.#generation += 1;
    this.#connectionProblem = problem;
    this.#setUnfit(problem);
    this.#redis.disconnect(true);
  }

  /** Asks twice before it reports a server as silent: this process itself may have been stalled. */
  async #examine(): Promise<Verdict> {
    const first = await this.#examineOnce();
    return first.kind === 'silent' ? await this.#examineOnce() : first;
  }

  async #examineOnce(): Promise<Verdict> {
    try {
      const found = await this.#options.examine(this);
      if (found.kind === 'unfit') return found;
      this.#fenceMarginSeconds = found.fenceMarginSeconds;
      this.#neededReplicas = found.neededReplicas;
      this.#warning = found.warning;
      const problem = await this.#options.prepare(this);
      return problem === undefined ? { kind: 'fit' } : { kind: 'unfit', problem };
    } catch (error) {
      const fault = classifyFault(error);
      if (fault.kind === 'refused')
        return { kind: 'unfit', problem: describeRefusal(fault.code, this.label) };
      return { kind: 'silent', problem: describeSilence(this.label) };
    }
  }

  /**
   * Sends the commands of one turn of the event loop in one write, because the system call dominates a command's cost.
   */
  #corkUntilEndOfTurn(): void {
    if (this.#isCorked) return;
    this.#isCorked = true;
    const { stream } = this.#redis;
    stream.cork();
    setImmediate(() => {
      this.#isCorked = false;
      stream.uncork();
    });
  }
}

type Verdict =
  | { readonly kind: 'fit' }
  /** The server answers, but must not be used. */
  | { readonly kind: 'unfit'; readonly problem: string }
  | { readonly kind: 'silent'; readonly problem: string };

/** A promise that is resolved from outside, once. */
class Signal {
  readonly promise: Promise<void>;
  #resolve: () => void = () => undefined;

  constructor() {
    this.promise = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  send(): void {
    this.#resolve();
  }
}
