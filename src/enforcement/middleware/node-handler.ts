/** Adapter for `node:http` without a framework. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { sendProblem } from '../http/problem-response.ts';
import type { AdmissionGate } from './admission-gate.ts';
import { endFailed } from './failed-handler.ts';
import type { Observed, Proof } from './proof.ts';

export interface VerifiedRequest extends IncomingMessage {
  readonly proof: Proof;
  /** Set on an observed request that would be denied, which has no `proof`. */
  readonly observed?: Observed;
}

export type VerifiedHandler = (request: VerifiedRequest, response: ServerResponse) => void;

/**
 * Wraps a handler so that it gets verified requests only. The server must be protected:
 * `verifier.protect(createServer(proofgate(verifier, handler)))`.
 */
export function proofgate(
  verifier: AdmissionGate,
  handler: VerifiedHandler,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    const look = () => ({ method: request.method, target: request.url });
    verifier
      .admit(request, look)
      .then((admission) => {
        if (admission.kind === 'refused') sendProblem(response, admission.problem);
        // Also catches what an asynchronous handler throws.
        if (admission.kind === 'allowed') return handler(verified(request, admission.proof), response);
        if (admission.kind === 'observed' && isObserved(request)) return handler(request, response);
        return undefined;
      })
      .catch((error: unknown) => endFailed(error, request.socket));
  };
}

/** The guard has set it. */
function isObserved(request: IncomingMessage): request is VerifiedRequest {
  return 'observed' in request;
}

function verified(request: IncomingMessage, proof: Proof): VerifiedRequest {
  return hasProof(request, proof) ? request : Object.assign(request, { proof });
}

function hasProof(request: IncomingMessage, proof: Proof): request is VerifiedRequest {
  return 'proof' in request && request.proof === proof;
}
