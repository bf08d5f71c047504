/**
 * Compares declarations one after the other in a separate thread. Parsing 16 MiB and comparing 100,000 clients take
 * seconds, during which the main thread must answer verifiers, revoke keys and state freshness. The thread's memory is
 * bounded. It starts with the first declaration and ends after an idle time.
 */
import { Worker } from 'node:worker_threads';
import type { Fault } from '../../process/http-service/members-contract.ts';
import { RequestShapeError } from '../../process/http-service/request-shape.ts';
import { ApiProblem, type ProblemCode } from '../domain/api-problem.ts';
import { StoreUnavailableError } from '../store/port.ts';
import type { Comparer, Comparison, ComparisonRequest } from './comparison.ts';

/** A secret: the URL holds a password. */
export interface DatabasePlace {
  readonly dataDirectory: string;
  /** Undefined for the embedded database. */
  readonly databaseUrl: string | undefined;
}

/** Input of the thread. */
export type ComparisonTask = ComparisonRequest;

/** Result from the thread. */
export type ComparisonOutcome =
  | { readonly kind: 'done'; readonly comparison: Comparison }
  | {
      readonly kind: 'problem';
      readonly code: ProblemCode;
      readonly detail: string | undefined;
      readonly faults: readonly Fault[];
    }
  | { readonly kind: 'malformed'; readonly faults: readonly Fault[] }
  | { readonly kind: 'unavailable'; readonly message: string }
  | { readonly kind: 'fault'; readonly error: unknown };

/** Enough for 16 MiB of declaration and 100,000 clients; three quarters of the chart's limit remain for the rest. */
const MAX_HEAP_MIB = 448;
const IDLE_MS = 10_000;

export class ComparisonThread implements Comparer {
  readonly #place: DatabasePlace;
  #worker: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;
  /** Number of comparisons that have not ended. */
  #pending = 0;
  #turn: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(place: DatabasePlace) {
    this.#place = place;
  }

  async compare(request: ComparisonRequest, signal?: AbortSignal): Promise<Comparison> {
    this.#pending += 1;
    clearTimeout(this.#idle);
    const outcome = this.#turn.then(() => {
      signal?.throwIfAborted();
      return this.#ask(request);
    });
    this.#turn = outcome.catch(() => undefined);
    try {
      return comparisonOf(await outcome);
    } finally {
      this.#pending -= 1;
      if (this.#pending === 0) this.#idle = setTimeout(() => void this.#stop(), IDLE_MS).unref();
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#idle);
    await this.#stop();
  }

  async #stop(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }

  #ask(task: ComparisonTask): Promise<ComparisonOutcome> {
    if (this.#isClosed) throw new StoreUnavailableError('Control is stopping');
    this.#worker ??= this.#start();
    const worker = this.#worker;
    return new Promise((resolve, reject) => {
      const fail = (error: Error) => {
        worker.removeAllListeners();
        worker.on('error', () => {});
        if (this.#worker === worker) this.#worker = undefined;
        reject(error);
      };
      worker.removeAllListeners();
      worker.once('message', resolve);
      worker.once('error', (error: Error & { readonly code?: string }) =>
        fail(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? tooLarge() : error),
      );
      worker.once('exit', () => fail(new StoreUnavailableError('the comparison was ended')));
      worker.postMessage(task);
    });
  }

  #start(): Worker {
    return new Worker(new URL('./comparison-worker.js', import.meta.url), {
      workerData: this.#place,
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MIB },
    });
  }
}

function tooLarge(): ApiProblem {
  return new ApiProblem('request_too_large', 'the comparison needs more memory than it may use');
}

function comparisonOf(outcome: ComparisonOutcome): Comparison {
  switch (outcome.kind) {
    case 'done':
      return outcome.comparison;
    case 'problem':
      throw new ApiProblem(outcome.code, outcome.detail, { faults: outcome.faults });
    case 'malformed':
      throw new RequestShapeError(outcome.faults);
    case 'unavailable':
      throw new StoreUnavailableError(outcome.message);
    case 'fault':
      throw outcome.error;
  }
}
