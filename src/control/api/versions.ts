/**
 * Versions as ETags: a change names the version that it was made from, so that no concurrent change is lost.
 * Source: RFC 9110 sections 8.8 and 13.
 */

import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import { isJsonObject } from '../../protocol/strict-json.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import type { Created, Operation } from '../resource/operation.ts';
import { principalOf } from './api-access.ts';

interface Versioned {
  readonly version: number;
}

function entityTag(version: number): string {
  return `"${version}"`;
}

/** Value of `schema.headers` for changes. */
export const IF_MATCH = Type.Object({
  'if-match': Type.Optional(
    Type.String({ maxLength: 64, description: 'ETag of the version that the change is based on.' }),
  ),
});

const TAG = /^"([1-9][0-9]{0,15})"$/;

/**
 * Reads the version that a change was made from. Accepts one strong tag; `*` and lists do not identify a version.
 * @throws ApiProblem `precondition_required` without one, `precondition_failed` for a tag that is not ours
 */
export function expectedVersion(request: FastifyRequest): number {
  const version = optionalVersion(request);
  if (version === undefined) throw new ApiProblem('precondition_required');
  return version;
}

/** As `expectedVersion`, but optional: for a PUT that may create. */
export function optionalVersion({ headers }: FastifyRequest): number | undefined {
  const text = headers['if-match'];
  if (text === undefined) return undefined;
  const digits = TAG.exec(text)?.[1];
  if (digits === undefined)
    throw new ApiProblem('precondition_failed', 'If-Match must be one ETag as it was read');
  return Number(digits);
}

/** Adds the ETag of a versioned resource to the response. */
export function tagged<V>(reply: FastifyReply, view: V): V {
  const tag = tagOf(view);
  if (tag !== undefined) reply.header('etag', tag);
  return view;
}

/** Adds the ETag, and answers 304 to a GET that names it (RFC 9110 section 13.1.2). */
export function sendVersioned<V>(request: FastifyRequest, reply: FastifyReply, view: V): V | undefined {
  tagged(reply, view);
  if (request.method !== 'GET' && request.method !== 'HEAD') return view;
  const tag = tagOf(view);
  const known = request.headers['if-none-match']?.split(',').map((one) => one.trim().replace(/^W\//, ''));
  if (known === undefined || tag === undefined || !(known.includes(tag) || known.includes('*'))) return view;
  reply.code(304);
  return undefined;
}

function tagOf(view: unknown): string | undefined {
  const { version }: Partial<Versioned> = Object(view);
  return version === undefined ? undefined : entityTag(version);
}

/** Value of `schema.headers` for creations. */
export const IDEMPOTENCY_KEY = Type.Object({
  'idempotency-key': Type.Optional(
    Type.String({
      pattern: '^[!-~]{1,128}$',
      description:
        'A repeated request with the same key returns the first response and changes nothing. Another request with that key gets idempotency_conflict.',
    }),
  ),
});

export function operationOf(request: FastifyRequest): Operation {
  const by = { actor: principalOf(request).actor, requestId: request.id, reason: reasonIn(request) };
  const key = request.headers['idempotency-key'];
  if (typeof key !== 'string') return by;
  const requestHash = createHash('sha256')
    .update(`${request.method}\n${request.url}\n${request.bodyHash}\n`)
    .digest('base64url');
  return { ...by, idempotency: { key, requestHash } };
}

/** Routes that take a reason declare it in the query or in the body. */
function reasonIn({ query, body }: FastifyRequest): string | undefined {
  const given = [query, body].map((part) => (isJsonObject(part) ? part.reason : undefined));
  return given.find((reason) => typeof reason === 'string');
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
