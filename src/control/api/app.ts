/**
 * The API's application: everything that is the same for every route. Routes come in modules, one for each resource. A
 * resource declares its operations to `registerResource` (./resource-routes.ts); what is no resource registers its routes
 * with Fastify itself.
 *
 * - `config.access` is required: see {@link RouteAccess}. A route without it throws when it is registered.
 * - Schemas are TypeBox, closed (`additionalProperties: false`); `$id` makes a named schema of the OpenAPI document.
 *   Params, query and body are checked before `place` and the handler see them; an answer that does not fit its schema
 *   is a 500. A route without `querystring` or `body` takes none.
 * - Throw `Refusal`; nothing else is told to the caller. List each code in `config.problems` for the document.
 * - Creations and mutations outside a resource: `operationOf` (./request-operation.ts) with `createOnce`. Lists:
 *   ./pagination.ts. Long-polls: {@link longPollSignal}. Bodies over 64 KiB: `bodyLimit` of the route.
 *
 * Source: docs/control.md "API".
 */
import { randomBytes } from 'node:crypto';
import cookie from '@fastify/cookie';
import helmet from '@fastify/helmet';
import rateLimit from '@fastify/rate-limit';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyRequest,
  LogController,
  type RawReplyDefaultExpression,
  type RawRequestDefaultExpression,
  type RawServerDefault,
} from 'fastify';
import type { Distribution } from '../publishing/distribution.ts';
import type { Operators } from '../services.ts';
import type { ControlStore } from '../store/port.ts';
import { authenticator, authorizer, requireDeclaredAccess } from './access.ts';
import { logAnswer } from './access-log.ts';
import { DEFAULT_LIMITS, type LimitOptions, type RequestLimits, requestLimits } from './limits.ts';
import { answerClientError, createListener, DEFAULT_LISTENER, type ListenerOptions } from './listener.ts';
import { describeApi } from './openapi.ts';
import { answerError } from './problems.ts';
import {
  compileSerializer,
  compileValidator,
  completeSchema,
  NO_BODY_HASH,
  parseJsonBody,
  refuseUnexpectedBody,
} from './request-shape.ts';
import { answerUnknownResources } from './unknown-resource.ts';

export type ControlApp = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

export interface ControlAppOptions {
  readonly store: ControlStore;
  readonly operators: Operators;
  readonly targets: Pick<Distribution, 'authenticate'>;
  readonly log: FastifyBaseLogger;
  /** Origins that browsers know this Control under, `scheme://authority`: of its --public-url values. */
  readonly origins: readonly string[];
  readonly sessionCookieName?: string;
  readonly limits?: Partial<LimitOptions>;
  readonly listener?: Partial<ListenerOptions>;
  /** Addresses or CIDRs of proxies whose `X-Forwarded-For` is believed. Default: nobody's. */
  readonly trustedProxies?: readonly string[];
}

export const DEFAULT_SESSION_COOKIE = 'proofgate_session';
/** Most bytes of a body, unless its route says otherwise. */
export const MAX_BODY_BYTES = 64 * 1024;
/** Names and issuers in paths, percent-encoded. */
const MAX_PARAMETER_CHARACTERS = 2048;

declare module 'fastify' {
  interface FastifyInstance {
    /** Ends when Control stops: for whoever holds a request back. */
    readonly closing: AbortSignal;
    readonly limits: RequestLimits;
  }
}

/** Without routes yet. `listen` and `close` are Fastify's. */
export async function createControlApp(options: ControlAppOptions): Promise<ControlApp> {
  const app = bareApp(options);
  app.setValidatorCompiler(compileValidator);
  app.setSerializerCompiler(compileSerializer);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, parseJsonBody);
  app.setErrorHandler(answerError);
  await app.register(cookie);
  await app.register(helmet, {
    contentSecurityPolicy: { useDefaults: false, directives: API_CONTENT_POLICY },
  });
  await app.register(rateLimit, { global: false });
  await describeApi(app);
  app.decorate('limits', requestLimits(app, { ...DEFAULT_LIMITS, ...options.limits }));
  endLongPollsOnClose(app);
  addHooks(app, options);
  answerUnknownResources(app);
  return app;
}

/** Answers are data: a browser that is made to open one runs nothing. */
const API_CONTENT_POLICY = { defaultSrc: ["'none'"], frameAncestors: ["'none'"] };

function bareApp({ log, listener, trustedProxies = [] }: ControlAppOptions): ControlApp {
  return fastify({
    serverFactory: (handler) => createListener({ ...DEFAULT_LISTENER, ...listener }, handler),
    clientErrorHandler: answerClientError,
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    // Never the client's: its names would stand in our log and audit trail.
    genReqId: () => `req_${randomBytes(12).toString('base64url')}`,
    requestIdHeader: false,
    trustProxy: trustedProxies.length === 0 ? false : [...trustedProxies],
    bodyLimit: MAX_BODY_BYTES,
    routerOptions: { maxParamLength: MAX_PARAMETER_CHARACTERS },
    forceCloseConnections: 'idle',
    frameworkErrors: answerError,
  }).withTypeProvider<TypeBoxTypeProvider>();
}

function addHooks(app: ControlApp, options: ControlAppOptions): void {
  app.decorateRequest('principal', null);
  app.decorateRequest('targetId', null);
  app.decorateRequest('bodyHash', NO_BODY_HASH);
  app.addHook('onRoute', (route) => {
    requireDeclaredAccess(route);
    completeSchema(route);
  });
  const access = {
    store: options.store,
    operators: options.operators,
    targets: options.targets,
    sessionCookieName: options.sessionCookieName ?? DEFAULT_SESSION_COOKIE,
    origins: options.origins,
    limits: app.limits,
  };
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
    // Answers are somebody's own, and some hold what is shown once.
    reply.header('cache-control', 'no-store');
  });
  app.addHook('onRequest', authenticator(access));
  app.addHook('preValidation', refuseUnexpectedBody);
  app.addHook('preHandler', authorizer(access));
  app.addHook('onResponse', logAnswer);
}

function endLongPollsOnClose(app: ControlApp): void {
  const closing = new AbortController();
  app.decorate('closing', closing.signal);
  app.addHook('preClose', async () => closing.abort());
}

/** Ends when the one who asks has gone away, or Control stops. */
export function longPollSignal(app: ControlApp, request: FastifyRequest): AbortSignal {
  return AbortSignal.any([app.closing, request.signal]);
}
