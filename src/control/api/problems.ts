/**
 * Turns every error into a problem+json response (RFC 9457) with a stable `code`. An unexpected error becomes
 * `internal` and reveals nothing of itself.
 * Source: docs/control.md "API".
 */
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import type { Fault, Problem } from '../../api-contract/members-contract.ts';
import { ApiProblem, PROBLEMS, type ProblemCode } from '../domain/api-problem.ts';
import { ConstraintError, StoreUnavailableError, UnknownSiteError } from '../store/port.ts';
import { VersionConflictError } from '../store/repositories/records.ts';
import { AnswerShapeError, RequestShapeError } from './request-shape.ts';

export const PROBLEM_MEDIA_TYPE = 'application/problem+json';

/** An error before it is formatted as a problem. */
interface Failure {
  readonly code: ProblemCode;
  readonly detail?: string | undefined;
  readonly errors?: readonly Fault[] | undefined;
  readonly retryAfterSeconds?: number | undefined;
}

/** Default `Retry-After` of a 503. */
const RETRY_UNAVAILABLE_SECONDS = 1;

/** Maps Fastify's own error codes. */
const FRAMEWORK_CODES: { readonly [code: string]: ProblemCode } = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'request_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'media_type_unsupported',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'request_malformed',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'request_malformed',
  FST_ERR_BAD_URL: 'request_malformed',
  FST_ERR_MAX_PARAM_LENGTH: 'request_malformed',
};

/** @returns undefined for an unexpected error */
function failureOf(error: unknown): Failure | undefined {
  if (error instanceof ApiProblem) return problemFailure(error);
  if (error instanceof RequestShapeError) return { code: 'request_malformed', errors: error.faults };
  if (error instanceof VersionConflictError) return { code: 'precondition_failed' };
  if (error instanceof UnknownSiteError) return { code: 'not_found' };
  if (error instanceof ConstraintError) {
    return { code: error.kind === 'unique' ? 'already_exists' : 'still_in_use' };
  }
  if (error instanceof StoreUnavailableError) return { code: 'unavailable' };
  const code = error instanceof Error && 'code' in error ? FRAMEWORK_CODES[String(error.code)] : undefined;
  return code === undefined ? undefined : { code };
}

function problemFailure(problem: ApiProblem): Failure {
  const { code, message, retryAfterSeconds, faults } = problem;
  return {
    code,
    detail: message === PROBLEMS[code][1] ? undefined : message,
    errors: faults,
    retryAfterSeconds,
  };
}

/** Fastify's error handler. */
export function answerError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const failure = failureOf(error);
  if (failure === undefined) request.log.error(unforeseen(error), 'a request failed');
  sendProblem(request, reply, failure ?? { code: 'internal' });
}

export function sendProblem(request: FastifyRequest, reply: FastifyReply, failure: Failure): void {
  const [status] = PROBLEMS[failure.code];
  const retryAfterSeconds =
    failure.retryAfterSeconds ?? (status === 503 ? RETRY_UNAVAILABLE_SECONDS : undefined);
  if (retryAfterSeconds !== undefined) reply.header('retry-after', String(retryAfterSeconds));
  // RFC 9110 section 11.6.1: a 401 names the authentication scheme.
  if (status === 401) reply.header('www-authenticate', 'Bearer realm="proofgate"');
  const problem = problemOf(failure, request.id);
  reply.code(status).serializer(JSON.stringify).type(PROBLEM_MEDIA_TYPE).send(problem);
}

function problemOf({ code, detail, errors }: Failure, requestId: string): Problem {
  const [status, title] = PROBLEMS[code];
  return {
    type: `urn:proofgate:problem:${code}`,
    title,
    status,
    code,
    ...(detail === undefined ? {} : { detail }),
    request_id: requestId,
    ...(errors === undefined ? {} : { errors: [...errors] }),
  };
}

/**
 * The loggable part of an unexpected error: where it was thrown. The message is left out because it may quote a value.
 */
function unforeseen(error: unknown) {
  const known = error instanceof Error ? error : undefined;
  return {
    event: 'request_failed',
    answer_faults: error instanceof AnswerShapeError ? error.faults : undefined,
    error_name: known?.name ?? typeof error,
    error_code: known !== undefined && 'code' in known ? String(known.code) : undefined,
    at: known?.stack
      ?.split('\n')
      .filter((line) => /^\s+at /.test(line))
      .slice(0, 8)
      .map((line) => line.trim()),
  };
}
