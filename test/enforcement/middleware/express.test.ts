/** Express: where the middleware stands among others, and what they may change. */
import { createServer } from 'node:http';
import { afterEach, describe, expect, it } from '@jest/globals';
import express, { type Express, type Request, type RequestHandler } from 'express';
import { proofgate } from '../../../src/enforcement/middleware/express.ts';
import type { WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { type App, listening, runningApp } from '../../support/points/middleware-apps.ts';
import { useMiddleware } from '../../support/points/open-middleware.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { ROUTES, type SiteRoute } from '../../support/site/routes.ts';
import { type RequestPlan, signedRequest, withMoreHeaders } from '../../support/site/signed-request.ts';

const middleware = useMiddleware([]);
const apps: Pick<App, 'close'>[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

const JSON_TYPE = [['Content-Type', 'application/json']] as const;
const signed = (route: SiteRoute, plan: Partial<RequestPlan> = {}) =>
  signedRequest(middleware.site, { caller: derivedKeyCaller(middleware.site), route, ...plan });

/** Sends one request to an application, and returns the answer in a few words. */
async function answer(build: (app: Express) => void, request: WireRequest): Promise<string> {
  const app = express();
  build(app);
  // Not Express's own page, which shows a stack.
  const errors: express.ErrorRequestHandler = (error, _request, response, _next) => {
    response.status(500).send(`error: ${error.name}`);
  };
  app.use(errors);
  const running = runningApp(await listening(middleware.verifier.protect(createServer(app))));
  apps.push(running);
  const { body, status } = await http1Client(running.address).send(request);
  const text = body.toString();
  if (!text.includes('urn:proofgate')) return `${status} ${text}`;
  const { detail, reason } = JSON.parse(text);
  return `${status} ${reason}/${detail}`;
}

/** Middleware that only does something to the request. */
const doing =
  (act: (request: Request) => unknown): RequestHandler =>
  (request, _response, next) => {
    act(request);
    next();
  };
const gate = () => proofgate(middleware.verifier);
const handler: RequestHandler = (request, response) => {
  response.send(`${request.method} ${request.url} by ${request.proof.subject}`);
};

it('a proof is shown by JSON, with its attributes as objects', async () => {
  let attributes: readonly (readonly [string, string])[] = [];
  const shown = await answer((app) => {
    app.use(gate());
    app.use(((request, response) => {
      const { provenance, context } = request.proof;
      attributes = [...provenance, ...context];
      response.json(request.proof);
    }) satisfies RequestHandler);
  }, signed(ROUTES.readOrder));
  const { provenance, context } = JSON.parse(shown.replace(/^200 /, ''));
  expect(attributes).not.toEqual([]);
  expect([...Object.entries(provenance), ...Object.entries(context)]).toEqual(attributes);
});

describe('mounted', () => {
  it.each([
    ['at its path', '/v1', '/orders/4711'],
    ['at a path with a slash', '/v1/', '/orders/4711'],
    ['deeper', '/v1/orders', '/4711'],
    ['at the whole path', '/v1/orders/4711', '/'],
    ['in lower case only', '/V1', '/orders/4711'],
  ])('%s, it verifies the whole target', async (_where, path, rest) => {
    const build = (app: Express) => app.use(path, gate(), handler);
    expect(await answer(build, signed(ROUTES.readOrder))).toBe(`200 GET ${rest} by client:billing`);
  });

  it('where only a query follows, and in routers in routers', async () => {
    const query = { target: '/v1/orders/4711?a=/b' };
    const whole = (app: Express) => app.use('/v1/orders/4711', gate(), handler);
    expect(await answer(whole, signed(ROUTES.readOrder, query))).toBe('200 GET /?a=/b by client:billing');
    const nested = (app: Express) => {
      const inner = express.Router().use('/orders', gate(), handler);
      app.use('/v1', express.Router().use('/', inner));
    };
    expect(await answer(nested, signed(ROUTES.readOrder, query))).toBe(
      '200 GET /4711?a=/b by client:billing',
    );
  });
});

describe('after something that changed the request, it denies', () => {
  it.each([
    ['the target', { url: '/v1/payroll' }],
    ['the original target', { originalUrl: '/v1/payroll' }],
    ['both', { url: '/v1/payroll', originalUrl: '/v1/payroll' }],
    ['the base', { baseUrl: '/v1' }],
    ['the method', { method: 'DELETE' }],
  ])('%s', async (_what, changed) => {
    const build = (app: Express) =>
      app.use(
        doing((request) => Object.assign(request, changed)),
        gate(),
        handler,
      );
    expect(await answer(build, signed(ROUTES.readOrder))).toBe('403 bundle_route_missing/path_not_canonical');
  });

  it('the method, to the one that was signed', async () => {
    const override = doing((request) => {
      request.method = 'DELETE';
    });
    const request = { ...signed(ROUTES.cancelOrder), method: 'POST' };
    expect(await answer((app) => app.use(override, gate(), handler), request)).toMatch(
      /^403 bundle_route_missing/,
    );
  });
});

it('denies when the target changes while it verifies', async () => {
  const late: RequestHandler = (request, _response, next) => {
    next();
    request.url = '/v1/payroll';
  };
  const build = (app: Express) => app.use(late, gate(), handler);
  expect(await answer(build, signed(ROUTES.readOrder))).toBe('403 bundle_route_missing/path_not_canonical');
});

it('denies what it cannot put its proof on', async () => {
  const taken = doing((request) =>
    Object.defineProperty(request, 'proof', { value: { subject: 'client:admin' } }),
  );
  const build = (app: Express) => app.use(taken, gate(), handler);
  expect(await answer(build, signed(ROUTES.readOrder))).toBe('503 verifier_unavailable/internal');
});

it('lets nothing change the method after it', async () => {
  const override = doing((request) => {
    request.method = 'DELETE';
  });
  const build = (app: Express) => app.use(gate(), override, handler);
  expect(await answer(build, signed(ROUTES.readOrder))).toBe('500 error: TypeError');
});

describe('body parsers', () => {
  const created: RequestHandler = (request, response) => {
    response.send(JSON.stringify(request.body));
  };
  const json = { body: '{"item":"4711"}', otherHeaders: JSON_TYPE };

  it.each<[string, RequestHandler, Partial<RequestPlan>, string]>([
    ['json', express.json(), json, '{"item":"4711"}'],
    ['text', express.text(), { body: 'plain', otherHeaders: [['Content-Type', 'text/plain']] }, '"plain"'],
    [
      'urlencoded',
      express.urlencoded(),
      { body: 'a=1', otherHeaders: [['Content-Type', 'application/x-www-form-urlencoded']] },
      '{"a":"1"}',
    ],
  ])('%s after it gets the verified bytes', async (_name, parser, plan, expected) => {
    for (const framing of ['length', 'open'] as const) {
      const request = signed(ROUTES.createOrder, { ...plan, framing });
      expect(await answer((app) => app.use(gate(), parser, created), request)).toBe(`200 ${expected}`);
    }
  });

  it.each<[string, RequestHandler]>([
    ['a parser', express.json()],
    ['a listener', doing((request) => request.on('data', () => undefined))],
    [
      'a read without a listener',
      (request, _response, next) => {
        request.once('readable', () => {
          request.read();
          setImmediate(next);
        });
      },
    ],
    ['a body from elsewhere', doing((request) => Object.assign(request, { body: { item: 'other' } }))],
    ['an encoding', doing((request) => request.setEncoding('utf8'))],
  ])('%s before it makes the body unknown', async (_what, before) => {
    const build = (app: Express) => app.use(before, gate(), created);
    const expected = '403 request_binding_mismatch/body_unavailable';
    expect(await answer(build, signed(ROUTES.createOrder, json))).toBe(expected);
  });

  it('before it do no harm to a request without a body', async () => {
    const build = (app: Express) => app.use(express.json(), gate(), handler);
    expect(await answer(build, signed(ROUTES.readOrder))).toMatch(/^200 /);
  });

  it('and handlers that read the stream by themselves get the verified bytes', async () => {
    const body = 'x'.repeat(200_000);
    const readers: readonly RequestHandler[] = [
      async (request, response) => void response.send(String((await request.toArray()).join('').length)),
      (request, response) => void request.pipe(response),
      (request, response) => void setImmediate(() => request.pipe(response)),
      (request, response) => {
        let size = 0;
        request.on('data', (chunk: Buffer) => {
          size += chunk.length;
        });
        request.on('end', () => response.send(String(size)));
      },
      (request, response) => void request.on('end', () => response.send('200000')).resume(),
    ];
    for (const reader of readers) {
      const text = await answer((app) => app.use(gate(), reader), signed(ROUTES.createOrder, { body }));
      expect(text === `200 ${body}` || text === '200 200000').toBe(true);
    }
  });
});

it('verifies a request once, however often it is registered', async () => {
  const before = (await middleware.opened.decisions()).length;
  const build = (app: Express) => app.use(gate(), gate()).use('/v1', gate(), handler);
  expect(await answer(build, signed(ROUTES.createOrder, { body: 'a' }))).toMatch(/^200 POST/);
  expect((await middleware.opened.decisions()).length).toBe(before + 1);
});

it('does not ask `trust proxy`, and hosts from headers are the verified one', async () => {
  const build = (app: Express) => {
    app.set('trust proxy', true);
    app.use(gate(), (request, response) => void response.send(`${request.hostname} ${request.headers.host}`));
  };
  const forwarded = withMoreHeaders(signed(ROUTES.readOrder), [
    ['X-Forwarded-Host', 'evil.example'],
    ['X-Forwarded-Proto', 'https'],
  ]);
  expect(await answer(build, forwarded)).toBe('200 api.shop.example api.shop.example');
  const other = { ...signed(ROUTES.readOrder), authority: 'internal:8080' };
  const claimed = withMoreHeaders(other, [['X-Forwarded-Host', 'api.shop.example']]);
  expect(await answer(build, claimed)).toBe('403 bundle_route_missing/origin');
});

it('denies every request of a server that is not protected', async () => {
  const app = express().use(gate(), handler);
  const running = runningApp(await listening(createServer(app)));
  apps.push(running);
  const { body, status } = await http1Client(running.address).send(signed(ROUTES.readOrder));
  expect([status, JSON.parse(body.toString())]).toMatchObject([
    503,
    { reason: 'verifier_unavailable', detail: 'unprotected' },
  ]);
});
