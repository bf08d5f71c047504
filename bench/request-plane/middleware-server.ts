/**
 * The servers that the part `middleware` measures, as a child process: Fastify that answers an empty 200, alone, behind
 * `@fastify/jwt` that verifies one EdDSA token a request, or behind the middleware.
 * Usage: node middleware-server.js JOB, a {@link MiddlewareJob} as JSON. Prints its port once it serves.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type FastifyInstance, fastify } from 'fastify';
import { proofgate } from '../../src/enforcement/middleware/fastify.ts';
import { Verifier, type VerifierOptions } from '../../src/enforcement/programs/middleware/index.ts';

export type MiddlewareJob =
  | { readonly kind: 'bare' }
  /** @param publicKey PEM */
  | { readonly kind: 'jwt'; readonly publicKey: string }
  | { readonly kind: 'proofgate'; readonly options: VerifierOptions };

async function prepare(app: FastifyInstance, job: MiddlewareJob): Promise<void> {
  if (job.kind === 'jwt') {
    const { default: jwt } = await import('@fastify/jwt');
    await app.register(jwt, { secret: { public: job.publicKey }, verify: { algorithms: ['EdDSA'] } });
    app.addHook('onRequest', (request) => request.jwtVerify());
  }
  if (job.kind === 'proofgate') {
    const verifier = await Verifier.open(job.options);
    while (!verifier.status().isReady) await sleep(20);
    await app.register(proofgate, { verifier });
  }
}

const job: MiddlewareJob = JSON.parse(process.argv[2] ?? '');
const app = fastify();
await prepare(app, job);
app.get('/*', (_request, reply) => reply.send());
const url = new URL(await app.listen({ port: 0, host: '127.0.0.1' }));
console.log(JSON.stringify({ port: Number(url.port) }));
