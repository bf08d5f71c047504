/**
 * Registers the routes of a resource from one declaration. An operation declares its name and the service call. Access,
 * versions, idempotency keys, pages and status codes work alike for every resource. Source: docs/operate/control-api.md "API".
 *
 * ```ts
 * registerResource(app, {
 *   tags: ['Widgets'],
 *   view: WIDGET,
 *   permission: 'operate',
 *   collection: { url: '/v1/sites/:site_id/widgets', params: SITE_PATH, place: siteInPath },
 *   item: { url: '/v1/widgets/:widget_id', params: WIDGET_PATH, place: widgetInPath },
 *   list: { operationId: 'listWidgets', summary: '…', page: 'WidgetPage', cursorOf: …, run: … },
 *   get: { operationId: 'getWidget', summary: '…', run: ({ widget_id: id }) => widgets.get(id) },
 * });
 * ```
 */
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema } from 'fastify';
import type { Static, TObject, TProperties, TSchema } from 'typebox';
import { nothing, parameters, REASON } from '../../process/http-service/members-contract.ts';
import type { ProblemCode } from '../domain/api-problem.ts';
import { type Permission, type Reach, reachOf } from '../domain/roles.ts';
import type { Created, Operation } from '../resource/operation.ts';
import type { RangedPage } from '../store/repositories/ranged-list.ts';
import type { Page } from '../store/repositories/records.ts';
import { principalOf, type ScopePathOf } from './api-access.ts';
import { PAGE_MEMBERS, type PageQuery, page, pageOf } from './pagination.ts';
import {
  expectedVersion,
  IDEMPOTENCY_KEY,
  IF_MATCH,
  operationOf,
  optionalVersion,
  sendCreated,
  sendVersioned,
  tagged,
} from './versions.ts';

/** A path of the API, its parameters, and the place of the resource. */
interface ResourcePath<P extends TProperties> {
  readonly url: string;
  readonly params: P;
  readonly place: ScopePathOf;
  /** Error code when the resource does not exist or the operator may not read it. Default: `not_found`. */
  readonly absent?: ProblemCode;
}

/** Description of an operation in the OpenAPI document. */
interface Described {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  /** Without the codes of idempotency keys and versions. */
  readonly problems?: readonly ProblemCode[];
  /** Whether the body of a change contains its reason. By default a query parameter does. */
  readonly isReasonInBody?: true;
}

type Values<P extends TProperties> = Static<TObject<P>>;

interface Listed<V> extends Described {
  /** Name of the page's schema. */
  readonly page: string;
  /** An item's position in the order of the list. */
  readonly cursorOf: (item: V) => string;
}

interface ListOperation<P extends TProperties, V, F extends TProperties> extends Listed<V> {
  /** Query parameters beside those of every list. */
  readonly filter?: F;
  readonly run: (params: Values<P>, page: Page, filter: Values<F>) => Promise<RangedPage<V>>;
}

/** A list of everything that the operator may read, across all sites. */
interface ReachedListOperation<V, F extends TProperties> extends Listed<V> {
  readonly url: string;
  /** Query parameters beside those of every list. */
  readonly filter?: F;
  readonly run: (reach: Reach, page: Page, filter: Values<F>) => Promise<RangedPage<V>>;
}

