/**
 * Control's operator API, typed by its OpenAPI document, from which the console has its types too. The compiler checks
 * that a call is documented. Nothing checks answers, which Control must send as documented.
 * Source: docs/reference/openapi.json.
 */
import type { components, paths } from '../../../../.build/openapi.d.ts';
import type { Resource } from './control-answer.ts';
import type { ControlClient } from './control-client.ts';

export type Schemas = components['schemas'];
export type ApiPath = keyof paths;

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
type Operation<P extends ApiPath, M extends Method> = paths[P] extends { [N in M]: infer O } ? O : never;
/** The paths that have the method. */
type PathOf<M extends Method> = {
  [P in ApiPath]: [Operation<P, M>] extends [never] ? never : P;
}[ApiPath];

type JsonOf<R> = R extends { content: { 'application/json': infer B } } ? B : never;
/** The body of a success; an object without members when it has none. */
type Answer<P extends ApiPath, M extends Method> =
  Operation<P, M> extends { responses: infer R }
    ? [JsonOf<R[keyof R & (200 | 201)]>] extends [never]
      ? Readonly<Record<string, never>>
      : JsonOf<R[keyof R & (200 | 201)]>
    : never;

/** Members that are undefined are not sent. */
export type Loose<T> = { readonly [K in keyof T]: T[K] | undefined };
type Body<O> = O extends { requestBody: { content: { 'application/json': infer B } } }
  ? null extends B
    ? { readonly body?: Loose<NonNullable<B>> | undefined }
    : { readonly body: Loose<B> }
  : unknown;
type Parameters<O> = O extends { parameters: infer P extends { path?: unknown; query?: unknown } }
  ? Pick<P, 'path'> & { readonly [K in keyof Pick<P, 'query'>]: Loose<P[K]> }
  : never;
type HeaderOf<O> = O extends { parameters: { header?: infer H } }
  ? [NonNullable<H>] extends [never]
    ? never
    : keyof NonNullable<H>
  : never;
type Etag<O> = 'if-match' extends HeaderOf<O> ? { readonly etag?: string | undefined } : unknown;
type Input<O> = Parameters<O> & Body<O> & Etag<O> & { readonly timeoutMs?: number };
/** An operation that needs no input may be called without. */
type Arguments<P extends ApiPath, M extends Method> =
  Record<never, never> extends Input<Operation<P, M>>
    ? [input?: Input<Operation<P, M>>]
    : [input: Input<Operation<P, M>>];

type Call<M extends Method, Paths extends ApiPath = PathOf<M>> = <P extends Paths>(
  path: P,
  ...input: Arguments<P, M>
) => Promise<Resource<Answer<P, M>>>;

export type ItemOf<P extends ApiPath> = Answer<P, 'get'> extends { items: readonly (infer I)[] } ? I : never;
export type GetPath = PathOf<'get'>;
/** The paths that take an Idempotency-Key. */
type CreationPath = {
  [P in PathOf<'post'>]: 'idempotency-key' extends HeaderOf<Operation<P, 'post'>> ? P : never;
}[PathOf<'post'>];
/** The paths of lists. */
export type ListPath = { [P in PathOf<'get'>]: [ItemOf<P>] extends [never] ? never : P }[PathOf<'get'>];
type ListCall = <P extends ListPath>(path: P, ...input: Arguments<P, 'get'>) => Promise<readonly ItemOf<P>[]>;

/** What each method does: {@link ControlClient}. */
export interface ControlApi {
  readonly get: Call<'get'>;
  readonly list: ListCall;
  readonly page: ListCall;
  readonly create: Call<'post', CreationPath>;
  readonly act: Call<'post'>;
  readonly put: Call<'put'>;
  readonly patch: Call<'patch'>;
  readonly remove: Call<'delete'>;
  /** For paths that are known only at run time. Their answers have no type. */
  readonly untyped: ControlClient;
}

export function typed(client: ControlClient): ControlApi {
  return Object.assign(client as unknown as ControlApi, { untyped: client });
}
