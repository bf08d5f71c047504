/** Plugin for Fastify 5. Its types are structural, so that Fastify is no dependency. */
import type { IncomingMessage } from 'node:http';
import type { AdmissionGate, HttpServer, ProblemResponse } from './admission-gate.ts';
import { endFailed } from './failed-handler.ts';
import type { Proof } from './proof.ts';
import { isHttpServer } from './protected-server.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set for every route that the plugin was registered before. */
    readonly proof: Proof;
  }
}

interface Request {
  readonly raw: IncomingMessage;
  readonly method: string;
}

interface Reply {
  code(status: number): this;
  header(name: string, value: string): this;
  send(body: string): this;
}

interface Instance {
  readonly server: HttpServer;
  hasRequestDecorator(name: string): boolean;
  decorateRequest(name: string, value: null): unknown;
  addHook(name: 'onRequest', hook: (request: Request, reply: Reply, done: () => void) => void): unknown;
  addHook(name: 'onListen', hook: (done: () => void) => void): unknown;
}

export interface ProofgateOptions {
  readonly verifier: AdmissionGate;
}

/** For `fastify.register`, before plugins with routes. It protects Fastify's server by itself. */
export function proofgate(
  fastify: Instance,
  { verifier }: ProofgateOptions,
  done: (error?: Error) => void,
): void {
  try {
    verifier.protect(fastify.server);
  } catch (error) {
    done(error instanceof Error ? error : new Error(String(error)));
    return;
  }
  fastify.addHook('onListen', (proceed) => {
    for (const server of furtherServersOf(fastify)) verifier.protect(server);
    proceed();
  });
  if (!fastify.hasRequestDecorator('proof')) fastify.decorateRequest('proof', null);
  fastify.addHook('onRequest', (request, reply, proceed) => {
    const { raw } = request;
    const look = () => ({ method: request.method, target: raw.url });
    verifier
      .admit(raw, look)
      .then((admission) => {
        if (admission.kind === 'allowed') {
          Object.assign(request, { proof: admission.proof });
          proceed();
        }
        if (admission.kind === 'refused') answer(reply, admission.problem);
      })
      .catch((error: unknown) => endFailed(error, raw.socket));
  });
  done();
}

/**
 * On `localhost` Fastify makes a server for each of its addresses, and keeps those beside `server` under a symbol of its own. A
 * server that this does not find is not protected, so all of its requests are denied.
 */
function furtherServersOf(fastify: object): readonly HttpServer[] {
  for (let at: object | null = fastify; at !== null; at = Object.getPrototypeOf(at)) {
    const held = Object.getOwnPropertySymbols(at).find(
      (symbol) => symbol.description === 'fastify.serverBindings',
    );
    const servers: unknown = held && Object.getOwnPropertyDescriptor(at, held)?.value;
    if (Array.isArray(servers)) return servers.filter(isHttpServer);
  }
  return [];
}

function answer(reply: Reply, { body, headers, status }: ProblemResponse): void {
  reply.code(status);
  for (const [name, value] of headers) reply.header(name, value);
  reply.send(body);
}

/** As fastify-plugin does: the hook applies to routes outside of the plugin. */
Object.assign(proofgate, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: '@proofgate/middleware',
});
