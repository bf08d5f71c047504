/** Counts API responses and enrollment outcomes. */
import type { ControlApp } from '../../control/api/app.ts';
import { isJsonObject } from '../../protocol/strict-json.ts';
import type { ControlMetrics } from '../../telemetry/control-metrics.ts';

const SUBMISSION = 'POST /v1/enrollments';
const CHALLENGE = 'POST /v1/enrollments/challenges';

/** Call before the routes are registered. */
export function countRequests(app: ControlApp, metrics: ControlMetrics): void {
  app.addHook('onResponse', async (request, reply) => {
    const { url = 'none', config } = request.routeOptions;
    // The duration of a target's long-poll says nothing about performance.
    const seconds = config.access?.kind === 'target' ? undefined : reply.elapsedTime / 1000;
    metrics.requestAnswered(url, request.method, reply.statusCode, seconds);
  });
  app.addHook('preSerialization', async (request, reply, answer: unknown) => {
    const operation = `${request.method} ${request.routeOptions.url}`;
    const isRefusedChallenge = operation === CHALLENGE && reply.statusCode >= 400;
    if (operation === SUBMISSION || isRefusedChallenge) {
      metrics.enrollmentSubmitted(outcomeOf(reply.statusCode, answer));
    }
    return answer;
  });
}

/** The state of a new enrollment or the code of a problem: both are closed sets. */
function outcomeOf(status: number, answer: unknown): string {
  if (!isJsonObject(answer)) return 'unknown';
  if (status === 200) return 'repeated';
  const outcome = status === 201 ? answer.state : answer.code;
  return typeof outcome === 'string' ? outcome : 'unknown';
}
