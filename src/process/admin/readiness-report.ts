/** Updates the health status that servers report from the verifier's readiness, and logs changes. */

import type { Logger } from '../telemetry/logger.ts';
import type { ReadinessCheck } from './admin-server.ts';

const INTERVAL_MS = 200;

export interface ReportOptions {
  readonly readiness: () => readonly ReadinessCheck[];
  readonly setServing: (serving: boolean) => void;
  readonly logger: Logger;
  /** Once aborted, health is NOT_SERVING regardless of the checks. */
  readonly leaving: AbortSignal;
}

/** Checks immediately and then at an interval. @returns a function that stops it */
export function reportReadiness({ leaving, logger, readiness, setServing }: ReportOptions): () => void {
  const log = new ReadinessLog(logger);
  const look = () => {
    const checks = readiness();
    setServing(!leaving.aborted && checks.every(({ problem }) => problem === undefined));
    for (const check of checks) log.note(check);
  };
  look();
  leaving.addEventListener('abort', look);
  const timer = setInterval(look, INTERVAL_MS);
  return () => {
    clearInterval(timer);
    leaving.removeEventListener('abort', look);
  };
}

/**
 * The last log line about each check. A shape is the text without its numbers, which may count down, as in "for another
 * 3 s".
 */
interface ReportedCondition {
  readonly kind: 'problem' | 'warning';
  readonly shape: string;
}

class ReadinessLog {
  readonly #logger: Logger;
  readonly #reported = new Map<string, ReportedCondition>();
  /**
   * Warnings that were seen once. They are logged when they are seen twice, because the first may fall between two
   * files of a publication.
   */
  readonly #seenOnce = new Map<string, string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  note({ name, problem, warning }: ReadinessCheck): void {
    const before = this.#reported.get(name);
    const shape = (problem ?? warning)?.replace(/\d+/g, '#');
    const isSeenAgain = problem === undefined && this.#seenOnce.get(name) === shape;
    this.#seenOnce.delete(name);
    if (shape === undefined) {
      if (before !== undefined) this.#logger.info({ check: name }, 'in order');
      this.#reported.delete(name);
      return;
    }
    const kind = problem === undefined ? 'warning' : 'problem';
    if (before?.kind === kind && before.shape === shape) return;
    if (kind === 'warning' && !isSeenAgain) {
      this.#seenOnce.set(name, shape);
      return;
    }
    this.#reported.set(name, { kind, shape });
    if (kind === 'problem') this.#logger.warn({ check: name }, `not ready: ${problem}`);
    else this.#logger.warn({ check: name }, `ready, with a warning: ${warning}`);
  }
}
