/** Observed routes in each framework: what a handler gets of a request that would be denied, and what it cannot do with it. */
import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import express from 'express';
import { Hono } from 'hono';
import { proofgate as expressProofgate } from '../../../src/enforcement/middleware/express.ts';
import { proofgate as honoProofgate, type ProofgateEnv } from '../../../src/enforcement/middleware/hono.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import {
  type App,
  KINDS,
  type Kind,
  listening,
  runningApp,
  startApp,
} from '../../support/points/middleware-apps.ts';
import {
  type OpenedVerifier,
  openVerifier,
  untilReady,
  usualOptions,
} from '../../support/points/open-middleware.ts';
import { AUTHORITY, ROUTES, type SiteRoute } from '../../support/site/routes.ts';
import { AUTH_SITE, createSite, nowSeconds, type Site } from '../../support/site/site.ts';
import { waitFor } from '../../support/wait.ts';

const { createOrder, readOrder } = ROUTES;
const routes = [readOrder.route_id, createOrder.route_id];
/** Because of it any DPoP proof may be for the site. */
const DPOP: SiteRoute = {
  ...readOrder,
  route_id: 'dpop-read',
  path_template: '/v1/dpop/{order_id}',
  accepted_proofs: ['dpop'],
  unbound: ['route', 'site'],
};
const untilSeconds = nowSeconds() + 3600;
const apps = new Map<Kind, App>();
let site: Site;
let opened: OpenedVerifier;
beforeAll(async () => {
  site = await createSite();
  const bundle = await site.makeBundle({ observed: { routes, untilSeconds }, moreRoutes: [DPOP] });
  const until = formatTime(untilSeconds);
  const allowObserve = routes.map((route) => `${route}=${until}`);
  const allowed = { allowObserve, allowObserveUnmatched: until };
  opened = await openVerifier({ ...(await usualOptions(site, bundle)), ...allowed });
  for (const kind of KINDS) apps.set(kind, await startApp(kind, opened.verifier));
  await untilReady(opened.verifier);
});
afterAll(async () => {
  for (const app of apps.values()) await app.close();
  await opened?.verifier.close();
  await site?.remove();
});

const unsigned = { method: 'GET', target: '/v1/orders/7', authority: AUTHORITY };

describe.each(KINDS)('%s', (kind) => {
  const start = () => {
    const app = apps.get(kind);
    if (app === undefined) throw new Error(`${kind} was not started`);
    app.handled.length = 0;
    return { app, client: http1Client(app.address) };
  };

  it('says why the request would be denied, and names no caller', async () => {
    const { app, client } = start();
    expect((await client.send(unsigned)).status).toBe(200);
    const [handled] = app.handled;
    expect(handled?.proof ?? undefined).toBeUndefined();
    const [event] = (await opened.decisions()).slice(-1);
    expect(handled?.observed).toEqual({
      ...{ reason: 'invalid_request_proof', detail: 'authorization_missing', routeId: 'orders-read' },
      decisionId: event?.decision_id,
    });
    expect(event?.outcome).toBe('observed');
  });

  it('hands on the bytes of a bound body', async () => {
    const { app, client } = start();
    for (const framing of ['length', 'open'] as const) {
      const request = { method: 'POST', target: '/v1/orders', authority: AUTHORITY, framing };
      expect((await client.send({ ...request, body: Buffer.from('{"item":1}') })).status).toBe(200);
    }
    expect(app.handled.map(({ body }) => body.toString())).toEqual(['{"item":1}', '{"item":1}']);
  });

  it('passes a request that offers HTTP/2 in plaintext, as Java’s client does', async () => {
    const { app, client } = start();
    const headers = [
      ['connection', 'Upgrade, HTTP2-Settings'],
      ['upgrade', 'h2c'],
      ['http2-settings', 'AAEAAEAAAAIAAAAA'],
    ] as const;
    expect((await client.send({ ...unsigned, headers })).status).toBe(200);
    expect(app.handled).toHaveLength(1);
  });

  it('drops a signature for the site, and keeps those of others', async () => {
    const { app, client } = start();
    const headersWith = (tag: string) =>
      [
        ['Signature-Input', `sig=("@method");tag="${tag}"`],
        ['Signature', 'sig=:AAAA:'],
      ] as const;
    for (const target of [unsigned.target, '/v2/reports']) {
      app.handled.length = 0;
      for (const tag of [`proofgate/${AUTH_SITE}`, 'cdn']) {
        const sent = { ...unsigned, target, headers: headersWith(tag) };
        expect((await client.send(sent)).status).toBe(200);
      }
      const seen = app.handled.map(({ distinct, headers, raw }) =>
        [Object.keys(headers), Object.keys(distinct), raw].map((names) =>
          names.map((name) => name.toLowerCase()).filter((name) => /^signature(-input)?$/.test(name)),
        ),
      );
      const both = expect.arrayContaining(['signature', 'signature-input']);
      expect(seen).toEqual([
        [[], [], []],
        [both, both, both],
      ]);
    }
  });

  it('drops a DPoP proof and its token', async () => {
    const { app, client } = start();
    const headers = [
      ['DPoP', 'e30.e30.AA'],
      ['Authorization', 'DPoP abc'],
    ] as const;
    for (const target of [unsigned.target, '/v2/reports']) {
      app.handled.length = 0;
      expect((await client.send({ ...unsigned, target, headers })).status).toBe(200);
      const [seen] = app.handled;
      const names = [Object.keys(seen?.headers ?? {}), Object.keys(seen?.distinct ?? {}), seen?.raw ?? []];
      const found = names.flat().filter((name) => /^(?:dpop|authorization)$/i.test(name));
      expect([app.handled.length, found]).toEqual([1, []]);
    }
  });

  it('drops a passport that stands beside other credentials', async () => {
    const { app, client } = start();
    const headers = [['authorization', 'Basic eDp5, Passport eyJ']] as const;
    expect((await client.send({ ...unsigned, headers })).status).toBe(200);
    expect(app.handled[0]?.headers).not.toHaveProperty('authorization');
    expect(app.handled[0]?.raw.map((text) => text.toLowerCase())).not.toContain('authorization');
  });
});

