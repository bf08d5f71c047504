/**
 * Requests are taken apart strictly: JSON that names no member twice, schemas without unknown members, nothing
 * coerced but the numbers of a query or path, nothing removed. What does not fit is told fault by fault, and without
 * the values, which may be secrets in the wrong place.
 */
import { hash } from 'node:crypto';
import type { FastifyRequest, FastifySchema, RouteOptions } from 'fastify';
import Type, { type TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import type { TLocalizedValidationError } from 'typebox/error';
import type { Fault } from '../../api-contract/problem-contract.ts';
import { isJsonObject, parseStrictJson, StrictJsonError } from '../../protocol/strict-json.ts';
import { Refusal } from '../domain/refusal.ts';

const MAX_FAULTS = 20;

/** The request, or a part of it, is not shaped as its route says. */
export class RequestShapeError extends Error {
  override readonly name = 'RequestShapeError';
  readonly faults: readonly Fault[];

  constructor(faults: readonly Fault[]) {
    super('the request is not of the expected shape');
    this.faults = faults;
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** SHA-256 of the body as it was sent, base64url. */
    bodyHash: string;
  }
}

export const NO_BODY_HASH = hash('sha256', '', 'base64url');

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Parser of `application/json`. An empty body is none. */
export async function parseJsonBody(request: FastifyRequest, body: Buffer): Promise<unknown> {
  if (body.length === 0) return undefined;
  request.bodyHash = hash('sha256', body, 'base64url');
  try {
    return parseStrictJson(utf8.decode(body));
  } catch (error) {
    const reason = error instanceof StrictJsonError ? error.message.slice(0, 200) : 'not UTF-8';
    throw new RequestShapeError([{ pointer: '/body', reason }]);
  }
}

/** Parts of a request that a route may describe. */
type Part = 'body' | 'querystring' | 'params' | 'headers';
const POINTER_ROOT: { readonly [part: string]: string } = {
  body: '/body',
  querystring: '/query',
  params: '/path',
  headers: '/headers',
};

/** Fastify's validator compiler. */
export function compileValidator({ schema, httpPart }: { schema: TSchema; httpPart?: string }) {
  const compiled = Compile(schema);
  const part: Part =
    httpPart === 'body' || httpPart === 'params' || httpPart === 'headers' ? httpPart : 'querystring';
  const numbers = part === 'body' ? [] : integerMembers(schema);
  return (given: unknown): { value: unknown } | { error: Error } => {
    const value = numbers.length === 0 ? given : withNumbers(given, numbers);
    const root = POINTER_ROOT[part] ?? '';
    if (!compiled.Check(value))
      return { error: new RequestShapeError(faultsOf(compiled.Errors(value), root)) };
    const faults = textFaults(value, root);
    return faults.length === 0 ? { value } : { error: new RequestShapeError(faults.slice(0, MAX_FAULTS)) };
  };
}

/** Half a surrogate pair has no UTF-8, so a database would keep another text; U+0000 PostgreSQL cannot keep at all. */
function isStorable(text: string): boolean {
  return !/\p{Surrogate}/u.test(text) && !text.includes('\u0000');
}

/** Of a value that has its schema's shape, and so its depth. */
function textFaults(value: unknown, at: string): readonly Fault[] {
  if (typeof value === 'string') {
    return isStorable(value) ? [] : [{ pointer: at, reason: 'must be well-formed Unicode without U+0000' }];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const pointer = `${at}/${pointerStep(name)}`;
    return [...textFaults(name, pointer), ...textFaults(member, pointer)];
  });
}

function integerMembers(schema: TSchema): readonly string[] {
  const properties = 'properties' in schema && isJsonObject(schema.properties) ? schema.properties : {};
  return Object.entries(properties).flatMap(([name, member]) =>
    isJsonObject(member) && member.type === 'integer' ? [name] : [],
  );
}

