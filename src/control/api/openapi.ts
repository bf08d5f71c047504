/**
 * Generates the API's OpenAPI 3.1 document from the schemas and the declared access of the registered routes.
 * `docs/openapi.json` is a copy that a test keeps up to date.
 * Source: OpenAPI Specification 3.1.0; docs/control.md "API".
 */
import swagger from '@fastify/swagger';
import type { FastifyInstance, FastifySchema } from 'fastify';
import { PROBLEM } from '../../api-contract/members-contract.ts';
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';
import { PROBLEMS, type ProblemCode } from '../domain/api-problem.ts';
import type { RouteAccess } from './api-access.ts';
import { PROBLEM_MEDIA_TYPE } from './problems.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Error codes of this route for the OpenAPI document, without those that every route has. */
    problems?: readonly ProblemCode[];
  }
}

/** Version of the API contract, not of a release. */
const API_VERSION = '1.0.0';

const DESCRIPTION = `The enrollment plane. Lists return \`items\` and \`next_cursor\`. Single resources have an \`ETag\`; changes send it
in \`If-Match\`. Creations accept \`Idempotency-Key\`. Failures are \`application/problem+json\` with a stable \`code\`.
A method that a path does not list gets 405, with \`Allow\`.`;

/** Holds a schema's `$id` until the schema moves to the components. */
const NAME_MARK = 'x-schema-name';

const SECURITY_SCHEMES = {
  operator: {
    type: 'http' as const,
    scheme: 'bearer',
    description: 'An access token, or the bootstrap token.',
  },
  session: {
    type: 'apiKey' as const,
    in: 'cookie',
    name: 'proofgate_session',
    description: 'An operator who signed in with OpenID Connect.',
  },
  target: { type: 'http' as const, scheme: 'bearer', description: "A target's token." },
  workload: {
    type: 'apiKey' as const,
    in: 'header',
    name: 'Authorization',
    description: 'Proofgate-Key <time>.<signature>, signed with the key that enrolls.',
  },
};

/** Registers the OpenAPI plugin; call it before registering routes. `/openapi.json` serves the document. */
export async function describeApi(app: FastifyInstance): Promise<void> {
  await app.register(swagger, {
    convertConstToEnum: false,
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Proofgate Control',
        version: API_VERSION,
        description: DESCRIPTION,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      components: { securitySchemes: SECURITY_SCHEMES },
    },
    transform: ({ schema, url, route: { config, method } }) => ({
      schema: describedRoute({ schema, config, method }),
      url,
    }),
    transformObject: (document) =>
      'openapiObject' in document
        ? withSharedProblems(withNamedSchemas(document.openapiObject))
        : document.swaggerObject,
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

interface RouteConfig {
  readonly access?: RouteAccess;
  readonly problems?: readonly ProblemCode[];
}

interface DescribedRoute {
  readonly schema: FastifySchema | undefined;
  readonly config: RouteConfig | undefined;
  readonly method: string | readonly string[];
}

function describedRoute({ schema, config, method }: DescribedRoute): FastifySchema {
  const named: JsonObject = isJsonObject(schema) ? marked(schema) : {};
  const responses = isJsonObject(named.response) ? named.response : {};
  const access = config?.access ?? { kind: 'public' };
  const usual = [...usualProblems(access), ...(isSafe(method) ? [] : changeProblems(access))];
  const problems = problemResponses([...usual, ...(config?.problems ?? [])]);
  return {
    ...named,
    security: securityOf(access),
    response: { ...describedResponses(responses), ...problems },
  } as FastifySchema;
}

const STATUS_WORDS: { readonly [status: string]: string } = {
  200: 'Success.',
  201: 'Created.',
  204: 'Success, without a body.',
  302: 'Redirect.',
  304: 'Not modified.',
};

/**
 * Turns response schemas into OpenAPI responses. The description is beside the schema, so that a named schema is identical
 * in every response. A schema of a body that is not JSON names its media type in `contentMediaType`.
 */
function describedResponses(responses: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(responses).map(([status, schema]) => {
      if (!isJsonObject(schema)) return [status, schema];
      const isEmpty = schema.type === 'null';
      const words = isEmpty && typeof schema.description === 'string' ? schema.description : undefined;
      const description = words ?? STATUS_WORDS[status] ?? 'Response.';
      if (isEmpty) return [status, { description, type: 'null' }];
      const mediaType =
        typeof schema.contentMediaType === 'string' ? schema.contentMediaType : 'application/json';
      return [status, { description, content: { [mediaType]: { schema } } }];
    }),
  );
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
    case 'signed_in':
      return [...always, 'authentication_required'];
    case 'operator':
    case 'operator_or_workload':
      return [...always, 'authentication_required', 'permission_denied', 'not_found'];
  }
}

