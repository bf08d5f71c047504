/** Adapter for `node:http` without a framework. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { sendProblem } from '../http/problem-response.ts';
import type { AdmissionGate } from './admission-gate.ts';
import { endFailed } from './failed-handler.ts';
import type { Proof } from './proof.ts';

export interface VerifiedRequest extends IncomingMessage {
  readonly proof: Proof;
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
        return admission.kind === 'allowed' && handler(verified(request, admission.proof), response);
      })
      .catch((error: unknown) => endFailed(error, request.socket));
  };
}

function verified(request: IncomingMessage, proof: Proof): VerifiedRequest {
  return hasProof(request, proof) ? request : Object.assign(request, { proof });
}

function hasProof(request: IncomingMessage, proof: Proof): request is VerifiedRequest {
  return 'proof' in request && request.proof === proof;
}
