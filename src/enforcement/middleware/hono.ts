/** Middleware for Hono on `@hono/node-server`. Its types are structural, so that Hono is not a dependency. */
import { IncomingMessage } from 'node:http';
import type { AdmissionGate, ProblemResponse } from './admission-gate.ts';
import type { Observed, Proof } from './proof.ts';

/** For `new Hono<ProofgateEnv>()`: handlers then get `c.var.proof`. */
export interface ProofgateEnv {
  Variables: {
    proof: Proof;
    /** Set on an observed request that would be denied, which has no `proof`. */
    observed?: Observed;
  };
}

interface Context {
  /** `@hono/node-server` stores Node's own message here as `incoming`. */
  readonly env: unknown;
  readonly req: { readonly method: string; readonly raw: Request };
  set(name: string, value: unknown): void;
}

/** For `app.use`, before anything that reads the body. The server must be protected: `verifier.protect(serve(…))`. */
export function proofgate(
  verifier: AdmissionGate,
): (context: Context, next: () => Promise<void>) => Promise<Response | undefined> {
  return async (context, next) => {
    const incoming = incomingOf(context);
    const admission = await verifier.admit(incoming, () => {
      const { method, raw } = context.req;
      return { method, target: incoming.url === targetOf(raw) ? incoming.url : '' };
    });
    if (admission.kind === 'refused') return responseOf(admission.problem);
    if (admission.kind === 'gone') return new Response(null, { status: 400 });
    // Hono may have built its headers already, for an earlier middleware.
    const { headers } = context.req.raw;
    for (const { name, values } of admission.changedHeaders) {
      headers.delete(name);
      for (const value of values) headers.append(name, value);
    }
    // Hono does not read a stream again, so it takes the bytes from this cache.
    if (admission.body !== undefined) Object.assign(incoming, { rawBody: admission.body });
    if (admission.kind === 'allowed') context.set('proof', admission.proof);
    else context.set('observed', admission.observed);
    await next();
    return undefined;
  };
}

/** @throws Error anywhere but on `@hono/node-server`: only Node's own message shows a request as it was received */
function incomingOf({ env }: Context): IncomingMessage {
  const { incoming } = Object(env);
  if (incoming instanceof IncomingMessage) return incoming;
  throw new Error('proofgate: Hono must run on @hono/node-server over HTTP/1.1');
}

/** Path and query of a URL, by which Hono routes. */
function targetOf({ url }: Request): string {
  return url.slice(url.indexOf('/', url.indexOf('//') + 2));
}

function responseOf({ body, headers, status }: ProblemResponse): Response {
  return new Response(body, {
    status,
    headers: headers.map(([name, value]): [string, string] => [name, value]),
  });
}
