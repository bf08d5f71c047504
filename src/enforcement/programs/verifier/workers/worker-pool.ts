/**
 * Starts a primary's worker processes, watches them, and restarts those that die. Connections are distributed round-robin,
 * so that each worker has about the same number.
 */
import cluster, { type Worker } from 'node:cluster';
import type { Writable } from 'node:stream';
import type { ReadinessCheck } from '../../../../process/admin/admin-server.ts';
import { closeLostHandoffs } from '../../../../process/node-internals/cluster-handoffs.ts';
import { Backoff, NO_JITTER } from '../../../../process/program/backoff.ts';
import { CliError } from '../../../../process/program/errors.ts';
import type { Logger } from '../../../../process/telemetry/logger.ts';
import type { WorkerPositions } from '../../../../verifier/loading/refresh/common-position.ts';
import type { WorkerReport } from '../../../../verifier/summaries/worker-counts.ts';
import { type ProcessState, relayLines } from './merged-reports.ts';
import {
  type PrimaryMessage,
  parseWorkerMessage,
  WORKER_NUMBER,
  type WorkerMessage,
} from './worker-messages.ts';

export interface WorkerPoolOptions {
  readonly size: number;
  readonly logger: Logger;
  /** Destination of workers' standard output, line by line; undefined when they inherit the primary's. */
  readonly stdout: Writable | undefined;
  readonly onRestart: () => void;
  /** Receives what a worker counted of its decisions. */
  readonly onReport: ((report: WorkerReport) => void) | undefined;
  /** Follows which bundle each worker holds, from its fork to its end. */
  readonly positions: WorkerPositions | undefined;
}

/** A numbered slot of the pool: a restarted worker gets the slot of the one that died. */
interface Seat {
  readonly number: number;
  worker: Worker | undefined;
  checks: readonly ReadinessCheck[] | undefined;
  heardMs: number;
  /** Backoff of the worker's restarts. */
  readonly backoff: Backoff;
  restart: NodeJS.Timeout | undefined;
}

const BACKOFF = { firstMs: 100, maxMs: 10_000, random: NO_JITTER };
/** A worker that ran this long did not fail at startup, so its backoff is reset. */
const SOUND_AFTER_MS = 30_000;
/** A worker sends its heartbeat five times a second. */
const SILENT_AFTER_MS = 3_000;
const KILL_SILENT_AFTER_MS = 15_000;
const WATCH_INTERVAL_MS = 500;
const SCRAPE_TIMEOUT_MS = 2_000;
const KILL_AFTER_DRAIN_MS = 5_000;

