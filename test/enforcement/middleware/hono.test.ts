/** Hono: the middleware among others, and what it needs of the runtime. */
import type { IncomingMessage, Server } from 'node:http';
import { serve } from '@hono/node-server';
import { afterEach, expect, it } from '@jest/globals';
import { Hono } from 'hono';
import { methodOverride } from 'hono/method-override';
import { type ProofgateEnv, proofgate } from '../../../src/enforcement/middleware/hono.ts';
import type { WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { type App, runningApp } from '../../support/points/middleware-apps.ts';
import { useMiddleware } from '../../support/points/open-middleware.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { ROUTES, type SiteRoute } from '../../support/site/routes.ts';
import { type RequestPlan, signedRequest, withMoreHeaders } from '../../support/site/signed-request.ts';

const middleware = useMiddleware([]);
const apps: Pick<App, 'close'>[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

type HonoApp = Hono<ProofgateEnv & { Bindings: { incoming: IncomingMessage } }>;
const gate = () => proofgate(middleware.verifier);
const signed = (route: SiteRoute, plan: Partial<RequestPlan> = {}) =>
  signedRequest(middleware.site, { caller: derivedKeyCaller(middleware.site), route, ...plan });
const json = { body: '{"item":"4711"}', otherHeaders: [['Content-Type', 'application/json']] } as const;

/** Starts an application and sends it one request. @returns the answer in a few words */
async function answer(build: (app: HonoApp) => void, request: WireRequest): Promise<string> {
  const app: HonoApp = new Hono();
  app.onError((error, context) => context.text(`error: ${error.message}`, 500));
  build(app);
  const server = middleware.verifier.protect(
    serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server,
  );
  await new Promise((resolve) => server.once('listening', resolve));
  const running = runningApp(server);
  apps.push(running);
  const { body, status } = await http1Client(running.address).send(request);
  const text = body.toString();
  if (!text.includes('urn:proofgate')) return `${status} ${text}`;
  const { detail, reason } = JSON.parse(text);
  return `${status} ${reason}/${detail}`;
}

const routes = (app: HonoApp) => {
  app.get('/v1/orders/:id', (context) => context.text(context.var.proof.subject));
  app.post('/v1/orders', async (context) => context.json(await context.req.json()));
  app.delete('/v1/orders', (context) => context.text('deleted'));
};

it('works on a path, in a base path, and in an application that another one routes to', async () => {
  const request = () => signed(ROUTES.readOrder);
  expect(await answer((app) => routes(app.use('/v1/*', gate())), request())).toBe('200 client:billing');
  const routed = (app: HonoApp) => {
    const inner: HonoApp = new Hono();
    inner.use(gate());
    inner.get('/orders/:id', (context) => context.text(`${context.var.proof.routeId} ${context.req.url}`));
    app.route('/v1', inner);
  };
  expect(await answer(routed, request())).toBe('200 orders-read http://api.shop.example/v1/orders/4711');
});

it('hands on a body in every form', async () => {
  const readers: readonly ((request: Request) => Promise<string>)[] = [
    (request) => request.text(),
    async (request) => Buffer.from(await request.arrayBuffer()).toString(),
    async (request) => JSON.stringify(await request.json()),
    async (request) => (await request.clone().text()).toString(),
    async (request) => new Response(request.body).text(),
    async (request) => (await request.blob()).text(),
  ];
  for (const read of readers) {
    for (const framing of ['length', 'open'] as const) {
      const build = (app: HonoApp) =>
        void app.use(gate()).post('*', async (context) => context.text(await read(context.req.raw)));
      expect(await answer(build, signed(ROUTES.createOrder, { ...json, framing }))).toBe(`200 ${json.body}`);
    }
  }
});

it('denies a bound body that an earlier middleware has read', async () => {
  const build = (app: HonoApp) => {
    app.use(async (context, next) => {
      await context.req.text();
      await next();
    });
    app.use(gate());
    routes(app);
  };
  const expected = '403 request_binding_mismatch/body_unavailable';
  expect(await answer(build, signed(ROUTES.createOrder, json))).toBe(expected);
});

it.each(['query', 'header', 'form'] as const)('denies a method that %s overrides', async (by) => {
  const build = (app: HonoApp) => {
    const override = {
      query: { query: '_method' },
      header: { header: 'X-Action' },
      form: { form: '_method' },
    };
    app.use(methodOverride({ app, ...override[by] }));
    app.use(gate());
    routes(app);
  };
  const plan: Partial<RequestPlan> = {
    body: '_method=DELETE',
    otherHeaders: [
      ['Content-Type', 'application/x-www-form-urlencoded'],
      ['X-Action', 'DELETE'],
    ],
    ...(by === 'query' ? { target: '/v1/orders?_method=DELETE' } : {}),
  };
  expect(await answer(build, signed(ROUTES.createOrder, plan))).toMatch(/^403 /);
});

it('cleans headers that an earlier middleware made Hono build', async () => {
  const build = (app: HonoApp) => {
    app.use(async (context, next) => {
      context.req.raw.headers.delete('x-unrelated');
      await next();
    });
    app.use(gate());
    app.get('*', (context) => context.text([...context.req.raw.headers.keys()].sort().join()));
  };
  const smuggled = [['X-Proofgate-Subject', 'smuggled']] as const;
  expect(await answer(build, withMoreHeaders(signed(ROUTES.readOrder), smuggled))).toBe('200 host');
  expect(await answer(build, withMoreHeaders(signed(ROUTES.whoAmI), smuggled))).toBe(
    '200 authorization,host',
  );
});

it('refuses to run without the messages of Node.js', async () => {
  const app: HonoApp = new Hono();
  const errors: string[] = [];
  app.onError((error, context) => {
    errors.push(error.message);
    return context.text('', 500);
  });
  routes(app.use(gate()));
  expect((await app.request('http://api.shop.example/v1/orders/4711')).status).toBe(500);
  expect(errors).toEqual(['proofgate: Hono must run on @hono/node-server over HTTP/1.1']);
});
