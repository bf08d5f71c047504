/**
 * The broker's HTTP application: verifies who the caller is and issues a short-lived passport. It keeps no state except
 * counters and, with `servesProofs`, holder keys.
 * Source: docs/operate/broker.md.
 */
import type { RequestListener, Server } from 'node:http';
import type { FastifyBaseLogger } from 'fastify';
import { problemAnswers } from '../../process/http-service/problem-answers.ts';
import type { BrokerPorts, BrokerSettings } from '../broker-ports.ts';
import { createChallenges } from '../challenges.ts';
import { createIdentityLimits } from '../identity-limits.ts';
import { type BrokerApp, createBrokerHttp } from './broker-http.ts';
import { registerOpenApiRoute } from './broker-openapi.ts';
import { registerCallerRoutes } from './caller-routes.ts';
import { decisionRecorder } from './decision-record.ts';
import { registerProofs } from './proof-route.ts';
import { registerPublicRoutes } from './public-routes.ts';

export interface BrokerAppOptions {
  readonly settings: BrokerSettings;
  readonly ports: BrokerPorts;
  readonly log: FastifyBaseLogger;
  /** The listener: TLS, plain HTTP on loopback, or a Unix socket. */
  readonly createServer: (handler: RequestListener) => Server;
}

/** `ready`, `listen` and `close` are Fastify's. */
export async function createBrokerApp({
  settings,
  ports,
  log,
  createServer,
}: BrokerAppOptions): Promise<BrokerApp> {
  const answers = problemAnswers({});
  const { limits, publicUrl } = settings;
  const app = await createBrokerHttp({
    ports,
    requestsPerSecondPerAddress: limits.requestsPerSecondPerAddress,
    answers,
    log,
    createServer,
  });
  const challenges = createChallenges(publicUrl, ports.challengeKeys, ports.nowMs);
  registerPublicRoutes(app, { settings, signingKeys: ports.signingKeys, challenges });
  const options = {
    ports,
    recorder: decisionRecorder(ports, settings, answers.problemOf),
    issuing: { settings, ports, limits: createIdentityLimits(limits, ports.nowMs) },
    proofs: { ports, brokerUrl: publicUrl, acceptsJwtSvids: settings.acceptsJwtSvids, challenges },
  };
  registerCallerRoutes(app, options);
  registerProofs(app, options);
  registerOpenApiRoute(app);
  return app;
}
