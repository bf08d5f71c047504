/** Keeps health checks up to date with the sidecar's readiness, and the log with what changes in it. */
import type { ReadinessCheck } from '../../enforcement/admin/server.ts';
import type { ExtAuthzGrpcDoor } from '../../enforcement/ext-authz-grpc/server.ts';
import type { Logger } from '../../telemetry/logger.ts';

const INTERVAL_MS = 200;

/** Looks now and then regularly. @returns ends it */
export function reportReadiness(
  readiness: () => readonly ReadinessCheck[],
  door: ExtAuthzGrpcDoor,
  logger: Logger,
): () => void {
  const problems = new Map<string, string>();
  const look = () => {
    const checks = readiness();
    door.setServing(checks.every(({ problem }) => problem === undefined));
    for (const { name, problem } of checks) logChange(problems, name, problem, logger);
  };
  look();
  const timer = setInterval(look, INTERVAL_MS);
  return () => clearInterval(timer);
}

/** Texts that only count on, as in "for another 3 s", are no change. */
function logChange(
  problems: Map<string, string>,
  name: string,
  problem: string | undefined,
  logger: Logger,
): void {
  const before = problems.get(name);
  if (problem === undefined) {
    if (before === undefined) return;
    problems.delete(name);
    logger.info({ check: name }, 'in order');
    return;
  }
  const shape = problem.replace(/\d+/g, '#');
  if (before === shape) return;
  problems.set(name, shape);
  logger.warn({ check: name }, `not ready: ${problem}`);
}
