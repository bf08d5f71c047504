/**
 * Creates the API's Fastify application, with everything that all routes share. Each resource has a route module, which
 * declares its operations to `registerResource` (./resource-routes.ts). Other routes register with Fastify directly.
 *
 * - `config.access` is required: see `RouteAccess` in ./api-access.ts. Registering a route without it throws.
 * - Schemas are TypeBox and closed (`additionalProperties: false`). A schema with `$id` is a named schema of the OpenAPI
 *   document. Params, query and body are validated before `place` and the handler run. A response that does not match its
 *   schema is a 500. A route without `querystring` or `body` accepts none.
 * - Throw `ApiProblem`; clients see no other error. List each code in `config.problems` for the OpenAPI document.
 * - Creations and mutations outside a resource: `operationOf` (./versions.ts) with `createOnce`. Lists:
 *   ./pagination.ts. Long-polls: {@link longPollSignal}. Bodies over 64 KiB: `bodyLimit` of the route.
 *
 * Source: docs/operate/control-api.md "API".
 */

import { randomBytes } from 'node:crypto';
import cookie from '@fastify/cookie';
import helmet from '@fastify/helmet';
import rateLimit from '@fastify/rate-limit';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
  type RawReplyDefaultExpression,
  type RawRequestDefaultExpression,
  type RawServerDefault,
} from 'fastify';
import {
  answerClientError,
  createListener,
  DEFAULT_LISTENER,
  type ListenerOptions,
  rejectTooManyHeaders,
} from '../../process/http-service/http-listener.ts';
import { RequestBodies } from '../../process/http-service/request-bodies.ts';
import {
  compileSerializer,
  compileValidator,
  completeSchema,
  NO_BODY_HASH,
  rejectUnexpectedBody,
} from '../../process/http-service/request-shape.ts';
import { answerUnknownResources } from '../../process/http-service/unknown-resources.ts';
import type { Operators } from '../operators/operators.ts';
import type { Distribution } from '../publishing/distribution.ts';
import type { ControlStore } from '../store/port.ts';
import { authenticator, authorizer, requireDeclaredAccess } from './api-access.ts';
import { describeApi } from './openapi.ts';
import { answerError, sendProblem } from './problems.ts';
import { DEFAULT_LIMITS, type LimitOptions, type RequestLimits, requestLimits } from './rate-limits.ts';

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
  /** Origins of the --public-url values, `scheme://authority`. */
  readonly origins: readonly string[];
  readonly sessionCookieName?: string;
  readonly limits?: Partial<LimitOptions>;
  readonly listener?: Partial<ListenerOptions>;
  /** Addresses or CIDRs of proxies whose `X-Forwarded-For` is trusted. Default: none. */
  readonly trustedProxies?: readonly string[];
}

const DEFAULT_SESSION_COOKIE = 'proofgate_session';
/** Default maximum body size. A route may set its own. */
export const MAX_BODY_BYTES = 64 * 1024;
/** Maximum length of a path parameter, such as a percent-encoded issuer. */
const MAX_PARAMETER_CHARACTERS = 2048;

declare module 'fastify' {
  interface FastifyInstance {
    /** Aborts when Control stops. Long-polls listen to it. */
    readonly closing: AbortSignal;
    readonly limits: RequestLimits;
    readonly bodies: RequestBodies;
  }
}

/** Creates the application without routes. `listen` and `close` are Fastify's. */
export async function createControlApp(options: ControlAppOptions): Promise<ControlApp> {
  const app = bareApp(options);
  app.setValidatorCompiler(compileValidator);
  app.setSerializerCompiler(compileSerializer);
  app.removeAllContentTypeParsers();
  app.decorate('bodies', new RequestBodies(callerOf));
  app.addContentTypeParser('application/json', app.bodies.parseJson);
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
  answerUnknownResources(app, sendProblem);
  return app;
}

/** Who was verified before the body: an operator or a target. */
function callerOf({ principal, target }: FastifyRequest): string | undefined {
  return principal?.actor ?? (target === null ? undefined : `target:${target.targetId}`);
}

/** Responses are data: a browser that opens one runs nothing. */
const API_CONTENT_POLICY = { defaultSrc: ["'none'"], frameAncestors: ["'none'"] };

function bareApp({ log, listener, trustedProxies = [] }: ControlAppOptions): ControlApp {
  return fastify({
    serverFactory: (handler) => createListener({ ...DEFAULT_LISTENER, ...listener }, handler),
    clientErrorHandler: answerClientError,
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    // Never the client's: a client must not choose IDs in our log and audit trail.
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
  app.decorateRequest('target', null);
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
    // Responses are private to the caller, and some hold secrets that are shown once.
    reply.header('cache-control', 'no-store');
  });
  app.addHook('onRequest', rejectTooManyHeaders);
  app.addHook('onRequest', authenticator(access));
  app.addHook('preValidation', rejectUnexpectedBody);
  app.addHook('preHandler', authorizer(access));
  app.addHook('onResponse', logAnswer);
}

function endLongPollsOnClose(app: ControlApp): void {
  const closing = new AbortController();
  app.decorate('closing', closing.signal);
  app.addHook('preClose', async () => closing.abort());
}

/** Aborts when the client disconnects or Control stops. */
export function longPollSignal(app: ControlApp, request: FastifyRequest): AbortSignal {
  return AbortSignal.any([app.closing, request.signal]);
}

/**
 * Writes one access log line per response: caller, route, status, duration. It logs the route's pattern instead of the
 * URL, whose query may hold a secret, and neither headers nor bodies.
 */

/** Fastify's `onResponse` hook. */
async function logAnswer(request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const fields = {
    event: 'request',
    method: request.method,
    route: request.routeOptions.url ?? 'none',
    status: reply.statusCode,
    duration_ms: Math.round(reply.elapsedTime * 1000) / 1000,
    remote_address: request.ip,
    actor: callerOf(request),
  };
  if (reply.statusCode >= 500) request.log.warn(fields, 'answered');
  else request.log.info(fields, 'answered');
}
