/**
 * An application in each framework, as a process of its own: headers of a request say what disturbs it. An error that nothing
 * catches ends the process, as it ends one in use.
 */
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import express from 'express';
import { fastify } from 'fastify';
import { Hono } from 'hono';
import * as expressAdapter from '../../../src/enforcement/middleware/express.ts';
import * as fastifyAdapter from '../../../src/enforcement/middleware/fastify.ts';
import * as honoAdapter from '../../../src/enforcement/middleware/hono.ts';
import * as nodeAdapter from '../../../src/enforcement/middleware/node-handler.ts';
import { Verifier, type VerifierOptions } from '../../../src/enforcement/programs/middleware/index.ts';
import { scriptSettings } from '../harness/run-typescript.ts';
import { type Kind, listening } from './middleware-apps.ts';

export interface DisturbedAppSettings {
  readonly kind: Kind;
  readonly options: VerifierOptions;
}

/** `x-answer`: something in front answers `now`, before the verification, or `soon`, while it waits. */
const ANSWER = 'x-answer';
/** `x-throw`: the handler throws. */
const THROW = 'x-throw';
/** Until the verifier has begun to wait. */
const SOON_MS = 20;

function disturb(answer: unknown, response: ServerResponse): void {
  // Begun and not ended: Fastify calls no further hook after the end of an answer.
  const respond = () => response.writeHead(503).write('late');
  if (answer === 'now') respond();
  if (answer === 'soon') setTimeout(respond, SOON_MS);
}

function handle(thrown: unknown): string {
  if (thrown !== undefined) throw new Error('the handler failed');
  return 'handled';
}

const STARTS: { readonly [K in Kind]: (verifier: Verifier) => Promise<Server> } = {
  express: (verifier) => {
    const app = express();
    app.use((request, response, next) => {
      disturb(request.headers[ANSWER], response);
      next();
    });
    app.use(expressAdapter.proofgate(verifier));
    app.use((request, response) => void response.end(handle(request.headers[THROW])));
    return listening(verifier.protect(createServer(app)));
  },
  fastify: async (verifier) => {
    const app = fastify();
    app.addHook('onRequest', (request, reply, done) => {
      disturb(request.headers[ANSWER], reply.raw);
      done();
    });
    await app.register(fastifyAdapter.proofgate, { verifier });
    app.addHook('onRequest', async (request) => void handle(request.headers[THROW]));
    app.addContentTypeParser('*', (_request, _payload, done) => done(null));
    app.all('/*', async () => 'handled');
    await app.listen({ port: 0, host: '127.0.0.1' });
    return app.server;
  },
  hono: async (verifier) => {
    const app = new Hono<honoAdapter.ProofgateEnv & { Bindings: { outgoing: ServerResponse } }>();
    app.use(async (context, next) => {
      disturb(context.req.header(ANSWER), context.env.outgoing);
      await next();
    });
    app.use(honoAdapter.proofgate(verifier));
    app.all('*', (context) => context.text(handle(context.req.header(THROW))));
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server;
    verifier.protect(server);
    await new Promise((resolve) => server.once('listening', resolve));
    return server;
  },
  node: (verifier) => {
    const handler = nodeAdapter.proofgate(verifier, (request, response) => {
      response.end(handle(request.headers[THROW]));
    });
    return listening(
      verifier.protect(
        createServer((request, response) => {
          disturb(request.headers[ANSWER], response);
          handler(request, response);
        }),
      ),
    );
  },
};

const { kind, options } = scriptSettings<DisturbedAppSettings>();
const verifier = await Verifier.open(options);
const server = await STARTS[kind](verifier);
server.on('upgrade', (request) => void handle(request.headers[THROW]));
while (!verifier.status().isReady) await new Promise((resolve) => setTimeout(resolve, SOON_MS));
// As applications serve it: on a port of its own.
const health = createServer((_request, response) => response.end());
await new Promise<void>((resolve) => health.listen(0, '127.0.0.1', resolve));
console.log(`health ${(health.address() as AddressInfo).port}`);
console.log(`port ${(server.address() as AddressInfo).port}`);
