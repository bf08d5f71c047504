/** Derives an operation from a request: the actor, the request ID and the idempotency key. */
import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import type { Created, Operation } from '../operation.ts';
import { principalOf } from './access.ts';
import { tagged } from './versions.ts';

/** Value of `schema.headers` for creations. */
export const IDEMPOTENCY_KEY = Type.Object({
  'idempotency-key': Type.Optional(
    Type.String({
      pattern: '^[!-~]{1,128}$',
      description:
        'The same key with the same request answers what it answered before and does nothing again; with another request: idempotency_conflict.',
    }),
  ),
});

export function operationOf(request: FastifyRequest): Operation {
  const { actor } = principalOf(request);
  const key = request.headers['idempotency-key'];
  if (typeof key !== 'string') return { actor, requestId: request.id };
  const requestHash = createHash('sha256')
    .update(`${request.method}\n${request.url}\n${request.bodyHash}\n`)
    .digest('base64url');
  return { actor, requestId: request.id, idempotency: { key, requestHash } };
}

/** Sends 201 with the location and, for versioned resources, the ETag. Values that are shown once join the resource's members. */
export function sendCreated<V extends object, S extends object>(
  reply: FastifyReply,
  { view, shownOnce, replayed }: Created<V, S>,
  location: (view: V) => string,
): V & Partial<S> {
  reply.code(201).header('location', location(view));
  if (replayed) reply.header('idempotency-replayed', 'true');
  return { ...tagged(reply, view), ...shownOnce };
}