const WHOLE_NUMBER = /^(?:0|[1-9][0-9]{0,15})$/;

/** Queries and paths hold text; a whole number in its one spelling is a number. */
function withNumbers(given: unknown, names: readonly string[]): unknown {
  if (!isJsonObject(given)) return given;
  const value: Record<string, unknown> = { ...given };
  for (const name of names) {
    const text = value[name];
    if (typeof text === 'string' && WHOLE_NUMBER.test(text)) value[name] = Number(text);
  }
  return value;
}

function faultsOf(errors: readonly TLocalizedValidationError[], root: string): readonly Fault[] {
  const faults = new Map<string, Fault>();
  for (const error of errors) {
    for (const fault of faultsOfError(error, root)) {
      if (faults.size < MAX_FAULTS && !faults.has(fault.pointer)) faults.set(fault.pointer, fault);
    }
  }
  if (faults.size === 0) return [{ pointer: root, reason: 'not of the expected shape' }];
  return [...faults.values()];
}

function faultsOfError(error: TLocalizedValidationError, root: string): readonly Fault[] {
  const at = root + error.instancePath;
  switch (error.keyword) {
    case 'boolean':
      // Comes beside each additionalProperties.
      return [];
    case 'additionalProperties':
      return error.params.additionalProperties.map((name) => ({
        pointer: `${at}/${pointerStep(name)}`,
        reason: 'unknown member',
      }));
    case 'required':
      return error.params.requiredProperties.map((name) => ({
        pointer: `${at}/${pointerStep(name)}`,
        reason: 'missing',
      }));
    case 'enum':
      return [{ pointer: at, reason: `must be ${error.params.allowedValues.map(String).join(' or ')}` }];
    default:
      return [{ pointer: at, reason: error.message }];
  }
}

const MAX_SHOWN_NAME = 64;

/** RFC 6901 section 3; a name that a client chose is cut short. */
function pointerStep(name: string): string {
  return name.slice(0, MAX_SHOWN_NAME).replaceAll('~', '~0').replaceAll('/', '~1');
}

/** A query that a route does not describe must be empty. */
const NO_QUERY = Type.Object({}, { additionalProperties: false });

/** At registration: every route is strict about what it does not describe. */
export function completeSchema(route: RouteOptions): void {
  const schema: FastifySchema = route.schema ?? {};
  route.schema = { ...schema, querystring: schema.querystring ?? NO_QUERY };
}

/** A body that a route does not describe must not be there. */
export async function refuseUnexpectedBody(request: FastifyRequest): Promise<void> {
  if (request.is404 || request.body === undefined || request.body === null) return;
  if (request.routeOptions.schema?.body !== undefined) return;
  throw new RequestShapeError([{ pointer: '/body', reason: 'this request takes no body' }]);
}

/**
 * Fastify's serializer compiler: an answer holds what its schema names, or it is not given. A fault here is ours.
 */
export function compileSerializer({ schema }: { schema: unknown }): (data: unknown) => string {
  if (!isSchema(schema)) return (data) => JSON.stringify(data);
  const compiled = Compile(schema);
  return (data) => {
    if (!compiled.Check(data)) throw new AnswerShapeError(faultsOf(compiled.Errors(data), ''));
    return JSON.stringify(data);
  };
}

/** An answer is not what its route promises; told to nobody but the log. */
export class AnswerShapeError extends Error {
  override readonly name = 'AnswerShapeError';
  readonly faults: readonly Fault[];

  constructor(faults: readonly Fault[]) {
    super('an answer is not of the promised shape');
    this.faults = faults;
  }
}

function isSchema(value: unknown): value is TSchema {
  return isJsonObject(value);
}

/** A place that cannot be: for routes whose parameters are checked already. */
export function textOf(record: unknown, name: string): string {
  const value = isJsonObject(record) ? record[name] : undefined;
  if (typeof value !== 'string') throw new Refusal('not_found');
  return value;
}