it('no later code can name a caller, or change the method', async () => {
  const app = express();
  app.use(expressProofgate(opened.verifier));
  app.use((request, response) => {
    const isSet = ['proof', 'observed', 'method'].map((name) => Reflect.set(request, name, 'mine'));
    response.json([isSet, typeof request.proof, request.method]);
  });
  const running = runningApp(await listening(opened.verifier.protect(createServer(app))));
  try {
    const { body } = await http1Client(running.address).send(unsigned);
    expect(JSON.parse(body.toString())).toEqual([[false, false, false], 'undefined', 'GET']);
  } finally {
    await running.close();
  }
});

it('a request that is answered already, or whose caller is gone, reaches no handler', async () => {
  const app = express();
  app.use((_request, response, next) => {
    response.status(503).end();
    next();
  });
  app.use(expressProofgate(opened.verifier));
  let isHandled = false;
  app.use(() => {
    isHandled = true;
  });
  const running = runningApp(await listening(opened.verifier.protect(createServer(app))));
  try {
    const before = (await opened.decisions()).length;
    expect((await http1Client(running.address).send(unsigned)).status).toBe(503);
    await waitFor('the decision', async () => (await opened.decisions()).length > before);
    expect((await opened.decisions()).at(-1)?.outcome).toBe('denied');
    expect(isHandled).toBe(false);
  } finally {
    await running.close();
  }
});

it('a target that changed before the verification is denied, as on an enforced route', async () => {
  const app = express();
  app.use((request, _response, next) => {
    request.url = '/v1/orders/8';
    next();
  });
  app.use(expressProofgate(opened.verifier));
  app.use((_request, response) => response.send('handled'));
  const running = runningApp(await listening(opened.verifier.protect(createServer(app))));
  try {
    expect((await http1Client(running.address).send(unsigned)).status).toBe(403);
  } finally {
    await running.close();
  }
});

it('Hono’s headers lose passport and signature, too, when an earlier middleware had read them', async () => {
  const app = new Hono<ProofgateEnv & { Bindings: { incoming: never } }>();
  app.use(async (context, next) => {
    context.req.raw.headers.get('accept');
    await next();
  });
  app.use(honoProofgate(opened.verifier));
  const names = ['authorization', 'dpop', 'signature', 'signature-input'];
  app.all('*', (context) => context.json(names.filter((name) => context.req.header(name) !== undefined)));
  const { serve } = await import('@hono/node-server');
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
  if (!('maxHeadersCount' in server)) throw new Error('no HTTP/1.1 server');
  opened.verifier.protect(server);
  const running = runningApp(await listening(server));
  try {
    const headers = [
      ['authorization', 'Basic eDp5, Passport eyJ'],
      ['dpop', 'e30.e30.AA'],
      ['signature', 'sig=:AAAA:'],
      ['signature-input', `sig=("@method");tag="proofgate/${AUTH_SITE}"`],
    ] as const;
    const { body, status } = await http1Client(running.address).send({ ...unsigned, headers });
    expect([status, body.toString()]).toEqual([200, '[]']);
  } finally {
    await running.close();
  }
});
