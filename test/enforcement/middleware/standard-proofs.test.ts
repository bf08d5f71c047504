/** Standard proofs in the middleware: who sees them, in each view of the headers. e2e/standard-proofs.test.ts has requests and attacks. */
import { createServer, type IncomingMessage } from 'node:http';
import { serve } from '@hono/node-server';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import express from 'express';
import { Hono } from 'hono';
import { proofgate as expressProofgate } from '../../../src/enforcement/middleware/express.ts';
import { proofgate as honoProofgate, type ProofgateEnv } from '../../../src/enforcement/middleware/hono.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import * as dpop from '../../e2e/dpop/dpop-requests.ts';
import * as http from '../../e2e/http-signature-requests.ts';
import { listening, runningApp } from '../../support/points/middleware-apps.ts';
import {
  type OpenedVerifier,
  openVerifier,
  untilReady,
  usualOptions,
} from '../../support/points/open-middleware.ts';
import { ROUTES } from '../../support/site/routes.ts';
import { signedRequest } from '../../support/site/signed-request.ts';
import { createSite, type Site } from '../../support/site/site.ts';

const FORWARDED = {
  ...dpop.READ,
  route_id: 'dpop-forwarded',
  path_template: '/v1/forwarded',
  forward_authorization: true,
};

let site: Site;
let opened: OpenedVerifier;
beforeAll(async () => {
  site = await createSite();
  const bundle = await site.makeBundle({ moreRoutes: [http.READ, dpop.READ, dpop.EITHER, FORWARDED] });
  opened = await openVerifier(await usualOptions(site, bundle));
  await untilReady(opened.verifier);
});
afterAll(async () => {
  await opened?.verifier.close();
  await site?.remove();
});

const NAMES = ['authorization', 'dpop', 'signature', 'signature-input'];
const OTHERS = { 'signature-input': 'cdn=("@authority");created=1', signature: 'cdn=:AAAA:' };
const OTHER_LINES = ['signature-input: cdn=("@authority");created=1', 'signature: cdn=:AAAA:'];

/** Lines of the names in every view of Node, sorted, each view once. */
function seen({ headers, headersDistinct, rawHeaders }: IncomingMessage): readonly string[] {
  const views = [
    Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    Object.entries(headersDistinct).map(([name, values]) => `${name}: ${values?.join(', ')}`),
    rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [`${name.toLowerCase()}: ${rawHeaders[at + 1]}`] : [])),
  ].map((lines) => lines.filter((line) => NAMES.some((name) => line.startsWith(`${name}:`))).sort());
  return [...new Set(views.map((lines) => lines.join('\n')))];
}

/** Requests with a proof, and what an upstream would see of them. */
async function requests() {
  const { dpopRequest, transcriptRequest } = dpop.requestsOf(site);
  const forwarded = dpopRequest({ target: FORWARDED.path_template });
  const signed = await http.sign(site, http.READ_PLAN);
  const beside = Object.entries(OTHERS).reduce(
    (request, [name, member]) => http.withHeader(request, name, (value) => `${member}, ${value}`),
    await http.sign(site, http.READ_PLAN),
  );
  const transcript = transcriptRequest();
  return [
    [dpopRequest(), ''],
    [forwarded, `authorization: ${new Map(forwarded.headers).get('authorization')}`],
    [signed, ''],
    [beside, OTHER_LINES.join('\n')],
    [{ ...transcript, headers: [...transcript.headers, ...Object.entries(OTHERS)] }, OTHER_LINES.join('\n')],
  ] as const;
}

it('in Express, no code sees a proof for the site, nor its passport: before the middleware, in a handler, where none is', async () => {
  const app = express();
  const views: (readonly string[])[] = [];
  const look = (request: IncomingMessage, _: unknown, next: () => void) => {
    views.push(seen(request));
    next();
  };
  app.use(look);
  app.get('/open', (_, response) => void response.send('open'));
  app.use(
    expressProofgate(opened.verifier),
    look,
    (request, response) => void response.send(request.proof.format),
  );
  const running = runningApp(await listening(opened.verifier.protect(createServer(app))));
  try {
    const client = http1Client(running.address);
    const formats = [];
    for (const [request, kept] of await requests()) {
      const { body } = await client.send(request);
      formats.push(body.toString());
      const [before, handled, ...more] = views.splice(0);
      const shown = ['proofgate/', 'dpop:', 'authorization:'].filter((text) => before?.join().includes(text));
      expect(shown).toEqual([]);
      expect([handled, more]).toEqual([[kept], []]);
      expect((await client.send({ ...request, target: '/open' })).status).toBe(200);
      expect(views.splice(0)).toEqual([before]);
    }
    const signed = 'http-message-signatures';
    expect(formats).toEqual(['dpop', 'dpop', signed, signed, 'transcript-v1']);
  } finally {
    await running.close();
  }
});

it('Hono’s headers are those of a handler, also when an earlier middleware had read them', async () => {
  const app = new Hono<ProofgateEnv & { Bindings: { incoming: IncomingMessage } }>();
  app.use(async (context, next) => {
    context.req.raw.headers.get('accept');
    await next();
  });
  app.use(honoProofgate(opened.verifier));
  app.all('*', (context) => {
    const own = NAMES.flatMap((name) => {
      const value = context.req.header(name);
      return value === undefined ? [] : [`${name}: ${value}`];
    });
    return context.json([own.sort().join('\n'), ...seen(context.env.incoming)]);
  });
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
  if (!('maxHeadersCount' in server)) throw new Error('no HTTP/1.1 server');
  const running = runningApp(await listening(opened.verifier.protect(server)));
  try {
    for (const [request, kept] of await requests()) {
      const { body } = await http1Client(running.address).send(request);
      expect(JSON.parse(body.toString())).toEqual([kept, kept]);
    }
  } finally {
    await running.close();
  }
});

it('no code before the decision sees the token of a DPoP proof that is missing, and handlers see a token of the application', async () => {
  const app = express();
  const views: (readonly string[])[] = [];
  const look = (request: IncomingMessage, _: unknown, next: () => void) => {
    views.push(seen(request));
    next();
  };
  app.use(look, expressProofgate(opened.verifier), look, (_, response) => void response.send('ok'));
  const running = runningApp(await listening(opened.verifier.protect(createServer(app))));
  try {
    const client = http1Client(running.address);
    const { billing, dpopRequest } = dpop.requestsOf(site);
    const alone = dpop.without(dpopRequest(), 'dpop');
    expect((await client.send(alone)).status).toBe(401);
    expect(views.splice(0)).toEqual([['']]);
    const token = 'DPoP of.the.application';
    const owned = signedRequest(site, {
      ...{ caller: billing(), route: ROUTES.bearer },
      otherHeaders: [['authorization', token]],
    });
    expect((await client.send(owned)).status).toBe(200);
    expect(views.splice(0)).toEqual([[''], [`authorization: ${token}`]]);
  } finally {
    await running.close();
  }
});
