/**
 * The worker processes of a primary: started, listened to, started again when they die. Connections are given to them in
 * turn, so each has about as many as any other.
 */
import cluster, { type Worker } from 'node:cluster';
import type { Writable } from 'node:stream';
import type { ReadinessCheck } from '../../../enforcement/admin/server.ts';
import { CliError } from '../../../program/errors.ts';
import type { Logger } from '../../../telemetry/logger.ts';
import { relayLines } from './line-relay.ts';
import {
  type PrimaryMessage,
  parseWorkerMessage,
  WORKER_NUMBER,
  type WorkerMessage,
} from './worker-messages.ts';
import type { ProcessState } from './worker-readiness.ts';

export interface WorkerPoolOptions {
  readonly size: number;
  readonly logger: Logger;
  /** Where workers' standard output goes line by line; undefined: they share that of the primary. */
  readonly stdout: Writable | undefined;
  readonly onRestart: () => void;
}

/** A place in the pool, whoever holds it at the moment. */
interface Seat {
  readonly number: number;
  worker: Worker | undefined;
  checks: readonly ReadinessCheck[] | undefined;
  heardMs: number;
  /** Wait before the next start. */
  backoffMs: number;
  restart: NodeJS.Timeout | undefined;
}

const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 10_000;
/** A worker that lived for so long did not die of its start. */
const SOUND_AFTER_MS = 30_000;
/** A worker says how it is five times a second. */
const SILENT_AFTER_MS = 3_000;
const KILL_SILENT_AFTER_MS = 15_000;
const WATCH_INTERVAL_MS = 500;
const SCRAPE_TIMEOUT_MS = 2_000;
const KILL_AFTER_DRAIN_MS = 5_000;

