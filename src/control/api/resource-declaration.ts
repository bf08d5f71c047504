/** Types with which a resource declares its operations; `resource-routes.ts` registers them as routes. */
import type { FastifyRequest } from 'fastify';
import type { Static, TObject, TProperties, TSchema } from 'typebox';
import type { ProblemCode } from '../domain/api-problem.ts';
import type { Permission, Reach } from '../domain/roles.ts';
import type { Created, Operation } from '../resource/operation.ts';
import type { Page } from '../store/repositories/records.ts';
import type { PlaceOf } from './api-access.ts';

/** A path of the API, its parameters, and the place of the resource. */
export interface ResourcePath<P extends TProperties> {
  readonly url: string;
  readonly params: P;
  readonly place: PlaceOf;
  /** Error code when the resource does not exist or the operator may not read it. Default: `not_found`. */
  readonly absent?: ProblemCode;
}

/** Description of an operation in the OpenAPI document. */
export interface Described {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  /** Without the codes of idempotency keys and versions. */
  readonly problems?: readonly ProblemCode[];
}

export type Values<P extends TProperties> = Static<TObject<P>>;

interface Listed<V> extends Described {
  /** Name of the page's schema. */
  readonly page: string;
  /** An item's position in the order of the list. */
  readonly cursorOf: (item: V) => string;
}

export interface ListOperation<P extends TProperties, V, F extends TProperties> extends Listed<V> {
  /** Query parameters beside those of every list. */
  readonly filter?: F;
  readonly run: (params: Values<P>, page: Page, filter: Values<F>) => Promise<readonly V[]>;
}

/** A list of everything that the operator may read, across all sites. */
export interface ReachedListOperation<V> extends Listed<V> {
  readonly url: string;
  readonly run: (reach: Reach, page: Page) => Promise<readonly V[]>;
}

export interface CreateOperation<P extends TProperties, V extends object, B extends TSchema>
  extends Described {
  readonly body: B;
  /** Schema of the response where it holds more than the resource, such as a secret that is shown once. */
  readonly answer?: TSchema;
  readonly location: (view: V) => string;
  readonly run: (
    operation: Operation,
    params: Values<P>,
    body: Static<B>,
    request: FastifyRequest,
  ) => Promise<Created<V, object>>;
}

export interface GetOperation<P extends TProperties, V> extends Described {
  /** Parts of the view change without a new version, so that the response is never 304. */
  readonly isLive?: boolean;
  readonly run: (params: Values<P>) => Promise<V>;
}

export interface ChangeOperation<P extends TProperties, V, B extends TSchema> extends Described {
  readonly method: 'PATCH' | 'PUT';
  readonly body: B;
  readonly run: (operation: Operation, params: Values<P>, version: number, body: Static<B>) => Promise<V>;
}

/** Creates without If-Match, changes with it. */
export interface PutOperation<P extends TProperties, V, B extends TSchema> extends Described {
  readonly body: B;
  /** The resource has no versions. */
  readonly isUnversioned?: boolean;
  readonly run: (
    operation: Operation,
    params: Values<P>,
    version: number | undefined,
    body: Static<B>,
  ) => Promise<{ readonly view: V; readonly created: boolean }>;
}

export interface RemoveOperation<P extends TProperties> extends Described {
  readonly run: (operation: Operation, params: Values<P>, version: number) => Promise<unknown>;
}

/** Removes an unversioned resource. */
export interface WithdrawOperation<P extends TProperties> extends Described {
  readonly run: (operation: Operation, params: Values<P>) => Promise<unknown>;
}

/** An action on a resource other than changing its members: `POST <url>/<verb>`. */
export interface ActionOperation<P extends TProperties, B extends TSchema> extends Described {
  readonly verb: string;
  readonly body?: B;
  /** Schema of the response where it is not the resource. */
  readonly answer?: TSchema;
  readonly run: (
    operation: Operation,
    params: Values<P>,
    body: Static<B>,
    request: FastifyRequest,
  ) => Promise<object>;
}

export interface ResourceBasics<I extends TProperties> {
  readonly tags: readonly string[];
  readonly view: TSchema;
  /** Permission that changing the resource requires. */
  readonly permission: Permission;
  /** Maximum body size in bytes. Default: that of every route. */
  readonly bodyLimit?: number;
  readonly item: ResourcePath<I>;
}

export interface Resource<
  C extends TProperties,
  I extends TProperties,
  V extends TSchema,
  F extends TProperties,
  N extends TSchema,
  B extends TSchema,
> extends ResourceBasics<I> {
  readonly view: V;
  readonly collection?: ResourcePath<C>;
  readonly create?: CreateOperation<C, Static<V> & object, N>;
  readonly list?: ListOperation<C, Static<V>, F>;
  readonly listReached?: ReachedListOperation<Static<V>>;
  readonly get?: GetOperation<I, Static<V>>;
  readonly put?: PutOperation<I, Static<V>, B>;
  readonly change?: ChangeOperation<I, Static<V>, B>;
  readonly remove?: RemoveOperation<I>;
  readonly withdraw?: WithdrawOperation<I>;
}
