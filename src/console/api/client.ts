/**
 * Control's API, typed by its OpenAPI document. Requests carry the session cookie; nothing is stored in the browser.
 * Source: docs/reference/openapi.json, docs/operate/control-api.md "API".
 */
import createClient from 'openapi-fetch';
import type { components, paths } from '../../../.build/openapi';

export type Schemas = components['schemas'];

/** Control's base URL; the console is served below it. */
export const controlUrl = new URL('..', document.baseURI).href.replace(/\/$/, '');

export const api = createClient<paths>({ baseUrl: controlUrl });

/** An error that Control returned, or a failed connection. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status; 0 when there was no answer. */
  readonly status: number;
  /** A code from docs/operate/control-api.md "Problems", or `connection_failed`. */
  readonly code: string;
  readonly detail: string | undefined;
  readonly faults: readonly Schemas['Fault'][];
  readonly requestId: string | undefined;

  constructor(status: number, problem?: Schemas['Problem']) {
    super(problem?.title ?? (status === 0 ? 'Control does not answer' : `Control answered ${status}`));
    this.status = status;
    this.code = problem?.code ?? (status === 0 ? 'connection_failed' : `status_${status}`);
    this.detail = problem?.detail;
    this.faults = problem?.errors ?? [];
    this.requestId = problem?.request_id;
  }
}

interface Answer<T> {
  readonly data?: T;
  readonly error?: unknown;
  readonly response: Response;
}

/** The body of a successful answer. @throws ApiError */
export async function bodyOf<T>(call: Promise<Answer<T>>): Promise<T> {
  return (await answerOf(call)).body;
}

/** The body with the version to send in `If-Match`. @throws ApiError */
export async function versionedBodyOf<T>(call: Promise<Answer<T>>): Promise<{ body: T; etag: string }> {
  const { body, response } = await answerOf(call);
  return { body, etag: response.headers.get('etag') ?? '' };
}

async function answerOf<T>(call: Promise<Answer<T>>): Promise<{ body: T; response: Response }> {
  const { data, error, response } = await call.catch(() => {
    throw new ApiError(0);
  });
  if (!response.ok) throw new ApiError(response.status, isProblem(error) ? error : undefined);
  return { body: data as T, response };
}

function isProblem(value: unknown): value is Schemas['Problem'] {
  return typeof value === 'object' && value !== null && 'code' in value && 'title' in value;
}
