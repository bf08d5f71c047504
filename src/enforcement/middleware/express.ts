/** Adapter for Express 5. Its types are structural, so that Express is not a dependency. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { sendProblem } from '../http/problem-response.ts';
import type { AdmissionGate } from './admission-gate.ts';
import type { Observed, Proof } from './proof.ts';

declare global {
  namespace Express {
    interface Request {
      /** Set by the middleware for every handler after it. */
      readonly proof: Proof;
      /** Set on an observed request that would be denied, which has no `proof`. */
      readonly observed?: Observed;
    }
  }
}

/** Members that Express adds to a request. */
interface ExpressRequest extends IncomingMessage {
  readonly originalUrl?: string;
  readonly baseUrl?: string;
}

/** For `app.use`, before any body parser. The server must be protected: `verifier.protect(createServer(app))`. */
export function proofgate(
  verifier: AdmissionGate,
): (request: ExpressRequest, response: ServerResponse, next: (error?: unknown) => void) => void {
  return (request, response, next) => {
    const look = () => ({ method: request.method, target: targetOf(request) });
    verifier
      .admit(request, look)
      .then((admission) => {
        if (admission.kind === 'refused') sendProblem(response, admission.problem);
        if (admission.kind === 'allowed' || admission.kind === 'observed') next();
      })
      .catch(next);
  };
}

/**
 * The original target. Where the middleware is mounted, Express has moved the mount path from `url` to `baseUrl`. Empty
 * when the two together are not the original target.
 */
function targetOf({ baseUrl = '', originalUrl, url = '' }: ExpressRequest): string {
  if (originalUrl === undefined) return baseUrl === '' ? url : '';
  // For `/v1?a=b` mounted at `/v1`, Express adds a slash: `/?a=b`.
  const isWhole =
    baseUrl + url === originalUrl || (url.startsWith('/') && baseUrl + url.slice(1) === originalUrl);
  return isWhole ? originalUrl : '';
}
