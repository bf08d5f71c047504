/**
 * Receives request bodies for Fastify, which would keep each chunk as a Buffer of its own: one buffer for each body, and a limit
 * for all bodies that are incomplete. Strangers have a limit of their own, so that they take no room from verified callers.
 */
import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { BodySpace, type BodySpaceOptions, type HeldSpace } from '../request-body/body-space.ts';
import { GrowingBuffer } from '../request-body/growing-buffer.ts';
import { commonProblem, type HttpProblem } from './http-problem.ts';
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

  /** @param verifiedCallerOf undefined for a caller whom nothing has verified before the body; it counts by its address */
  constructor(verifiedCallerOf: (request: FastifyRequest) => string | undefined) {
    this.#verifiedCallerOf = verifiedCallerOf;
  }

  /** Fastify's parser of `application/json`. */
  readonly parseJson = async (request: FastifyRequest, payload: IncomingMessage): Promise<unknown> =>
    parseJsonBody(request, await this.receive(request, payload));

  /** @throws HttpProblem for a body that is too large, breaks off, or has no room */
  async receive(request: FastifyRequest, payload: IncomingMessage): Promise<Buffer> {
    const caller = this.#verifiedCallerOf(request);
    const held =
      caller === undefined ? this.#strangers.open(addressOf(request)) : this.#verified.open(caller);
    try {
      return await readBody(payload, request.routeOptions.bodyLimit, held);
    } finally {
      held.release();
    }
  }
}

/** `ip` is undefined on a Unix socket. */
function addressOf({ ip }: FastifyRequest): string {
  return ip ?? 'unix';
}

function readBody(payload: IncomingMessage, maxBytes: number, held: HeldSpace): Promise<Buffer> {
  if (Number(payload.headers['content-length'] ?? 0) > maxBytes) return Promise.reject(tooLarge());
  return new Promise((resolve, reject) => {
    const body = new GrowingBuffer();
    const stop = () => {
      payload.off('data', take).off('end', finish).off('error', fail).off('close', fail);
    };
    const refuse = (problem: HttpProblem) => {
      stop();
      payload.pause();
      reject(problem);
    };
    const take = (chunk: Buffer) => {
      const bytes = body.lengthBytes + chunk.length;
      if (bytes > maxBytes) return refuse(tooLarge());
      if (!held.atLeast(Math.max(bytes, MIN_HELD_BYTES))) return refuse(noRoom());
      body.append(chunk);
    };
    const finish = () => {
      stop();
      resolve(body.bytes());
    };
    const fail = () => refuse(commonProblem('request_malformed'));
    if (!held.atLeast(MIN_HELD_BYTES)) return reject(noRoom());
    payload.on('data', take).on('end', finish).on('error', fail).on('close', fail);
  });
}

const tooLarge = () => commonProblem('request_too_large');
const noRoom = () => commonProblem('rate_limited', { retryAfterSeconds: 1 });
