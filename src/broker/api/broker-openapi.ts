/**
 * Describes the broker's API as an OpenAPI 3.1 document. `docs/reference/broker-openapi.json` is a copy that a test keeps up to date.
 * Source: docs/operate/broker.md.
 */
import type { FastifyInstance } from 'fastify';
import { type DescribedRoute, describeHttpApi } from '../../process/http-service/openapi.ts';
import { BROKER_PROBLEMS, type BrokerProblemCode, isBrokerProblemCode } from '../broker-problems.ts';

/** Version of the API contract, not of a release. */
const API_VERSION = '1.0.0';

const DESCRIPTION = `Passports for software keys and SPIFFE workloads. The proof in the body, or the client certificate of the
connection, says who the caller is; no header does. Failures are \`application/problem+json\` with a stable \`code\`.`;

/** Registers the OpenAPI plugin; call it before registering routes. */
export async function describeBrokerApi(app: FastifyInstance): Promise<void> {
  await describeHttpApi(app, {
    title: 'Proofgate Broker',
    version: API_VERSION,
    description: DESCRIPTION,
    securitySchemes: {},
    problems: (code) => (isBrokerProblemCode(code) ? BROKER_PROBLEMS[code] : rejectUnknownCode(code)),
    problemsOf,
    securityOf: () => [],
  });
}

/** Serves the document; call it after all routes are registered. */
export function registerOpenApiRoute(app: FastifyInstance): void {
  let text: Buffer | undefined;
  app.get('/openapi.json', { schema: { hide: true } }, async (_request, reply) => {
    text ??= Buffer.from(JSON.stringify(app.swagger()));
    return reply.type('application/json').send(text);
  });
}

function rejectUnknownCode(code: string): never {
  throw new Error(`no problem has the code ${code}`);
}

const ALWAYS: readonly BrokerProblemCode[] = [
  'request_malformed',
  'request_timeout',
  'headers_too_large',
  'rate_limited',
  'internal',
];
const OF_BODIES: readonly BrokerProblemCode[] = ['request_too_large', 'media_type_unsupported'];

function problemsOf({ config, method }: DescribedRoute): readonly string[] {
  return [...ALWAYS, ...(method === 'POST' ? OF_BODIES : []), ...(config?.problems ?? [])];
}
