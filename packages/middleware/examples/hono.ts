// Hono on Node.js with Proofgate in the process. `npm install @proofgate/middleware hono @hono/node-server`
import type { Server } from 'node:http';
import { serve } from '@hono/node-server';
import { Verifier } from '@proofgate/middleware';
import { type ProofgateEnv, proofgate } from '@proofgate/middleware/hono';
import { Hono } from 'hono';

const { env } = process;

const verifier = await Verifier.open({
  authSite: env.AUTH_SITE ?? 'shop',
  externalOrigin: env.EXTERNAL_ORIGIN ?? 'https://api.shop.example',
  bundle: env.BUNDLE ?? './bundle',
  bundleKeys: [env.BUNDLE_KEY ?? './bundle-key.jwk.json'],
  stateDir: env.STATE_DIR ?? './state',
  replay: env.REPLAY ?? 'redis://127.0.0.1:6379',
});

const app = new Hono<ProofgateEnv>();
app.use('/v1/*', proofgate(verifier)); // before anything that reads the body
app.get('/livez', (context) => context.text('alive'));
app.get('/v1/orders/:id', (context) =>
  context.json({ order: context.req.param('id'), caller: context.var.proof.subject }),
);
app.post('/v1/orders', async (context) => {
  const created = await context.req.json();
  return context.json({ created, caller: context.var.proof.subject }, 201);
});

const server = serve({ fetch: app.fetch, port: Number(env.PORT ?? 8080) }, (address) =>
  console.error('listening', address),
) as Server;
verifier.protect(server);
process.once('SIGTERM', () => server.close(() => void verifier.close()));
