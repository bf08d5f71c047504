/**
 * Generates an API's OpenAPI 3.1 document from the schemas of the registered routes.
 * Source: OpenAPI Specification 3.1.0.
 */
import swagger from '@fastify/swagger';
import type { FastifyContextConfig, FastifyInstance, FastifySchema } from 'fastify';
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';
import type { ProblemRow } from './http-problem.ts';
import { PROBLEM } from './members-contract.ts';
import { PROBLEM_MEDIA_TYPE } from './problem-answers.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Error codes of this route for the OpenAPI document, without those that every route has. */
    problems?: readonly string[];
  }
}

/** Description of a route from its registration. */
export interface DescribedRoute {
  readonly schema: FastifySchema | undefined;
  readonly config: FastifyContextConfig | undefined;
  readonly method: string | readonly string[];
}

export interface SecuritySchemes {
  readonly [name: string]:
    | { readonly type: 'http'; readonly scheme: string; readonly description: string }
    | {
        readonly type: 'apiKey';
        readonly in: 'cookie' | 'header';
        readonly name: string;
        readonly description: string;
      };
}

export interface ApiDescription {
  readonly title: string;
  /** Version of the API contract, not of a release. */
  readonly version: string;
  readonly description: string;
  readonly securitySchemes: SecuritySchemes;
  problems(code: string): ProblemRow;
  problemsOf(route: DescribedRoute): readonly string[];
  /** Alternative security schemes; empty for none. */
  securityOf(route: DescribedRoute): readonly { readonly [scheme: string]: readonly string[] }[];
}

/** Registers the OpenAPI plugin; call it before registering routes. */
export async function describeHttpApi(app: FastifyInstance, api: ApiDescription): Promise<void> {
  const { title, version, description } = api;
  await app.register(swagger, {
    convertConstToEnum: false,
    openapi: {
      openapi: '3.1.0',
      info: { title, version, description, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
      components: { securitySchemes: { ...api.securitySchemes } },
    },
    transform: ({ schema, url, route: { config, method } }) => ({
      schema: describedRoute({ schema, config, method }, api),
      url,
    }),
    transformObject: (document) =>
      'openapiObject' in document
        ? withSharedProblems(withNamedSchemas(document.openapiObject))
        : document.swaggerObject,
  });
}

/** Holds a schema's `$id` until the schema moves to the components. */
const NAME_MARK = 'x-schema-name';

function describedRoute(route: DescribedRoute, api: ApiDescription): FastifySchema {
  const { schema } = route;
  const named: JsonObject = isJsonObject(schema) ? marked(schema) : {};
  const responses = isJsonObject(named.response) ? named.response : {};
  return {
    ...named,
    security: api.securityOf(route),
    response: {
      ...describedResponses(responses),
      ...problemResponses(api.problemsOf(route), (code) => api.problems(code)),
    },
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

function problemResponses(codes: readonly string[], problems: ApiDescription['problems']): JsonObject {
  const byStatus = new Map<number, string[]>();
  for (const code of codes) {
    const [status] = problems(code);
    byStatus.set(status, [...(byStatus.get(status) ?? []).filter((one) => one !== code), code]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, ofStatus]) => [
      String(status),
      {
        description: ofStatus.map((code) => `\`${code}\`: ${problems(code)[1]}.`).join(' '),
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
