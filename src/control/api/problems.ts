/**
 * Control's errors as problem+json responses (RFC 9457).
 * Source: docs/operate/control-api.md "API".
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { problemAnswers } from '../../process/http-service/problem-answers.ts';
import { ApiProblem, type ProblemCode } from '../domain/api-problem.ts';
import { ConstraintError, StoreUnavailableError, UnknownSiteError } from '../store/port.ts';
import { VersionConflictError } from '../store/repositories/records.ts';

const answers = problemAnswers({ translate: storeProblem, challenge: 'Bearer realm="proofgate"' });

/** Fastify's error handler. */
export const answerError = answers.answerError;

export function sendProblem(request: FastifyRequest, reply: FastifyReply, code: ProblemCode): void {
  answers.sendProblem(request, reply, new ApiProblem(code));
}

function storeProblem(error: unknown): ApiProblem | undefined {
  if (error instanceof VersionConflictError) return new ApiProblem('precondition_failed');
  if (error instanceof UnknownSiteError) return new ApiProblem('not_found');
  if (error instanceof ConstraintError) {
    return new ApiProblem(error.kind === 'unique' ? 'already_exists' : 'still_in_use');
  }
  return error instanceof StoreUnavailableError ? new ApiProblem('unavailable') : undefined;
}
