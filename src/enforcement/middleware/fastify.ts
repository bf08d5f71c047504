/** Plugin for Fastify 5. Its types are structural, so that Fastify is not a dependency. */
import type { IncomingMessage } from 'node:http';
import type { AdmissionGate, HttpServer, ProblemResponse } from './admission-gate.ts';
import { endFailed } from './failed-handler.ts';
import type { Observed, Proof } from './proof.ts';
import { isHttpServer } from './protected-server.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set for every route that is registered after the plugin. */
    readonly proof: Proof;
    /** Set on an observed request that would be denied, which has no `proof`. */
    readonly observed?: Observed | null;
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

/** Register it with `fastify.register` before plugins with routes. It also protects Fastify's server. */
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
  for (const name of ['proof', 'observed']) {
    if (!fastify.hasRequestDecorator(name)) fastify.decorateRequest(name, null);
  }
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
        if (admission.kind === 'observed') {
          Object.assign(request, { observed: admission.observed });
          proceed();
        }
        if (admission.kind === 'refused') answer(reply, admission.problem);
      })
      .catch((error: unknown) => endFailed(error, raw.socket));
  });
  done();
}

/**
 * On `localhost` Fastify creates a server for each address, and stores the further ones under its own symbol. A server
 * that is not found here is not protected, so all of its requests are denied.
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

/** Like fastify-plugin, this makes the hook apply to routes outside of the plugin. */
Object.assign(proofgate, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: '@proofgate/middleware',
});
