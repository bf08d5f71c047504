/**
 * Turns every error into a problem+json response (RFC 9457) with a stable `code`. An unexpected error becomes
 * `internal` and reveals nothing of itself.
 */
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { type COMMON_PROBLEMS, commonProblem, HttpProblem } from './http-problem.ts';
import type { Problem } from './members-contract.ts';
import { AnswerShapeError, RequestShapeError } from './request-shape.ts';

export const PROBLEM_MEDIA_TYPE = 'application/problem+json';

/** Default `Retry-After` of a 503. */
const RETRY_UNAVAILABLE_SECONDS = 1;

/** Maps Fastify's own error codes. */
const FRAMEWORK_CODES: { readonly [code: string]: keyof typeof COMMON_PROBLEMS } = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'request_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'media_type_unsupported',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'request_malformed',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'request_malformed',
  FST_ERR_BAD_URL: 'request_malformed',
  FST_ERR_MAX_PARAM_LENGTH: 'request_malformed',
};

export interface ProblemAnswersOptions {
  /** Translates the program's own errors; undefined for an unexpected error. */
  readonly translate?: (error: unknown) => HttpProblem | undefined;
  /** `WWW-Authenticate` of a 401 (RFC 9110 section 11.6.1). */
  readonly challenge?: string;
}

export interface ProblemAnswers {
  /** The problem for an error; undefined for an unexpected error. */
  problemOf(error: unknown): HttpProblem | undefined;
  /** Fastify's error handler. */
  answerError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void;
  sendProblem(request: FastifyRequest, reply: FastifyReply, problem: HttpProblem): void;
}

export function problemAnswers({ translate, challenge }: ProblemAnswersOptions): ProblemAnswers {
  const problemOf = (error: unknown) => ownProblem(error) ?? translate?.(error) ?? frameworkProblem(error);
  const sendProblem = (request: FastifyRequest, reply: FastifyReply, problem: HttpProblem): void => {
    const { retryAfterSeconds, status } = problem;
    const waitSeconds = retryAfterSeconds ?? (status === 503 ? RETRY_UNAVAILABLE_SECONDS : undefined);
    if (waitSeconds !== undefined) reply.header('retry-after', String(waitSeconds));
    if (status === 401 && challenge !== undefined) reply.header('www-authenticate', challenge);
    reply
      .code(status)
      .serializer(JSON.stringify)
      .type(PROBLEM_MEDIA_TYPE)
      .send(documentOf(problem, request.id));
  };
  return {
    problemOf,
    sendProblem,
    answerError(error, request, reply) {
      const problem = problemOf(error);
      if (problem === undefined) request.log.error(unforeseen(error), 'a request failed');
      sendProblem(request, reply, problem ?? commonProblem('internal'));
    },
  };
}

function ownProblem(error: unknown): HttpProblem | undefined {
  if (error instanceof HttpProblem) return error;
  if (error instanceof RequestShapeError) return commonProblem('request_malformed', { faults: error.faults });
  return undefined;
}

function frameworkProblem(error: unknown): HttpProblem | undefined {
  const code = error instanceof Error && 'code' in error ? FRAMEWORK_CODES[String(error.code)] : undefined;
  return code === undefined ? undefined : commonProblem(code);
}

function documentOf({ code, title, status, detail, faults }: HttpProblem, requestId: string): Problem {
  return {
    type: `urn:proofgate:problem:${code}`,
    title,
    status,
    code,
    ...(detail === undefined ? {} : { detail }),
    request_id: requestId,
    ...(faults === undefined ? {} : { errors: [...faults] }),
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
