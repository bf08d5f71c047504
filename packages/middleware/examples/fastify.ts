// Fastify 5 with Proofgate in the process. `npm install @proofgate/middleware fastify`
import { Verifier } from '@proofgate/middleware';
import { proofgate } from '@proofgate/middleware/fastify';
import { fastify } from 'fastify';

const { env } = process;

const verifier = await Verifier.open({
  authSite: env.AUTH_SITE ?? 'shop',
  externalOrigin: env.EXTERNAL_ORIGIN ?? 'https://api.shop.example',
  bundle: env.BUNDLE ?? './bundle',
  bundleKeys: [env.BUNDLE_KEY ?? './bundle-key.jwk.json'],
  stateDir: env.STATE_DIR ?? './state',
  replay: env.REPLAY ?? 'redis://127.0.0.1:6379',
});

const app = fastify();
await app.register(proofgate, { verifier }); // before the routes; it protects the server by itself
app.get<{ Params: { id: string } }>('/v1/orders/:id', async (request) => ({
  order: request.params.id,
  caller: request.proof.subject,
}));
app.post('/v1/orders', async (request, reply) => {
  reply.code(201);
  return { created: request.body, caller: request.proof.subject };
});

await app.listen({ port: Number(env.PORT ?? 8080) });
console.error('listening', app.server.address());
process.once('SIGTERM', () => void app.close().then(() => verifier.close()));