export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #seats: readonly Seat[];
  readonly #scrapes = new Map<number, (text: string) => void>();
  /** Called with the address of the workers once all of them listen. */
  #onStarted: (address: string) => void = () => undefined;
  #onFailed: (error: CliError) => void = () => undefined;
  #lastScrape = 0;
  #hasStarted = false;
  /** The last shutdown message to the workers; a worker that starts later gets it too. */
  #farewell: 'leave' | 'close' | undefined;
  #watch: NodeJS.Timeout | undefined;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#seats = Array.from({ length: options.size }, (_, index) => ({
      number: index + 1,
      worker: undefined,
      checks: undefined,
      heardMs: performance.now(),
      backoff: new Backoff(BACKOFF),
      restart: undefined,
    }));
  }

  /**
   * Resolves when all workers listen.
   * @returns the address of the workers
   * @throws CliError the first error that a worker reports
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
    const { positions, stdout } = this.#options;
    const startedMs = performance.now();
    // Before it runs, so that it does not load something of which the primary knows nothing.
    positions?.started(seat.number);
    let worker: Worker;
    try {
      worker = cluster.fork({ [WORKER_NUMBER]: String(seat.number) });
    } catch (error) {
      this.#ended(seat, startedMs, errnoOf(error), null);
      return;
    }
    closeLostHandoffs(worker);
    seat.worker = worker;
    seat.checks = undefined;
    seat.heardMs = startedMs;
    if (stdout !== undefined && worker.process.stdout) relayLines(worker.process.stdout, stdout);
    worker.on('message', (value: unknown) => {
      const message = parseWorkerMessage(value);
      if (message !== undefined) this.#hear(seat, worker, message);
    });
    // The channel of a killed worker fails, and its `exit` event follows. A process that could not be started has none.
    worker.on('error', (error) => {
      if (worker.process.pid === undefined) worker.emit('exit', errnoOf(error), null);
    });
    worker.once('exit', (code: number | null, signal: string | null) =>
      this.#ended(seat, startedMs, code, signal),
    );
  }

  /** @param code of the process; negative: why it could not be started, as the system's error number */
  #ended(seat: Seat, startedMs: number, code: number | null, signal: string | null): void {
    const { logger, positions } = this.#options;
    seat.worker = undefined;
    seat.checks = undefined;
    positions?.ended(seat.number);
    const isClosing = this.#farewell === 'close';
    // An orderly exit after `close` is expected.
    if (isClosing && (code === 0 || !this.#hasStarted)) return;
    if (performance.now() - startedMs >= SOUND_AFTER_MS) seat.backoff.reset();
    const restart_ms = isClosing ? undefined : seat.backoff.failed();
    logger.error({ worker: seat.number, code, signal, restart_ms }, 'a worker has ended');
    if (restart_ms !== undefined) this.#restart(seat, restart_ms);
  }

  #restart(seat: Seat, delayMs: number): void {
    this.#options.onRestart();
    seat.restart = setTimeout(() => this.#fork(seat), delayMs);
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
      case 'counted':
      case 'used':
      case 'unknown':
        this.#options.onReport?.(message);
        return;
      case 'loaded':
        // A message of a worker that has ended may come after its end.
        if (seat.worker === worker) this.#options.positions?.loaded(seat.number, message.position);
        return;
      case 'failed':
        // After all workers have started, a failed worker is restarted like one that died.
        if (this.#hasStarted) {
          const { code, message: text } = message;
          this.#options.logger.error({ worker: seat.number, code }, `a worker cannot start: ${text}`);
        }
        this.#onFailed(new CliError('usage', message.code, message.message));
    }
  }

  /** A worker that hangs still accepts connections but answers none. */
  #killSilent(): void {
    for (const { heardMs, number, worker } of this.#seats) {
      if (worker === undefined || performance.now() - heardMs < KILL_SILENT_AFTER_MS) continue;
      this.#options.logger.error({ worker: number }, 'a worker says nothing any more: killed');
      worker.process.kill('SIGKILL');
    }
  }

  /** The last readiness checks of each worker. */
  states(): readonly ProcessState[] {
    return this.#seats.map(({ checks, number }) => ({ process: `worker ${number}`, checks }));
  }

  /** Whether all workers run. */
  check(): ReadinessCheck {
    const missing = this.#seats.filter((seat) => !isRunning(seat)).map(({ number }) => number);
    const count = `${missing.length} of ${this.#seats.length} workers do not run (${missing.join(', ')})`;
    const text = `${count}: they are started again; why they ended is in the log`;
    return { name: 'workers', problem: missing.length === 0 ? undefined : text };
  }

  runningCount(): number {
    return this.#seats.filter(isRunning).length;
  }

  /** The metrics of each worker, as text; empty for a worker that does not answer. */
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

  /** Whether at least one worker's ext_authz server is open. */
  isAnyOpen(): boolean {
    return this.#seats.some(({ checks }) => checks !== undefined);
  }

  /** Sets the health of all workers to NOT_SERVING. They still answer Checks, and are watched and restarted as before. */
  leave(): void {
    this.#tellAll('leave');
  }

  #tellAll(farewell: 'leave' | 'close'): void {
    this.#farewell = farewell;
    for (const { worker } of this.#seats) if (worker) tell(worker, { kind: farewell });
  }

  /** Closes all workers; those that still run after the timeout get SIGKILL. */
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

function errnoOf(error: unknown): number {
  const errno = error instanceof Error && 'errno' in error ? error.errno : undefined;
  return typeof errno === 'number' ? errno : -1;
}

function isRunning({ checks, heardMs }: Seat): boolean {
  return checks !== undefined && performance.now() - heardMs <= SILENT_AFTER_MS;
}
