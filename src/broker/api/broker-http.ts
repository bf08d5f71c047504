/**
 * Configures Fastify for the broker: strict bodies, problems, limits per address, one log line and one count for each
 * answer.
 */
import { randomBytes } from 'node:crypto';
import type { RequestListener, Server } from 'node:http';
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
import { answerClientError, rejectTooManyHeaders } from '../../process/http-service/http-listener.ts';
import { commonProblem } from '../../process/http-service/http-problem.ts';
import type { ProblemAnswers } from '../../process/http-service/problem-answers.ts';
import { RequestBodies } from '../../process/http-service/request-bodies.ts';
import {
  compileSerializer,
  compileValidator,
  completeSchema,
  NO_BODY_HASH,
  rejectUnexpectedBody,
} from '../../process/http-service/request-shape.ts';
import { answerUnknownResources } from '../../process/http-service/unknown-resources.ts';
import type { BrokerPorts } from '../broker-ports.ts';
import { describeBrokerApi } from './broker-openapi.ts';

export type BrokerApp = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

export interface BrokerHttpOptions {
  readonly ports: Pick<BrokerPorts, 'connectionOf' | 'metrics'>;
  readonly requestsPerSecondPerAddress: number;
  readonly answers: ProblemAnswers;
  readonly log: FastifyBaseLogger;
  /** The listener: TLS, plain HTTP on loopback, or a Unix socket. */
  readonly createServer: (handler: RequestListener) => Server;
}

/** The largest chain of eight certificates takes half of this. */
const MAX_BODY_BYTES = 64 * 1024;
const SECOND_MS = 1000;

/** The application without routes. */
export async function createBrokerHttp(options: BrokerHttpOptions): Promise<BrokerApp> {
  const app = bareApp(options);
  await describeBrokerApi(app);
  await app.register(rateLimit, { global: false });
  addHooks(app, options);
  return app;
}

function bareApp({ answers, log, createServer }: BrokerHttpOptions): BrokerApp {
  const app = fastify({
    serverFactory: createServer,
    clientErrorHandler: answerClientError,
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    // The client's ID is never used, because a client must not choose IDs in the log and audit trail.
    genReqId: () => `req_${randomBytes(12).toString('base64url')}`,
    requestIdHeader: false,
    // The caller's identity and address never come from a header.
    trustProxy: false,
    bodyLimit: MAX_BODY_BYTES,
    forceCloseConnections: 'idle',
    frameworkErrors: answers.answerError,
  }).withTypeProvider<TypeBoxTypeProvider>();
  app.setValidatorCompiler(compileValidator);
  app.setSerializerCompiler(compileSerializer);
  app.removeAllContentTypeParsers();
  // The body identifies the caller, so no caller is verified before the body is received.
  app.addContentTypeParser('application/json', new RequestBodies(() => undefined).parseJson);
  app.setErrorHandler(answers.answerError);
  return app;
}

function addHooks(
  app: BrokerApp,
  { answers, ports, requestsPerSecondPerAddress: max }: BrokerHttpOptions,
): void {
  app.decorateRequest('bodyHash', NO_BODY_HASH);
  app.addHook('onRoute', completeSchema);
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
    reply.header('cache-control', 'no-store');
  });
  app.addHook('onRequest', rejectTooManyHeaders);
  const byAddress = app.createRateLimit({ max, timeWindow: SECOND_MS });
  app.addHook('onRequest', async (request) => {
    if (ports.connectionOf(request.raw).kind === 'unix_socket') return;
    const state = await byAddress(request);
    if (!state.isAllowed && state.isExceeded) {
      throw commonProblem('rate_limited', { retryAfterSeconds: Math.max(1, state.ttlInSeconds) });
    }
  });
  app.addHook('preValidation', rejectUnexpectedBody);
  app.addHook('onResponse', async (request, reply) => recordAnswer(request, reply, ports.metrics));
  answerUnknownResources(app, (request, reply, code) =>
    answers.sendProblem(request, reply, commonProblem(code)),
  );
}

/** Records the route's pattern instead of the URL, and neither headers nor bodies. */
function recordAnswer(request: FastifyRequest, reply: FastifyReply, metrics: BrokerPorts['metrics']): void {
  const route = request.routeOptions.url ?? 'none';
  const { statusCode: status, elapsedTime } = reply;
  metrics.requestAnswered(route, knownMethod(request.method), status, elapsedTime / SECOND_MS);
  const durationMs = Math.round(elapsedTime * 1000) / 1000;
  const fields = { event: 'request', method: request.method, route, status, duration_ms: durationMs };
  if (status >= 500) request.log.warn(fields, 'answered');
  else request.log.info(fields, 'answered');
}

/** Keeps the set of label values closed. */
function knownMethod(method: string): string {
  return method === 'GET' || method === 'POST' || method === 'HEAD' ? method : 'other';
}
