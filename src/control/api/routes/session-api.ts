/**
 * Routes that sign operators in and out and show the current session. Browsers use `/auth/…`, whose errors are pages for
 * clients that accept HTML. Source: docs/operate/control.md "Operators".
 */

import type { IncomingMessage } from 'node:http';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import { scopeView } from '../../configuration/role-grants.ts';
import {
  CONFIRMATION,
  SESSION,
  SESSION_EXCHANGE,
  SESSION_TOKEN,
  type SessionView,
  SIGN_IN_QUERY,
} from '../../contract/operators-contract.ts';
import { ApiProblem, PROBLEMS } from '../../domain/api-problem.ts';
import { disableBootstrapToken } from '../../operators/bootstrap-token.ts';
import type { Principal } from '../../operators/operators.ts';
import { bearerToken } from '../../operators/operators.ts';
import { destinationOf } from '../../operators/sealed-sign-in.ts';
import { type BrowserCookies, cookieOptions, type Sessions } from '../../operators/sessions.ts';
import type { SignIns } from '../../operators/sign-in.ts';
import { tokenKind } from '../../secrets/bearer-token.ts';
import type { ControlStore } from '../../store/port.ts';
import { assertSameOrigin, installation, principalOf } from '../api-access.ts';
import type { ControlApp } from '../app.ts';
import { answerError } from '../problems.ts';
import { baseUrlOf, originsOf, type PublicUrls, pathPrefixOf } from '../public-urls.ts';
import { sendConfirmPage, sendFaultPage } from '../sign-in-page.ts';
import { operationOf } from '../versions.ts';
import { registerBootstrapSignIn } from './bootstrap-sign-in-api.ts';

export interface SessionRouteParts {
  readonly store: ControlStore;
  readonly signIns: SignIns;
  readonly sessions: Sessions;
  readonly cookies: BrowserCookies;
  readonly publicUrls: PublicUrls;
}

const PUBLIC = { kind: 'public' } as const;
const TAGS = ['Operators'];

export function registerSessionRoutes(app: ControlApp, parts: SessionRouteParts): void {
  app.register(async (browser: ControlApp) => {
    browser.addContentTypeParser(
      'application/x-www-form-urlencoded',
      async (request: FastifyRequest, payload: IncomingMessage) =>
        parseForm(await app.bodies.receive(request, payload)),
    );
    browser.setErrorHandler(answerBrowser);
    registerSignIn(browser, parts);
    registerConfirmation(browser, parts);
    registerSignOut(browser, parts);
  });
  registerExchange(app, parts);
  registerBootstrapSignIn(app, parts);
  app.get(
    '/v1/session',
    {
      config: { access: { kind: 'signed_in' } },
      schema: {
        operationId: 'getSession',
        tags: TAGS,
        summary: 'The current session with its roles',
        response: { 200: SESSION },
      },
    },
    async (request) => viewOf(principalOf(request)),
  );
  registerBootstrapToken(app, parts);
}

function registerSignIn(app: ControlApp, parts: SessionRouteParts): void {
  app.get(
    '/auth/login',
    {
      config: { access: PUBLIC, problems: ['sign_in_not_configured', 'identity_provider_unavailable'] },
      schema: {
        operationId: 'signIn',
        tags: TAGS,
        summary: 'Start a sign-in at the identity provider',
        querystring: SIGN_IN_QUERY,
        response: { 303: Type.Null({ description: 'To the identity provider.' }) },
      },
    },
    async (request, reply) => {
      await app.limits.address(request);
      const redirectUri = `${baseUrlOf(request, parts.publicUrls)}/auth/callback`;
      const begun = await parts.signIns.begin(redirectUri, destinationOf(request.query));
      reply.setCookie(parts.cookies.signIn, begun.browserSecret, cookieOptions(parts.cookies));
      return reply.redirect(begun.location, 303);
    },
  );
  app.get(
    '/auth/callback',
    {
      config: {
        access: PUBLIC,
        problems: [
          'sign_in_not_configured',
          'sign_in_state_invalid',
          'sign_in_refused',
          'identity_provider_unavailable',
        ],
      },
      schema: {
        operationId: 'finishSignIn',
        tags: TAGS,
        summary: 'Callback from the identity provider',
        querystring: Type.Object({}, { additionalProperties: true }),
        response: { 303: Type.Null({ description: 'To the page that started the sign-in.' }) },
      },
    },
    async (request, reply) => finishSignIn(app, request, reply, parts),
  );
}

async function finishSignIn(
  app: ControlApp,
  request: FastifyRequest,
  reply: FastifyReply,
  parts: SessionRouteParts,
): Promise<FastifyReply> {
  await app.limits.address(request);
  const answer = request.url.split('?').slice(1).join('?');
  const finished = await parts.signIns.finish(answer, request.cookies[parts.cookies.signIn], request.id);
  if (finished.kind === 'confirm') return sendConfirmPage(reply, finished);
  reply.clearCookie(parts.cookies.signIn, cookieOptions(parts.cookies));
  reply.setCookie(parts.cookies.session, finished.session.token, {
    ...cookieOptions(parts.cookies),
    expires: new Date(finished.session.expiresAtMs),
  });
  return reply.redirect(`${pathPrefixOf(request, parts.publicUrls)}${finished.path}`, 303);
}

