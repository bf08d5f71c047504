// Express 5 with Proofgate in the process. `npm install @proofgate/middleware express`
import { createServer } from 'node:http';
import { Verifier } from '@proofgate/middleware';
import { proofgate } from '@proofgate/middleware/express';
import express from 'express';

const { env } = process;

const verifier = await Verifier.open({
  authSite: env.AUTH_SITE ?? 'shop',
  externalOrigin: env.EXTERNAL_ORIGIN ?? 'https://api.shop.example',
  bundle: env.BUNDLE ?? './bundle',
  bundleKeys: [env.BUNDLE_KEY ?? './bundle-key.jwk.json'],
  stateDir: env.STATE_DIR ?? './state',
  replay: env.REPLAY ?? 'redis://127.0.0.1:6379',
});

const app = express();
app.use('/v1', proofgate(verifier)); // before any body parser
app.use(express.json());
app.get('/livez', (_request, response) => response.send('alive'));
app.get('/v1/orders/:id', (request, response) => {
  response.json({ order: request.params.id, caller: request.proof.subject });
});
app.post('/v1/orders', (request, response) => {
  response.status(201).json({ created: request.body, caller: request.proof.subject });
});

// The server, not the application: upgrades and `Expect: 100-continue` never reach `app.use`.
const server = verifier.protect(createServer(app));
server.listen(Number(env.PORT ?? 8080), () => console.error('listening', server.address()));
process.once('SIGTERM', () => server.close(() => void verifier.close()));