export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #seats: readonly Seat[];
  readonly #scrapes = new Map<number, (text: string) => void>();
  /** Where workers listen, once all of them do. */
  #onStarted: (address: string) => void = () => undefined;
  #onFailed: (error: CliError) => void = () => undefined;
  #lastScrape = 0;
  #hasStarted = false;
  /** What workers were last told, and one that begins is told. */
  #farewell: 'leave' | 'close' | undefined;
  #watch: NodeJS.Timeout | undefined;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#seats = Array.from({ length: options.size }, (_, index) => ({
      number: index + 1,
      worker: undefined,
      checks: undefined,
      heardMs: performance.now(),
      backoffMs: FIRST_BACKOFF_MS,
      restart: undefined,
    }));
  }

  /**
   * @returns where the workers listen, when all of them do
   * @throws CliError that the first of them ended with
   */
  async start(): Promise<string> {
    cluster.schedulingPolicy = cluster.SCHED_RR;
    cluster.setupPrimary({ stdio: ['ignore', this.#options.stdout ? 'pipe' : 'inherit', 'inherit', 'ipc'] });
    this.#watch = setInterval(() => this.#killSilent(), WATCH_INTERVAL_MS);
    return new Promise((resolve, reject) => {
      this.#onStarted = resolve;
      this.#onFailed = reject;
      for (const seat of this.#seats) this.#fork(seat);
    });
  }

  #fork(seat: Seat): void {
    const { logger, stdout } = this.#options;
    const worker = cluster.fork({ [WORKER_NUMBER]: String(seat.number) });
    const startedMs = performance.now();
    seat.worker = worker;
    seat.checks = undefined;
    seat.heardMs = startedMs;
    if (stdout !== undefined && worker.process.stdout) relayLines(worker.process.stdout, stdout);
    worker.on('message', (value: unknown) => {
      const message = parseWorkerMessage(value);
      if (message !== undefined) this.#hear(seat, worker, message);
    });
    // The channel of one that was killed; its end is told by `exit`.
    worker.on('error', () => undefined);
    worker.once('exit', (code, signal) => {
      seat.worker = undefined;
      seat.checks = undefined;
      const isClosing = this.#farewell === 'close';
      // To end in order is what it was told.
      if (isClosing && (code === 0 || !this.#hasStarted)) return;
      if (performance.now() - startedMs >= SOUND_AFTER_MS) seat.backoffMs = FIRST_BACKOFF_MS;
      const restart_ms = isClosing ? undefined : seat.backoffMs;
      logger.error({ worker: seat.number, code, signal, restart_ms }, 'a worker has ended');
      if (!isClosing) this.#restart(seat);
    });
  }

  #restart(seat: Seat): void {
    this.#options.onRestart();
    seat.restart = setTimeout(() => this.#fork(seat), seat.backoffMs);
    seat.backoffMs = Math.min(seat.backoffMs * 2, MAX_BACKOFF_MS);
  }

  #hear(seat: Seat, worker: Worker, message: WorkerMessage): void {
    seat.heardMs = performance.now();
    switch (message.kind) {
      case 'hearing':
        if (this.#farewell !== undefined) tell(worker, { kind: this.#farewell });
        return;
      case 'state':
        seat.checks = message.checks;
        if (this.#seats.every(({ checks }) => checks !== undefined)) {
          this.#hasStarted = true;
          this.#onStarted(message.address);
        }
        return;
      case 'metrics':
        this.#scrapes.get(message.id)?.(message.text);
        return;
      case 'failed':
        // Once all have started, the worker is started again like one that died.
        if (this.#hasStarted) {
          const { code, message: text } = message;
          this.#options.logger.error({ worker: seat.number, code }, `a worker cannot start: ${text}`);
        }
        this.#onFailed(new CliError('usage', message.code, message.message));
    }
  }

  /** One that hangs takes connections and answers none. */
  #killSilent(): void {
    for (const { heardMs, number, worker } of this.#seats) {
      if (worker === undefined || performance.now() - heardMs < KILL_SILENT_AFTER_MS) continue;
      this.#options.logger.error({ worker: number }, 'a worker says nothing any more: killed');
      worker.process.kill('SIGKILL');
    }
  }

  /** What each of them says. */
  states(): readonly ProcessState[] {
    return this.#seats.map(({ checks, number }) => ({ process: `worker ${number}`, checks }));
  }

  /** Whether all of them run. */
  check(): ReadinessCheck {
    const missing = this.#seats.filter((seat) => !isRunning(seat)).map(({ number }) => number);
    const count = `${missing.length} of ${this.#seats.length} workers do not run (${missing.join(', ')})`;
    const text = `${count}: they are started again; why they ended is in the log`;
    return { name: 'workers', problem: missing.length === 0 ? undefined : text };
  }

  runningCount(): number {
    return this.#seats.filter(isRunning).length;
  }

  /** The metrics of those that answer, as texts. */
  async metrics(): Promise<readonly string[]> {
    const asked = this.#seats.map(({ worker }) => (worker === undefined ? '' : this.#scrape(worker)));
    return Promise.all(asked);
  }

  #scrape(worker: Worker): Promise<string> {
    this.#lastScrape += 1;
    const id = this.#lastScrape;
    return new Promise<string>((resolve) => {
      const timer = setTimeout(() => resolve(''), SCRAPE_TIMEOUT_MS);
      this.#scrapes.set(id, (text) => {
        clearTimeout(timer);
        resolve(text);
      });
      tell(worker, { kind: 'scrape', id });
    }).finally(() => this.#scrapes.delete(id));
  }

  signal(signal: NodeJS.Signals): void {
    for (const { worker } of this.#seats) worker?.process.kill(signal);
  }

  /** Whether the ext_authz server of one of them is open. */
  isAnyOpen(): boolean {
    return this.#seats.some(({ checks }) => checks !== undefined);
  }

  /** Health of all says no. They are watched and started again as before: until they close they answer. */
  leave(): void {
    this.#tellAll('leave');
  }

  #tellAll(farewell: 'leave' | 'close'): void {
    this.#farewell = farewell;
    for (const { worker } of this.#seats) if (worker) tell(worker, { kind: farewell });
  }

  /** All close, and those that are still there when their time is up get SIGKILL. */
  async stop(drainTimeoutMs: number): Promise<void> {
    clearInterval(this.#watch);
    for (const { restart } of this.#seats) clearTimeout(restart);
    const workers = this.#seats.flatMap(({ worker }) => (worker === undefined ? [] : [worker]));
    const ended = workers.map(
      (worker) => new Promise<void>((resolve) => worker.once('exit', () => resolve())),
    );
    this.#tellAll('close');
    const timer = setTimeout(() => this.signal('SIGKILL'), drainTimeoutMs + KILL_AFTER_DRAIN_MS);
    await Promise.all(ended);
    clearTimeout(timer);
  }
}

function tell(worker: Worker, message: PrimaryMessage): void {
  if (worker.isConnected()) worker.send(message, () => undefined);
}

function isRunning({ checks, heardMs }: Seat): boolean {
  return checks !== undefined && performance.now() - heardMs <= SILENT_AFTER_MS;
}