function registerConfirmation(app: ControlApp, parts: SessionRouteParts): void {
  app.post(
    '/auth/confirm',
    {
      config: { access: PUBLIC, problems: ['sign_in_state_invalid', 'origin_forbidden'] },
      schema: {
        operationId: 'confirmSignIn',
        tags: TAGS,
        summary: 'Allow or deny the sign-in of a command line',
        consumes: ['application/x-www-form-urlencoded'],
        body: CONFIRMATION,
        response: { 303: Type.Null({ description: 'To the command line.' }) },
      },
    },
    async (request, reply) => {
      await app.limits.address(request);
      assertSameOrigin(request, originsOf(parts.publicUrls));
      const { confirmation, decision } = request.body;
      const cookie = request.cookies[parts.cookies.signIn];
      const location = await parts.signIns.decide(confirmation, decision === 'allow', cookie);
      reply.clearCookie(parts.cookies.signIn, cookieOptions(parts.cookies));
      return reply.redirect(location, 303);
    },
  );
}

/** Public, so that a client can also leave an expired session. */
function registerSignOut(app: ControlApp, parts: SessionRouteParts): void {
  app.post(
    '/auth/logout',
    {
      config: { access: PUBLIC, problems: ['origin_forbidden'] },
      schema: {
        operationId: 'signOut',
        tags: TAGS,
        summary: 'End the session of the cookie, or of the bearer token',
        response: { 204: Type.Null() },
      },
    },
    async (request, reply) => {
      const bearer = bearerToken(request.headers.authorization);
      const cookie = request.cookies[parts.cookies.session];
      if (bearer === undefined && cookie !== undefined)
        assertSameOrigin(request, originsOf(parts.publicUrls));
      const token = bearer ?? cookie;
      if (token !== undefined && tokenKind(token) === 'session') await parts.sessions.end(token, request.id);
      // Other sites' pages can send forms here, without the cookie: they must not end a session.
      if (cookie !== undefined) reply.clearCookie(parts.cookies.session, cookieOptions(parts.cookies));
      return reply.code(204).send(null);
    },
  );
}

function registerExchange(app: ControlApp, { signIns }: SessionRouteParts): void {
  app.post(
    '/v1/session/exchange',
    {
      config: { access: PUBLIC, problems: ['sign_in_code_invalid'] },
      schema: {
        operationId: 'exchangeSignInCode',
        tags: TAGS,
        summary: 'Exchange a sign-in code for a session of the command line',
        body: SESSION_EXCHANGE,
        response: { 201: SESSION_TOKEN },
      },
    },
    async (request, reply) => {
      await app.limits.address(request);
      const { code, verifier } = request.body;
      const { token, expiresAtMs } = await signIns.exchange(code, verifier, request.id);
      reply.code(201);
      return { token, expires_at: new Date(expiresAtMs).toISOString() };
    },
  );
}

function registerBootstrapToken(app: ControlApp, { store }: SessionRouteParts): void {
  app.delete(
    '/v1/bootstrap-token',
    {
      config: { access: { kind: 'operator', permission: 'administer', place: installation } },
      schema: {
        operationId: 'disableBootstrapToken',
        tags: TAGS,
        summary: 'Disable the bootstrap token; only a start with --reset-bootstrap-token creates a new one',
        response: { 204: Type.Null() },
      },
    },
    async (request, reply) => {
      await disableBootstrapToken(store, operationOf(request));
      return reply.code(204).send(null);
    },
  );
}

function viewOf({ actor, displayName, via, roles, expiresAtMs }: Principal): SessionView {
  return {
    actor,
    display_name: displayName,
    via,
    roles: roles.map(({ role, scope }) => ({ role, scope: scopeView(scope) })),
    ...(expiresAtMs === undefined ? {} : { expires_at: new Date(expiresAtMs).toISOString() }),
  };
}

/** @throws ApiProblem for a duplicate name */
function parseForm(body: Buffer): unknown {
  const members = [...new URLSearchParams(body.toString('utf8'))];
  const form = new Map(members);
  if (form.size !== members.length) throw new ApiProblem('request_malformed');
  return Object.fromEntries(form);
}

/** Shows a browser an error page; other clients get the problem. */
function answerBrowser(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const wantsPage = request.method === 'GET' && /\btext\/html\b/.test(request.headers.accept ?? '');
  if (wantsPage && error instanceof ApiProblem) {
    const [status, title] = PROBLEMS[error.code];
    sendFaultPage(reply, status, title, error.code);
  } else {
    answerError(error, request, reply);
  }
}
