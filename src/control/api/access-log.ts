/**
 * One line for each answer: who, which route, how it went. Neither headers nor bodies, nor the URL, whose query may
 * hold a secret: the route's pattern instead.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { REFUSALS } from '../domain/refusal.ts';

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
  if (reply.statusCode >= REFUSALS.internal[0]) request.log.warn(fields, 'answered');
  else request.log.info(fields, 'answered');
}
