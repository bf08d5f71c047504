/** Fastify: the hook among plugins, hooks and parsers, and what may change a request before it. */
import dns from 'node:dns';
import { createServer } from 'node:http';
import { afterEach, expect, it } from '@jest/globals';
import { type FastifyInstance, type FastifyServerOptions, fastify } from 'fastify';
import { proofgate } from '../../../src/enforcement/middleware/fastify.ts';
import type { WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { listening, runningApp } from '../../support/points/middleware-apps.ts';
import { useMiddleware } from '../../support/points/open-middleware.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { ROUTES, type SiteRoute } from '../../support/site/routes.ts';
import { type RequestPlan, signedRequest, withMoreHeaders } from '../../support/site/signed-request.ts';

const middleware = useMiddleware([]);
const apps: FastifyInstance[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

const signed = (route: SiteRoute, plan: Partial<RequestPlan> = {}) =>
  signedRequest(middleware.site, { caller: derivedKeyCaller(middleware.site), route, ...plan });
const json = { body: '{"item":"4711"}', otherHeaders: [['Content-Type', 'application/json']] } as const;

/** Starts an application and sends it one request. @returns the answer in a few words */
async function answer(
  build: (app: FastifyInstance) => unknown,
  request: WireRequest,
  options: FastifyServerOptions = {},
): Promise<string> {
  const app = fastify(options);
  apps.push(app);
  await build(app);
  await app.listen({ port: 0, host: '127.0.0.1' });
  const { body, status } = await http1Client(runningApp(app.server).address).send(request);
  const text = body.toString();
  if (!text.includes('urn:proofgate')) return `${status} ${text}`;
  const { detail, reason } = JSON.parse(text);
  return `${status} ${reason}/${detail}`;
}

const gate = async (app: FastifyInstance) => {
  await app.register(proofgate, { verifier: middleware.verifier });
  return app;
};
const routes = (app: FastifyInstance) => {
  app.get('/v1/orders/:id', async (request) => request.proof?.subject ?? 'not verified');
  app.post('/v1/orders', async (request) => request.body);
};

it('verifies the routes of every plugin after it, whatever plugin it was registered in', async () => {
  const sibling = async (app: FastifyInstance) => {
    await gate(app);
    await app.register(async (child) => routes(child));
  };
  expect(await answer(sibling, signed(ROUTES.readOrder))).toBe('200 client:billing');
  const unsigned = { ...signed(ROUTES.readOrder), headers: [] };
  expect(await answer(sibling, unsigned)).toBe('401 invalid_request_proof/authorization_missing');
  const nowhere = { ...unsigned, target: '/nowhere' };
  expect(await answer(sibling, nowhere)).toBe('403 bundle_route_missing/no_match');
});

it('runs before the body is parsed, and parsers get the verified bytes', async () => {
  for (const framing of ['length', 'open'] as const) {
    const request = signed(ROUTES.createOrder, { ...json, framing });
    expect(await answer(async (app) => routes(await gate(app)), request)).toBe(`200 ${json.body}`);
  }
  const other = { ...signed(ROUTES.createOrder, json), body: '{"item":"0"}' };
  const expected = '403 request_binding_mismatch/content-sha256';
  expect(await answer(async (app) => routes(await gate(app)), other)).toBe(expected);
});

it('denies a bound body that an earlier hook has read', async () => {
  const build = async (app: FastifyInstance) => {
    app.addHook('onRequest', async (request) => void (await request.raw.toArray()));
    routes(await gate(app));
  };
  expect(await answer(build, signed(ROUTES.createOrder, json))).toBe(
    '403 request_binding_mismatch/body_unavailable',
  );
});

it('denies a target that `rewriteUrl` has changed', async () => {
  const rewriteUrl = () => '/v1/orders/4711';
  const build = async (app: FastifyInstance) => routes(await gate(app));
  const rewritten = signed(ROUTES.ledger);
  expect(await answer(build, rewritten, { rewriteUrl })).toBe('403 bundle_route_missing/path_not_canonical');
  expect(await answer(build, signed(ROUTES.readOrder), { rewriteUrl })).toBe('200 client:billing');
});

it('denies a method that an earlier hook has changed', async () => {
  const build = async (app: FastifyInstance) => {
    app.addHook('onRequest', async ({ raw }) => {
      raw.method = 'DELETE';
    });
    routes(await gate(app));
  };
  expect(await answer(build, signed(ROUTES.readOrder))).toMatch(/^403 bundle_route_missing/);
});

it('shows the verified host, whatever the proxy settings', async () => {
  const build = async (app: FastifyInstance) => {
    await gate(app);
    app.get('/v1/orders/:id', async (request) => `${request.host} ${request.hostname}`);
  };
  const request = withMoreHeaders(signed(ROUTES.readOrder), [['X-Forwarded-Host', 'evil.example']]);
  expect(await answer(build, request, { trustProxy: true })).toBe('200 api.shop.example api.shop.example');
});

it('may be registered twice', async () => {
  const build = async (app: FastifyInstance) => {
    await gate(app);
    await gate(app);
    routes(app);
  };
  expect(await answer(build, signed(ROUTES.readOrder))).toBe('200 client:billing');
});

it('denies requests of another server than its own', async () => {
  const app = fastify();
  apps.push(app);
  routes(await gate(app));
  await app.ready();
  const other = runningApp(
    await listening(createServer((request, response) => app.routing(request, response))),
  );
  const { body, status } = await http1Client(other.address).send(signed(ROUTES.readOrder));
  await other.close();
  expect([status, JSON.parse(body.toString())]).toMatchObject([503, { reason: 'verifier_unavailable' }]);
});

it('protects the further servers that Fastify makes for a name with several addresses', async () => {
  const { lookup } = dns;
  const addresses = [
    { address: '127.0.0.1', family: 4 },
    { address: '127.0.0.2', family: 4 },
  ];
  const several: typeof lookup = Object.assign((...args: unknown[]) => {
    const done = args.at(-1);
    if (typeof done !== 'function') throw new Error('no callback');
    if (args.length === 3) done(null, addresses);
    else done(null, args[0] === 'localhost' ? '127.0.0.1' : args[0], 4);
  }, lookup);
  Object.assign(dns, { lookup: several });
  try {
    const app = fastify();
    apps.push(app);
    await app.register(async (child) => {
      await gate(child);
      routes(child);
    });
    await app.listen({ port: 0, host: 'localhost' });
    expect(app.addresses().length).toBe(2);
    const { port } = runningApp(app.server).address;
    for (const { address } of addresses) {
      const { body, status } = await http1Client({ host: address, port }).send(signed(ROUTES.readOrder));
      expect([status, body.toString()]).toEqual([200, 'client:billing']);
    }
  } finally {
    Object.assign(dns, { lookup });
  }
});

it('does not start on HTTP/2', async () => {
  const app = fastify({ http2: true });
  await expect(async () => {
    await app.register(proofgate as never, { verifier: middleware.verifier });
    await app.ready();
  }).rejects.toMatchObject({ code: 'server_not_supported' });
});
