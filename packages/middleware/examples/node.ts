// node:http without a framework, with Proofgate in the process. `npm install @proofgate/middleware`
import { createServer } from 'node:http';
import { Verifier } from '@proofgate/middleware';
import { proofgate } from '@proofgate/middleware/node';

const { env } = process;

const verifier = await Verifier.open({
  authSite: env.AUTH_SITE ?? 'shop',
  externalOrigin: env.EXTERNAL_ORIGIN ?? 'https://api.shop.example',
  bundle: env.BUNDLE ?? './bundle',
  bundleKeys: [env.BUNDLE_KEY ?? './bundle-key.jwk.json'],
  stateDir: env.STATE_DIR ?? './state',
  replay: env.REPLAY ?? 'redis://127.0.0.1:6379',
});

const handler = proofgate(verifier, async (request, response) => {
  const chunks: Buffer[] = await request.toArray();
  response.setHeader('content-type', 'application/json');
  response.statusCode = request.method === 'POST' ? 201 : 200;
  const body = Buffer.concat(chunks).toString();
  response.end(JSON.stringify({ caller: request.proof.subject, target: request.url, body }));
});

const server = verifier.protect(createServer(handler));
server.listen(Number(env.PORT ?? 8080), () => console.error('listening', server.address()));
process.once('SIGTERM', () => server.close(() => void verifier.close()));