function isSafe(method: string | readonly string[]): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** Problems of requests that may have a body and that a browser may send for another site. */
function changeProblems(access: RouteAccess): readonly ProblemCode[] {
  const ofBody: readonly ProblemCode[] = ['request_too_large', 'media_type_unsupported'];
  const byCookie = ['signed_in', 'operator', 'operator_or_workload'].includes(access.kind);
  return byCookie ? [...ofBody, 'origin_forbidden'] : ofBody;
}

function problemResponses(codes: readonly ProblemCode[]): JsonObject {
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of codes) {
    const [status] = PROBLEMS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []).filter((one) => one !== code), code]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, ofStatus]) => [
      String(status),
      {
        description: ofStatus.map((code) => `\`${code}\`: ${PROBLEMS[code][1]}.`).join(' '),
        content: { [PROBLEM_MEDIA_TYPE]: { schema: marked(PROBLEM) } },
      },
    ]),
  );
}

/** A plain JSON copy with each `$id` set aside; the plugin would otherwise generate names of its own. */
function marked(schema: object): JsonObject {
  const copy: unknown = JSON.parse(JSON.stringify(schema), (_key, value: unknown) => {
    if (!isJsonObject(value) || typeof value.$id !== 'string') return value;
    const { $id, $schema: _, ...rest } = value;
    return { [NAME_MARK]: $id, ...rest };
  });
  return isJsonObject(copy) ? copy : {};
}

/** Moves each named schema to the components. @throws Error when two schemas have one name */
function withNamedSchemas<D extends object>(document: D): D {
  const found = new Map<string, string>();
  const hoisted = JSON.parse(JSON.stringify(document), (_key, value: unknown) => {
    if (!isJsonObject(value) || typeof value[NAME_MARK] !== 'string') return value;
    const { [NAME_MARK]: name, ...schema } = value;
    const text = JSON.stringify(schema);
    const known = found.get(name as string);
    if (known !== undefined && known !== text) throw new Error(`two schemas are named ${String(name)}`);
    found.set(name as string, text);
    return { $ref: `#/components/schemas/${String(name)}` };
  });
  const schemas = sorted(Object.fromEntries([...found].map(([name, text]) => [name, JSON.parse(text)])));
  hoisted.components = { ...hoisted.components, schemas };
  return hoisted;
}

/** Moves error responses that many routes share to the components, named by their codes. */
function withSharedProblems<D extends object>(document: D): D {
  const responses: Record<string, unknown> = {};
  const shared = JSON.parse(JSON.stringify(document), (_key, value: unknown) => {
    if (!isJsonObject(value) || typeof value.description !== 'string') return value;
    if (!isJsonObject(value.content) || value.content[PROBLEM_MEDIA_TYPE] === undefined) return value;
    const codes = [...value.description.matchAll(/`([a-z0-9_]+)`/g)].map(([, code]) => code);
    const name = codes.join('.');
    responses[name] = value;
    return { $ref: `#/components/responses/${name}` };
  });
  shared.components = { ...shared.components, responses: sorted(responses) };
  return shared;
}

function sorted(record: { readonly [name: string]: unknown }): JsonObject {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}
