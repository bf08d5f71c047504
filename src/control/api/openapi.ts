/**
 * Describes Control's API as an OpenAPI 3.1 document, with the declared access of its routes. `docs/reference/openapi.json` is a copy
 * that a test keeps up to date.
 * Source: docs/operate/control-api.md "API".
 */
import type { FastifyInstance } from 'fastify';
import {
  type DescribedRoute,
  describeHttpApi,
  type SecuritySchemes,
} from '../../process/http-service/openapi.ts';
import { PROBLEMS, type ProblemCode } from '../domain/api-problem.ts';
import type { RouteAccess } from './api-access.ts';

/** Version of the API contract, not of a release. */
const API_VERSION = '1.0.0';

const DESCRIPTION = `The enrollment plane. Lists return \`items\` and \`next_cursor\`. Single resources have an \`ETag\`; changes send it
in \`If-Match\`. Creations accept \`Idempotency-Key\`. Failures are \`application/problem+json\` with a stable \`code\`.
A method that a path does not list gets 405, with \`Allow\`.`;

const SECURITY_SCHEMES: SecuritySchemes = {
  operator: {
    type: 'http',
    scheme: 'bearer',
    description: 'An access token, or the bootstrap token.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'proofgate_session',
    description: 'An operator who signed in with OpenID Connect.',
  },
  target: { type: 'http', scheme: 'bearer', description: "A target's token." },
  workload: {
    type: 'apiKey',
    in: 'header',
    name: 'Authorization',
    description: 'Proofgate-Key <time>.<signature>, signed with the key that enrolls.',
  },
};

/** Registers the OpenAPI plugin; call it before registering routes. `/openapi.json` serves the document. */
export async function describeApi(app: FastifyInstance): Promise<void> {
  await describeHttpApi(app, {
    title: 'Proofgate Control',
    version: API_VERSION,
    description: DESCRIPTION,
    securitySchemes: SECURITY_SCHEMES,
    problems: (code) => (isProblemCode(code) ? PROBLEMS[code] : rejectUnknownCode(code)),
    problemsOf,
    securityOf: (route) => securityOf(accessOf(route)),
  });
}

/** Serves the document; call it after all routes are registered. */
export function registerOpenApiRoute(app: FastifyInstance): void {
  let text: Buffer | undefined;
  app.get(
    '/openapi.json',
    { config: { access: { kind: 'public' } }, schema: { hide: true } },
    async (_request, reply) => {
      text ??= Buffer.from(JSON.stringify(app.swagger()));
      return reply.type('application/json').send(text);
    },
  );
}

function isProblemCode(code: string): code is ProblemCode {
  return Object.hasOwn(PROBLEMS, code);
}

function rejectUnknownCode(code: string): never {
  throw new Error(`no problem has the code ${code}`);
}

function problemsOf(route: DescribedRoute): readonly string[] {
  const access = accessOf(route);
  const usual = [...usualProblems(access), ...(isSafe(route.method) ? [] : BODY_PROBLEMS)];
  return [...usual, ...(route.config?.problems ?? [])];
}

function accessOf({ config }: DescribedRoute): RouteAccess {
  return config?.access ?? { kind: 'public' };
}

function securityOf(access: RouteAccess): readonly { readonly [scheme: string]: readonly string[] }[] {
  switch (access.kind) {
    case 'public':
    case 'workload':
      return [];
    case 'target':
      return [{ target: [] }];
    case 'signed_in':
    case 'operator':
      return [{ operator: [] }, { session: [] }];
    case 'operator_or_workload':
      return [{ operator: [] }, { session: [] }, { workload: [] }];
  }
}

function usualProblems(access: RouteAccess): readonly ProblemCode[] {
  const always: readonly ProblemCode[] = [
    'request_malformed',
    'request_timeout',
    'headers_too_large',
    'rate_limited',
    'internal',
    'unavailable',
  ];
  switch (access.kind) {
    case 'public':
    case 'workload':
      return always;
    case 'target':
      return [...always, 'authentication_required'];
    case 'signed_in':
      return [...always, 'authentication_required', 'origin_forbidden'];
    case 'operator':
    case 'operator_or_workload':
      return [...always, 'authentication_required', 'permission_denied', 'origin_forbidden', 'not_found'];
  }
}

function isSafe(method: string | readonly string[]): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** Problems of requests that may have a body. */
const BODY_PROBLEMS: readonly ProblemCode[] = ['request_too_large', 'media_type_unsupported'];
