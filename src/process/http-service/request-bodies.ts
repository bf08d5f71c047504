/**
 * Receives request bodies for Fastify, which would keep each chunk as a Buffer of its own: one buffer for each body, and a limit
 * for all bodies that are incomplete. Unverified callers have a separate limit, so that they take no room from verified
 * callers.
 */
import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { BodySpace, type BodySpaceOptions, type HeldSpace } from '../request-body/body-space.ts';
import { readBody } from '../request-body/read-body.ts';
import { commonProblem } from './http-problem.ts';
import { parseJsonBody } from './request-shape.ts';

const MIB = 1_048_576;
/** A body of one caller is never larger than the `bodyLimit` of its route. */
const VERIFIED: BodySpaceOptions = { maxBytes: 128 * MIB, maxBodyBytes: 16 * MIB };
const STRANGERS: BodySpaceOptions = { maxBytes: 16 * MIB, maxBodyBytes: 64 * 1024 };
/** Minimum size that an incomplete body counts as, because Node.js and Fastify hold a connection and a request for it. */
const MIN_HELD_BYTES = 16 * 1024;

export class RequestBodies {
  readonly #verified = new BodySpace(VERIFIED);
  readonly #strangers = new BodySpace(STRANGERS);
  readonly #verifiedCallerOf: (request: FastifyRequest) => string | undefined;

  /** @param verifiedCallerOf undefined for a caller that is not verified before the body; it counts by its address */
  constructor(verifiedCallerOf: (request: FastifyRequest) => string | undefined) {
    this.#verifiedCallerOf = verifiedCallerOf;
  }

  /** Fastify's parser of `application/json`. */
  readonly parseJson = async (request: FastifyRequest, payload: IncomingMessage): Promise<unknown> =>
    parseJsonBody(request, await this.receive(request, payload));

  /** @throws HttpProblem for a body that is too large, is interrupted, or exceeds the limit for all bodies */
  async receive(request: FastifyRequest, payload: IncomingMessage): Promise<Buffer> {
    const caller = this.#verifiedCallerOf(request);
    const held =
      caller === undefined ? this.#strangers.open(addressOf(request)) : this.#verified.open(caller);
    try {
      return await bytesOf(payload, request.routeOptions.bodyLimit, held);
    } finally {
      held.release();
    }
  }
}

/** `ip` is undefined on a Unix socket. */
function addressOf({ ip }: FastifyRequest): string {
  return ip ?? 'unix';
}

async function bytesOf(payload: IncomingMessage, maxBytes: number, held: HeldSpace): Promise<Buffer> {
  if (Number(payload.headers['content-length'] ?? 0) > maxBytes) throw commonProblem('request_too_large');
  const read = held.atLeast(MIN_HELD_BYTES) ? await readBody(payload, maxBytes, held) : NO_ROOM;
  switch (read.kind) {
    case 'read':
      return read.bytes;
    case 'too_large':
      throw commonProblem('request_too_large');
    case 'no_room':
      throw commonProblem('rate_limited', { retryAfterSeconds: 1 });
    case 'aborted':
      throw commonProblem('request_malformed');
  }
}

const NO_ROOM = { kind: 'no_room' } as const;
