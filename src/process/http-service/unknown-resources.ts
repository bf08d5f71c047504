/** Answers requests that match no route: 405 for another method of a known path, otherwise 404. */
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify';

interface KnownPath {
  readonly pattern: RegExp;
  readonly methods: Set<string>;
}

type SendProblem = (
  request: FastifyRequest,
  reply: FastifyReply,
  code: 'not_found' | 'method_not_allowed',
) => void;

/** Registers itself with `app`; call it after the common hooks and before the routes. */
export function answerUnknownResources(app: FastifyInstance, sendProblem: SendProblem): void {
  const known = new Map<string, KnownPath>();
  app.addHook('onRoute', ({ url, method }: RouteOptions) => {
    const path = known.get(url) ?? { pattern: patternOf(url), methods: new Set<string>() };
    for (const name of typeof method === 'string' ? [method] : method) path.methods.add(name);
    known.set(url, path);
  });
  const answer = (request: FastifyRequest, reply: FastifyReply) => {
    const path = request.url.split('?', 1)[0] ?? '';
    const methods = [...known.values()]
      .filter(({ pattern }) => pattern.test(path))
      .flatMap((one) => [...one.methods]);
    if (methods.length === 0) return sendProblem(request, reply, 'not_found');
    // RFC 9110 section 15.5.6.
    reply.header('allow', [...new Set(methods)].sort().join(', '));
    return sendProblem(request, reply, 'method_not_allowed');
  };
  app.setNotFoundHandler(answer);
  // Runs before Fastify checks body and media type by its own rules for each method (QUERY, RFC 10008).
  app.addHook('onRequest', async (request, reply) => {
    if (!request.is404) return;
    answer(request, reply);
    return reply;
  });
}

/** `/v1/sites/:site_id` */
function patternOf(url: string): RegExp {
  const steps = url.split('/').map((step) => {
    if (step.startsWith(':')) return '[^/]+';
    return step === '*' ? '.*' : step.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&');
  });
  return new RegExp(`^${steps.join('/')}$`);
}
