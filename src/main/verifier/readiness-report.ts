/** Keeps health checks up to date with the sidecar's readiness, and the log with what changes in it. */
import type { ReadinessCheck } from '../../enforcement/admin/server.ts';
import type { ExtAuthzServer } from '../../enforcement/ext-authz-grpc/server.ts';
import type { Logger } from '../../telemetry/logger.ts';

const INTERVAL_MS = 200;

export interface ReportOptions {
  readonly readiness: () => readonly ReadinessCheck[];
  readonly extAuthz: Pick<ExtAuthzServer, 'setServing'>;
  readonly logger: Logger;
  /** Whatever else is in order, health says no from then on. */
  readonly leaving: AbortSignal;
}

/** Looks now and then regularly. @returns ends it */
export function reportReadiness({ extAuthz, leaving, logger, readiness }: ReportOptions): () => void {
  const log = new ReadinessLog(logger);
  const look = () => {
    const checks = readiness();
    extAuthz.setServing(!leaving.aborted && checks.every(({ problem }) => problem === undefined));
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

/** What was last said of a check. Shapes are texts whose numbers only count on, as in "for another 3 s". */
interface Told {
  readonly kind: 'problem' | 'warning';
  readonly shape: string;
}

class ReadinessLog {
  readonly #logger: Logger;
  readonly #told = new Map<string, Told>();
  /** Warnings that one look has found: what is over by the next, as between two files of a publication, is not told. */
  readonly #seenOnce = new Map<string, string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  note({ name, problem, warning }: ReadinessCheck): void {
    const before = this.#told.get(name);
    const shape = (problem ?? warning)?.replace(/\d+/g, '#');
    const isSeenAgain = problem === undefined && this.#seenOnce.get(name) === shape;
    this.#seenOnce.delete(name);
    if (shape === undefined) {
      if (before !== undefined) this.#logger.info({ check: name }, 'in order');
      this.#told.delete(name);
      return;
    }
    const kind = problem === undefined ? 'warning' : 'problem';
    if (before?.kind === kind && before.shape === shape) return;
    if (kind === 'warning' && !isSeenAgain) {
      this.#seenOnce.set(name, shape);
      return;
    }
    this.#told.set(name, { kind, shape });
    if (kind === 'problem') this.#logger.warn({ check: name }, `not ready: ${problem}`);
    else this.#logger.warn({ check: name }, `ready, with a warning: ${warning}`);
  }
}
