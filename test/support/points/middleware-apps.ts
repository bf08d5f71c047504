/** One application in each framework: its handler records every view that it has of a verified request. */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import express from 'express';
import { fastify } from 'fastify';
import { Hono } from 'hono';
import * as expressAdapter from '../../../src/enforcement/middleware/express.ts';
import * as fastifyAdapter from '../../../src/enforcement/middleware/fastify.ts';
import * as honoAdapter from '../../../src/enforcement/middleware/hono.ts';
import * as nodeAdapter from '../../../src/enforcement/middleware/node-handler.ts';
import type { Observed, Proof } from '../../../src/enforcement/middleware/proof.ts';
import type { Verifier } from '../../../src/enforcement/programs/middleware/index.ts';
import type { WireAddress } from '../../../src/tools/conformance/wire/exchange.ts';

export const KINDS = ['express', 'fastify', 'hono', 'node'] as const;
export type Kind = (typeof KINDS)[number];

/** A request as a handler sees it. */
export interface Handled {
  readonly method: string;
  readonly target: string;
  readonly httpVersion: string;
  /** The framework's own view, by lower-case name: of the Fetch API's Headers in Hono, of Node everywhere else. */
  readonly headers: Readonly<Record<string, unknown>>;
  readonly distinct: Readonly<Record<string, unknown>>;
  readonly raw: readonly string[];
  /** Names in any view of the trailers, read after the body. */
  readonly trailers: readonly string[];
  readonly body: Buffer;
  /** Undefined on an observed request that would be denied. */
  readonly proof: Proof;
  readonly observed: Observed | null | undefined;
}

export interface App {
  readonly address: WireAddress;
  readonly handled: Handled[];
  close(): Promise<void>;
}

type Start = (verifier: Verifier, record: (handled: Handled) => void) => Promise<Server>;

/** Starts the application of a framework on a port of its own. */
export async function startApp(kind: Kind, verifier: Verifier): Promise<App> {
  const handled: Handled[] = [];
  const server = await STARTS[kind](verifier, (each) => handled.push(each));
  return { ...runningApp(server), handled };
}

export function runningApp(server: Server): Pick<App, 'address' | 'close'> {
  const { port } = server.address() as AddressInfo;
  return {
    address: { host: '127.0.0.1', port },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export function listening(server: Server): Promise<Server> {
  return new Promise((resolve) => {
    if (server.listening) resolve(server);
    else server.listen(0, '127.0.0.1', () => resolve(server));
  });
}

const STARTS: { readonly [K in Kind]: Start } = {
  express: (verifier, record) => {
    const app = express();
    app.use(expressAdapter.proofgate(verifier));
    app.use(async (request, response) => {
      record(await viewOf(request, request.headers, request));
      response.send(answerOf(request));
    });
    return listening(verifier.protect(createServer(app)));
  },
  fastify: async (verifier, record) => {
    const app = fastify();
    await app.register(fastifyAdapter.proofgate, { verifier });
    // No parser: the handler gets the stream.
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', (_request, _payload, done) => done(null));
    app.all('/*', async (request) => {
      record(await viewOf(request.raw, request.headers, request));
      return answerOf(request);
    });
    await app.listen({ port: 0, host: '127.0.0.1' });
    return app.server;
  },
  hono: (verifier, record) => {
    const app = new Hono<honoAdapter.ProofgateEnv & { Bindings: { incoming: IncomingMessage } }>();
    app.use(honoAdapter.proofgate(verifier));
    app.all('*', async (context) => {
      const headers = Object.fromEntries(context.req.raw.headers);
      const hasBody = !['GET', 'HEAD'].includes(context.req.method);
      const body = hasBody ? Buffer.from(await context.req.arrayBuffer()) : undefined;
      record(await viewOf(context.env.incoming, headers, context.var, body));
      return context.text(answerOf(context.var));
    });
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server;
    verifier.protect(server);
    return new Promise((resolve) => server.once('listening', () => resolve(server)));
  },
  node: (verifier, record) => {
    const handler = nodeAdapter.proofgate(verifier, async (request, response) => {
      try {
        record(await viewOf(request, request.headers, request));
        response.end(answerOf(request));
      } catch {
        // The caller left before the end of the body; nothing else catches the error of such a handler.
        response.destroy();
      }
    });
    return listening(verifier.protect(createServer(handler)));
  },
};

/** Names the decision, so that a caller can tell which request was answered. */
const answerOf = ({ observed, proof }: Outcome): string => `handled ${(observed ?? proof).decisionId}`;

type Outcome = Pick<Handled, 'proof'> & { readonly observed?: Handled['observed'] };

async function viewOf(
  incoming: IncomingMessage,
  headers: Readonly<Record<string, unknown>>,
  { observed, proof }: Outcome,
  read?: Buffer,
): Promise<Handled> {
  const chunks: Buffer[] = read === undefined ? await incoming.toArray() : [read];
  const { httpVersion, method = '', rawHeaders, url = '' } = incoming;
  return {
    ...{ method, target: url, httpVersion, headers, raw: rawHeaders, proof, observed },
    distinct: { ...incoming.headersDistinct },
    trailers: [
      ...Object.keys(incoming.trailers),
      ...Object.keys(incoming.trailersDistinct),
      ...incoming.rawTrailers,
    ],
    body: Buffer.concat(chunks),
  };
}
