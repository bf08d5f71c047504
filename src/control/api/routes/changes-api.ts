/**
 * `GET /v1/changes`: tells consoles as server-sent events that something changed, so that they read it again.
 * Source: WHATWG HTML "Server-sent events"; docs/operate/control-api.md "API".
 */
import { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import Type from 'typebox';
import { ApiProblem } from '../../domain/api-problem.ts';
import { mayDo } from '../../domain/roles.ts';
import type { ChangeFeed, RecordedChange } from '../../operators/change-feed.ts';
import type { Credentials, Operators, Principal } from '../../operators/operators.ts';
import { principalOf } from '../api-access.ts';
import { type ControlApp, longPollSignal } from '../app.ts';

export interface ChangeRouteParts {
  readonly feed: Pick<ChangeFeed, 'subscribe'>;
  readonly operators: Operators;
  readonly sessionCookieName: string;
  /** How often a stream checks its credentials and roles, and sends a comment. */
  readonly checkMs?: number;
  readonly maxStreams?: number;
  readonly maxStreamsPerOperator?: number;
}

const CHECK_MS = 10_000;
const MAX_STREAMS = 500;
const MAX_STREAMS_PER_OPERATOR = 20;
/** A client that leaves more unread is disconnected; it reads everything again when it reconnects. */
const MAX_UNREAD_BYTES = 64 * 1024;
const RETRY_SECONDS = 10;

const EVENT_STREAM = Type.Unsafe<Readable>({
  type: 'string',
  contentMediaType: 'text/event-stream',
  description:
    'Events `change` with `{"site_id", "kinds"}`: kinds of resources as in audit events, at most once a second for each site; without `site_id` for resources outside sites. `session_ended` when the credentials have ended; then the stream ends.',
});

export function registerChangeRoutes(app: ControlApp, parts: ChangeRouteParts): void {
  const limit = new StreamLimit(
    parts.maxStreams ?? MAX_STREAMS,
    parts.maxStreamsPerOperator ?? MAX_STREAMS_PER_OPERATOR,
  );
  app.get(
    '/v1/changes',
    {
      exposeHeadRoute: false,
      config: { access: { kind: 'signed_in' }, problems: ['too_many_streams'] },
      schema: {
        operationId: 'followChanges',
        tags: ['Audit trail'],
        summary: 'Follow what changes among the resources that the caller may read, as server-sent events',
        response: { 200: EVENT_STREAM },
      },
    },
    async (request, reply) => {
      const stream = await openStream(app, request, parts, limit);
      // nginx would buffer it.
      reply.header('x-accel-buffering', 'no');
      return reply.type('text/event-stream').send(stream);
    },
  );
}

async function openStream(
  app: ControlApp,
  request: FastifyRequest,
  { feed, operators, sessionCookieName, checkMs = CHECK_MS }: ChangeRouteParts,
  limit: StreamLimit,
): Promise<Readable> {
  let principal = principalOf(request);
  const credentials: Credentials = {
    authorization: request.headers.authorization,
    sessionCookie: request.cookies[sessionCookieName],
  };
  const release = limit.acquire(principal.actor);
  const stream = new Readable({ read() {} });
  let isOpen = true;
  const write = (text: string) => {
    if (!isOpen) return;
    stream.push(text);
    if (stream.readableLength > MAX_UNREAD_BYTES) request.socket.destroy();
  };
  const unsubscribe = await feed
    .subscribe((changes) => write(eventsFor(principal, changes)))
    .catch((error: unknown) => {
      release();
      throw error;
    });
  const check = setInterval(async () => {
    try {
      principal = await operators.authenticate(credentials);
      write(':\n\n');
    } catch (error) {
      const hasEnded = error instanceof ApiProblem && error.code === 'authentication_required';
      if (hasEnded) write('event: session_ended\ndata: {}\n\n');
      end();
    }
  }, checkMs).unref();
  const signal = longPollSignal(app, request);
  const end = () => {
    if (!isOpen) return;
    isOpen = false;
    clearInterval(check);
    unsubscribe();
    release();
    stream.push(null);
  };
  signal.addEventListener('abort', end);
  stream.once('close', end);
  if (signal.aborted) end();
  // Sends the header fields, and how long to wait before reconnecting.
  else write('retry: 2000\n\n');
  return stream;
}

function eventsFor({ roles }: Principal, changes: readonly RecordedChange[]): string {
  const kindsOfSites = new Map<string | undefined, Set<string>>();
  for (const { place, siteId, resourceKind } of changes) {
    if (!mayDo(roles, 'read', place)) continue;
    const kinds = kindsOfSites.get(siteId) ?? new Set();
    kindsOfSites.set(siteId, kinds.add(resourceKind));
  }
  return [...kindsOfSites]
    .map(([site_id, kinds]) => `event: change\ndata: ${JSON.stringify({ site_id, kinds: [...kinds] })}\n\n`)
    .join('');
}

/** Bounds the open streams, of all operators and of each. */
class StreamLimit {
  readonly #max: number;
  readonly #maxPerOperator: number;
  readonly #taken = new Map<string, number>();
  #total = 0;

  constructor(max: number, maxPerOperator: number) {
    this.#max = max;
    this.#maxPerOperator = maxPerOperator;
  }

  /** @returns a function that releases the stream @throws ApiProblem `too_many_streams` */
  acquire(actor: string): () => void {
    const taken = this.#taken.get(actor) ?? 0;
    if (this.#total >= this.#max || taken >= this.#maxPerOperator) {
      throw new ApiProblem('too_many_streams', undefined, { retryAfterSeconds: RETRY_SECONDS });
    }
    this.#add(actor, 1);
    return () => this.#add(actor, -1);
  }

  #add(actor: string, change: 1 | -1): void {
    this.#total += change;
    const taken = (this.#taken.get(actor) ?? 0) + change;
    if (taken === 0) this.#taken.delete(actor);
    else this.#taken.set(actor, taken);
  }
}