interface CreateOperation<P extends TProperties, V extends object, B extends TSchema> extends Described {
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

interface GetOperation<P extends TProperties, V> extends Described {
  /** Parts of the view change without a new version, so that the response is never 304. */
  readonly isLive?: boolean;
  readonly run: (params: Values<P>) => Promise<V>;
}

interface ChangeOperation<P extends TProperties, V, B extends TSchema> extends Described {
  readonly method: 'PATCH' | 'PUT';
  readonly body: B;
  readonly run: (operation: Operation, params: Values<P>, version: number, body: Static<B>) => Promise<V>;
}

/** Creates without If-Match, changes with it. */
interface PutOperation<P extends TProperties, V, B extends TSchema> extends Described {
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

interface RemoveOperation<P extends TProperties> extends Described {
  readonly run: (operation: Operation, params: Values<P>, version: number) => Promise<unknown>;
}

/** A view of the resource below its path, without versions. */
interface ReadOperation<P extends TProperties, A extends TSchema, Q extends TProperties> extends Described {
  /** Appended to the resource's path; empty for the path itself. */
  readonly below: string;
  readonly answer: A;
  /** Query parameters. */
  readonly query?: Q;
  readonly run: (params: Values<P>, query: Values<Q>) => Promise<Static<A>>;
}

/** Removes an unversioned resource. */
interface WithdrawOperation<P extends TProperties> extends Described {
  readonly run: (operation: Operation, params: Values<P>) => Promise<unknown>;
}

/** An action on a resource other than changing its members: `POST <url>/<verb>`. */
interface ActionOperation<P extends TProperties, B extends TSchema> extends Described {
  readonly verb: string;
  /** Whether it takes If-Match, which `run` reads. Default: no. */
  readonly ifMatch?: 'required' | 'optional';
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

interface ResourceBasics<I extends TProperties> {
  readonly tags: readonly string[];
  readonly view: TSchema;
  /** Permission that changing the resource requires. */
  readonly permission: Permission;
  /** Maximum body size in bytes. Default: that of every route. */
  readonly bodyLimit?: number;
  readonly item: ResourcePath<I>;
}

interface Resource<
  C extends TProperties,
  I extends TProperties,
  V extends TSchema,
  F extends TProperties,
  N extends TSchema,
  B extends TSchema,
  G extends TProperties,
> extends ResourceBasics<I> {
  readonly view: V;
  readonly collection?: ResourcePath<C>;
  readonly create?: CreateOperation<C, Static<V> & object, N>;
  readonly list?: ListOperation<C, Static<V>, F>;
  readonly listReached?: ReachedListOperation<Static<V>, G>;
  readonly get?: GetOperation<I, Static<V>>;
  readonly put?: PutOperation<I, Static<V>, B>;
  readonly change?: ChangeOperation<I, Static<V>, B>;
  readonly remove?: RemoveOperation<I>;
  readonly withdraw?: WithdrawOperation<I>;
}

/** In the order in which the OpenAPI document lists them. */
export function registerResource<
  C extends TProperties,
  I extends TProperties,
  V extends TSchema,
  F extends TProperties,
  N extends TSchema,
  B extends TSchema,
  G extends TProperties,
>(app: FastifyInstance, resource: Resource<C, I, V, F, N, B, G>): void {
  const { collection, create, list, listReached, get, put, change, remove, withdraw } = resource;
  if (collection !== undefined && create !== undefined) registerCreate(app, resource, collection, create);
  if (collection !== undefined && list !== undefined) registerList(app, resource, collection, list);
  if (listReached !== undefined) registerReachedList(app, resource, listReached);
  if (get !== undefined) registerGet(app, resource, get);
  if (put !== undefined) registerPut(app, resource, put);
  if (change !== undefined) registerChange(app, resource, change);
  if (remove !== undefined) registerRemove(app, resource, remove);
  if (withdraw !== undefined) registerWithdraw(app, resource, withdraw);
}

/** Registers one route with what all routes of a resource share: access, description, path parameters, body limit. */
function register(
  app: FastifyInstance,
  { tags, bodyLimit }: Pick<ResourceBasics<TProperties>, 'tags' | 'bodyLimit'>,
  { url, params, place, absent }: ResourcePath<TProperties>,
  described: Described,
  { method, permission, problems = [], schema, handler }: ResourceRoute,
): void {
  app.route({
    method,
    url,
    ...(schema.body === undefined || bodyLimit === undefined ? {} : { bodyLimit }),
    config: {
      access: { kind: 'operator', permission, place, ...(absent === undefined ? {} : { absent }) },
      problems,
    },
    schema: {
      ...documented(described, tags),
      ...(Object.keys(params).length === 0 ? {} : { params: parameters(params) }),
      ...(method === 'GET' || described.isReasonInBody === true ? {} : { querystring: parameters(REASON) }),
      ...schema,
    },
    handler,
  });
}

/** An operation in the OpenAPI document. */
function documented({ operationId, summary, description }: Described, tags: readonly string[]) {
  return { operationId, summary, ...(description === undefined ? {} : { description }), tags };
}

interface ResourceRoute {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly permission: Permission;
  readonly problems?: readonly ProblemCode[] | undefined;
  readonly schema: Pick<FastifySchema, 'body' | 'headers' | 'querystring' | 'response'>;
  readonly handler: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;
}

function registerCreate<P extends TProperties, I extends TProperties, V extends object, B extends TSchema>(
  app: FastifyInstance,
  resource: ResourceBasics<I>,
  path: ResourcePath<P>,
  create: CreateOperation<P, V, B>,
): void {
  const { run, body, answer = resource.view, location, problems = [] } = create;
  register(app, resource, path, create, {
    method: 'POST',
    permission: resource.permission,
    problems: [...problems, 'idempotency_conflict'],
    schema: { headers: IDEMPOTENCY_KEY, body, response: { 201: answer } },
    handler: async (request, reply) => {
      const created = await run(operationOf(request), paramsOf(request), bodyOf(request), request);
      return sendCreated(reply, created, location);
    },
  });
}

function registerList<P extends TProperties, I extends TProperties, V, F extends TProperties>(
  app: FastifyInstance,
  resource: ResourceBasics<I>,
  path: ResourcePath<P>,
  list: ListOperation<P, V, F>,
): void {
  const { run, filter, cursorOf, problems } = list;
  register(app, resource, path, list, {
    method: 'GET',
    permission: 'read',
    problems,
    schema: {
      querystring: parameters({ ...PAGE_MEMBERS, ...filter }),
      response: { 200: pageOf(resource.view, list.page) },
    },
    handler: (request) => {
      const query = request.query as PageQuery & Values<F>;
      return page(query, (asked) => run(paramsOf(request), asked, query), cursorOf, itself);
    },
  });
}

function registerReachedList<I extends TProperties, V, F extends TProperties>(
  app: FastifyInstance,
  { tags, view }: ResourceBasics<I>,
  { url, run, filter, page: pageName, cursorOf, ...described }: ReachedListOperation<V, F>,
): void {
  app.get(
    url,
    {
      config: { access: { kind: 'signed_in' } },
      schema: {
        ...documented(described, tags),
        querystring: parameters({ ...PAGE_MEMBERS, ...filter }),
        response: { 200: pageOf(view, pageName) },
      },
    },
    (request) => {
      const reach = reachOf(principalOf(request).roles, 'read');
      const query = request.query as PageQuery & Values<F>;
      return page(query, (asked) => run(reach, asked, query), cursorOf, itself);
    },
  );
}

/** A read of the resource, or of a view below its path, which has no version of its own. */
export function registerRead<P extends TProperties, A extends TSchema, Q extends TProperties>(
  app: FastifyInstance,
  resource: Pick<ResourceBasics<P>, 'tags' | 'item'>,
  read: ReadOperation<P, A, Q>,
): void {
  const { below, answer, query, run, problems } = read;
  register(app, resource, { ...resource.item, url: `${resource.item.url}${below}` }, read, {
    method: 'GET',
    permission: 'read',
    problems,
    schema: {
      ...(query === undefined ? {} : { querystring: parameters(query) }),
      response: { 200: answer },
    },
    handler: (request) => run(paramsOf(request), request.query as Values<Q>),
  });
}

function registerGet<P extends TProperties, V>(
  app: FastifyInstance,
  resource: ResourceBasics<P>,
  get: GetOperation<P, V>,
): void {
  const { run, isLive = false, problems } = get;
  register(app, resource, resource.item, get, {
    method: 'GET',
    permission: 'read',
    problems,
    schema: { response: isLive ? { 200: resource.view } : { 200: resource.view, 304: nothing } },
    handler: async (request, reply) => {
      const found = await run(paramsOf(request));
      return isLive ? tagged(reply, found) : sendVersioned(request, reply, found);
    },
  });
}

function registerPut<P extends TProperties, V, B extends TSchema>(
  app: FastifyInstance,
  resource: ResourceBasics<P>,
  put: PutOperation<P, V, B>,
): void {
  const { run, body, isUnversioned = false, problems = [] } = put;
  register(app, resource, resource.item, put, {
    method: 'PUT',
    permission: resource.permission,
    problems: isUnversioned ? problems : [...VERSION_PROBLEMS, ...problems],
    schema: {
      ...(isUnversioned ? {} : { headers: IF_MATCH }),
      body,
      response: { 200: resource.view, 201: resource.view },
    },
    handler: async (request, reply) => {
      const version = isUnversioned ? undefined : optionalVersion(request);
      const { created, view } = await run(operationOf(request), paramsOf(request), version, bodyOf(request));
      reply.code(created ? 201 : 200);
      return tagged(reply, view);
    },
  });
}

function registerChange<P extends TProperties, V, B extends TSchema>(
  app: FastifyInstance,
  resource: ResourceBasics<P>,
  change: ChangeOperation<P, V, B>,
): void {
  const { run, method, body, problems = [] } = change;
  register(app, resource, resource.item, change, {
    method,
    permission: resource.permission,
    problems: [...VERSION_PROBLEMS, ...problems],
    schema: { headers: IF_MATCH, body, response: { 200: resource.view } },
    handler: async (request, reply) => {
      const version = expectedVersion(request);
      return tagged(reply, await run(operationOf(request), paramsOf(request), version, bodyOf(request)));
    },
  });
}

function registerRemove<P extends TProperties>(
  app: FastifyInstance,
  resource: ResourceBasics<P>,
  remove: RemoveOperation<P>,
): void {
  register(app, resource, resource.item, remove, {
    method: 'DELETE',
    permission: resource.permission,
    problems: [...VERSION_PROBLEMS, ...(remove.problems ?? [])],
    schema: { headers: IF_MATCH, response: { 204: nothing } },
    handler: async (request, reply) => {
      await remove.run(operationOf(request), paramsOf(request), expectedVersion(request));
      return reply.code(204).send(null);
    },
  });
}

function registerWithdraw<P extends TProperties>(
  app: FastifyInstance,
  resource: ResourceBasics<P>,
  withdraw: WithdrawOperation<P>,
): void {
  register(app, resource, resource.item, withdraw, {
    method: 'DELETE',
    permission: resource.permission,
    problems: withdraw.problems,
    schema: { response: { 204: nothing } },
    handler: async (request, reply) => {
      await withdraw.run(operationOf(request), paramsOf(request));
      return reply.code(204).send(null);
    },
  });
}

export function registerAction<P extends TProperties, B extends TSchema>(
  app: FastifyInstance,
  resource: ResourceBasics<P>,
  action: ActionOperation<P, B>,
): void {
  const { run, verb, ifMatch, body, answer = resource.view, problems = [] } = action;
  const versionProblems = { required: VERSION_PROBLEMS, optional: ['precondition_failed'] as const };
  register(app, resource, { ...resource.item, url: `${resource.item.url}/${verb}` }, action, {
    method: 'POST',
    permission: resource.permission,
    problems: ifMatch === undefined ? problems : [...versionProblems[ifMatch], ...problems],
    schema: {
      ...(ifMatch === undefined ? {} : { headers: IF_MATCH }),
      ...(body === undefined ? {} : { body }),
      response: { 200: answer },
    },
    handler: async (request, reply) =>
      tagged(reply, await run(operationOf(request), paramsOf(request), bodyOf(request), request)),
  });
}

const VERSION_PROBLEMS: readonly ProblemCode[] = ['precondition_required', 'precondition_failed'];

/** Fastify has checked both with the route's own schemas. */
function paramsOf<P extends TProperties>({ params }: FastifyRequest): Values<P> {
  return params as Values<P>;
}

function bodyOf<B extends TSchema>({ body }: FastifyRequest): Static<B> {
  return body as Static<B>;
}

const itself = <V>(item: V): V => item;
