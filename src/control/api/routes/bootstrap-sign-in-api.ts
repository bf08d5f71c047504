/**
 * Signs a browser in with the bootstrap token, and lists the ways in which a client can sign in. Only a browser on
 * Control's machine may use the token, because elsewhere another server could serve the page into which it is typed.
 * Source: docs/operate/control.md "Operators".
 */
import type { FastifyRequest } from 'fastify';
import Type from 'typebox';
import { isLoopback } from '../../../protocol/loopback.ts';
import { BOOTSTRAP_SIGN_IN, SIGN_IN_METHODS } from '../../contract/operators-contract.ts';
import { ApiProblem } from '../../domain/api-problem.ts';
import { isBootstrapTokenEnabled } from '../../operators/bootstrap-token.ts';
import { type BrowserCookies, cookieOptions, type Sessions } from '../../operators/sessions.ts';
import type { SignIns } from '../../operators/sign-in.ts';
import { tokenKind } from '../../secrets/bearer-token.ts';
import type { ControlStore } from '../../store/port.ts';
import { assertSameOrigin, counted } from '../api-access.ts';
import type { ControlApp } from '../app.ts';
import { baseUrlOf, isPublicHost, type PublicUrls } from '../public-urls.ts';

interface BootstrapSignInParts {
  readonly store: ControlStore;
  readonly signIns: Pick<SignIns, 'isConfigured'>;
  readonly sessions: Pick<Sessions, 'startBootstrap'>;
  readonly cookies: BrowserCookies;
  readonly publicUrls: PublicUrls;
}

const PUBLIC = { kind: 'public' } as const;
const TAGS = ['Operators'];

export function registerBootstrapSignIn(app: ControlApp, parts: BootstrapSignInParts): void {
  app.get(
    '/v1/sign-in-methods',
    {
      config: { access: PUBLIC },
      schema: {
        operationId: 'getSignInMethods',
        tags: TAGS,
        summary: 'How this client may sign in',
        response: { 200: SIGN_IN_METHODS },
      },
    },
    async (request) => ({
      identity_provider: parts.signIns.isConfigured,
      bootstrap_token:
        isFromThisMachine(request, parts.publicUrls) && (await parts.store.read(isBootstrapTokenEnabled)),
    }),
  );
  app.post(
    '/v1/session/bootstrap',
    {
      config: {
        access: PUBLIC,
        problems: ['bootstrap_sign_in_local', 'origin_forbidden', 'authentication_required'],
      },
      schema: {
        operationId: 'signInWithBootstrapToken',
        tags: TAGS,
        summary: 'Exchange the bootstrap token for a session cookie, on the machine of Control',
        body: BOOTSTRAP_SIGN_IN,
        response: { 204: Type.Null() },
      },
    },
    async (request, reply) => {
      if (!isFromThisMachine(request, parts.publicUrls)) throw new ApiProblem('bootstrap_sign_in_local');
      assertSameOrigin(request, [new URL(baseUrlOf(request, parts.publicUrls)).origin]);
      const { token } = request.body;
      const session = await counted(request, app.limits.failedSignIns, async () => {
        if (tokenKind(token) !== 'bootstrap') throw new ApiProblem('authentication_required');
        return parts.sessions.startBootstrap(token, request.id);
      });
      reply.setCookie(parts.cookies.session, session.token, {
        ...cookieOptions(parts.cookies),
        expires: new Date(session.expiresAtMs),
      });
      return reply.code(204).send(null);
    },
  );
}

/** Header fields by which a proxy names itself or its client. */
const PROXY_HEADERS = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip'];

/**
 * Whether the request came over loopback, without a proxy, to a public URL on loopback. Checking `Host` excludes DNS
 * rebinding.
 */
function isFromThisMachine(request: FastifyRequest, publicUrls: PublicUrls): boolean {
  const { headers, ip, socket } = request;
  if (PROXY_HEADERS.some((name) => headers[name] !== undefined)) return false;
  if (![ip, socket.remoteAddress ?? ''].every((address) => isLoopback(address.replace(/^::ffff:/, '')))) {
    return false;
  }
  return isPublicHost(request, publicUrls) && isLoopback(new URL(baseUrlOf(request, publicUrls)).hostname);
}
