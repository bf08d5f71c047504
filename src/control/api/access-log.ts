/**
 * Writes one access log line per response: caller, route, status, duration. It logs the route's pattern instead of the
 * URL, whose query may hold a secret, and neither headers nor bodies.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { PROBLEMS } from '../domain/api-problem.ts';

/** Fastify's `onResponse` hook. */
export async function logAnswer(request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const fields = {
    event: 'request',
    method: request.method,
    route: request.routeOptions.url ?? 'none',
    status: reply.statusCode,
    duration_ms: Math.round(reply.elapsedTime * 1000) / 1000,
    remote_address: request.ip,
    actor: request.principal?.actor ?? (request.targetId === null ? undefined : `target:${request.targetId}`),
  };
  if (reply.statusCode >= PROBLEMS.internal[0]) request.log.warn(fields, 'answered');
  else request.log.info(fields, 'answered');
}
