/**
 * Strict validation of requests and responses: JSON without duplicate members, closed schemas, nothing removed, and no
 * coercion except numbers in a query or path. Faults are listed one by one, without values, which may be misplaced secrets.
 */
import { hash } from 'node:crypto';
import type { FastifyRequest, FastifySchema, RouteOptions } from 'fastify';
import Type, { type TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import type { TLocalizedValidationError } from 'typebox/error';
import Format from 'typebox/format';
import { isJsonObject, parseStrictJson, StrictJsonError } from '../../protocol/strict-json.ts';
import { DISPLAY_TEXT_PATTERN, DISPLAY_TEXT_RULE, type Fault } from './members-contract.ts';
import { nearestName } from './nearest-name.ts';

const MAX_FAULTS = 20;

/** Leap seconds and names of time zones have this form, and are no time that a program can compare. */
Format.Set('date-time', (text) => Format.IsDateTime(text) && !Number.isNaN(Date.parse(text)));

/** The request, or a part of it, does not match the route's schema. */
export class RequestShapeError extends Error {
  override readonly name = 'RequestShapeError';
  readonly faults: readonly Fault[];

  constructor(faults: readonly Fault[]) {
    super('the request does not match the schema');
    this.faults = faults;
  }
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The handler gets the body's bytes and validates them itself, because parsing a large body would block all other
     * work.
     */
    isBodyParsedLater?: boolean;
  }
  interface FastifyRequest {
    /** SHA-256 of the body bytes, base64url. */
    bodyHash: string;
  }
}

export const NO_BODY_HASH = hash('sha256', '', 'base64url');

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Parser of `application/json`. An empty body counts as no body. */
export async function parseJsonBody(request: FastifyRequest, body: Buffer): Promise<unknown> {
  if (body.length === 0) return undefined;
  request.bodyHash = hash('sha256', body, 'base64url');
  return request.routeOptions.config.isBodyParsedLater === true ? body : parseJson(body);
}

/** @throws RequestShapeError */
export function parseJson(body: Uint8Array): unknown {
  try {
    return parseStrictJson(utf8.decode(body));
  } catch (error) {
    const reason = error instanceof StrictJsonError ? error.message.slice(0, 200) : 'not UTF-8';
    throw new RequestShapeError([{ pointer: '/body', reason }]);
  }
}

/** Parts of a request that a route can have a schema for. */
type Part = 'body' | 'querystring' | 'params' | 'headers';
const POINTER_ROOT: { readonly [part: string]: string } = {
  body: '/body',
  querystring: '/query',
  params: '/path',
  headers: '/headers',
};

/** Compiles at the first use, because compiling most of the schemas takes a fifth of the start-up time. */
function whenNeeded(schema: TSchema): () => Validator {
  let validator: Validator | undefined;
  return () => {
    validator ??= Compile(schema);
    return validator;
  };
}

/** For routes that parse their body later. */
export function compileAllButBody(route: { schema: TSchema; httpPart?: string }) {
  return route.httpPart === 'body' ? (value: unknown) => ({ value }) : compileValidator(route);
}

/** Fastify's validator compiler. */
export function compileValidator({ schema, httpPart }: { schema: TSchema; httpPart?: string }) {
  const validator = whenNeeded(schema);
  const part: Part =
    httpPart === 'body' || httpPart === 'params' || httpPart === 'headers' ? httpPart : 'querystring';
  const numbers = part === 'body' ? [] : integerMembers(schema);
  return (given: unknown): { value: unknown } | { error: Error } => {
    const value = numbers.length === 0 ? given : withNumbers(given, numbers);
    const root = POINTER_ROOT[part] ?? '';
    if (!validator().Check(value))
      return { error: new RequestShapeError(faultsOf(validator().Errors(value), root, schema)) };
    const faults = textFaults(value, root);
    return faults.length === 0 ? { value } : { error: new RequestShapeError(faults.slice(0, MAX_FAULTS)) };
  };
}

/** A lone surrogate has no UTF-8 encoding, so a database would store another text. PostgreSQL cannot store U+0000. */
function isStorable(text: string): boolean {
  return !/\p{Surrogate}/u.test(text) && !text.includes('\u0000');
}

/** The value has passed its schema, which bounds its depth. */
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

/** Converts query and path parameters to numbers. Only the canonical spelling of an integer counts. */
function withNumbers(given: unknown, names: readonly string[]): unknown {
  if (!isJsonObject(given)) return given;
  const value: Record<string, unknown> = { ...given };
  for (const name of names) {
    const text = value[name];
    if (typeof text === 'string' && WHOLE_NUMBER.test(text)) value[name] = Number(text);
  }
  return value;
}

function faultsOf(
  errors: readonly TLocalizedValidationError[],
  root: string,
  schema: TSchema,
): readonly Fault[] {
  const faults = new Map<string, Fault>();
  for (const error of errors) {
    if (faults.size >= MAX_FAULTS) break;
    for (const fault of faultsOfError(error, root, schema)) {
      if (!faults.has(fault.pointer)) faults.set(fault.pointer, fault);
    }
  }
  if (faults.size === 0) return [{ pointer: root, reason: 'does not match the schema' }];
  return [...faults.values()].slice(0, MAX_FAULTS);
}

function faultsOfError(error: TLocalizedValidationError, root: string, schema: TSchema): readonly Fault[] {
  const at = root + error.instancePath;
  switch (error.keyword) {
    case 'additionalProperties':
      // Repeats the errors of all members, of which a body may have thousands.
      return [];
    case 'boolean': {
      const end = at.lastIndexOf('/');
      const name = decodedStep(at.slice(end + 1));
      const meant = nearestName(name, membersAt(schema, error.schemaPath.replace(/\/[^/]*$/, '')));
      const advice = meant === undefined ? '' : `; did you mean ${meant}?`;
      return [{ pointer: `${at.slice(0, end)}/${pointerStep(name)}`, reason: `unknown member${advice}` }];
    }
    case 'required':
      return error.params.requiredProperties.map((name) => ({
        pointer: `${at}/${pointerStep(name)}`,
        reason: 'missing',
      }));
    case 'enum':
      return [{ pointer: at, reason: `must be ${error.params.allowedValues.map(String).join(' or ')}` }];
    case 'pattern': {
      const isDisplayText = String(error.params.pattern) === DISPLAY_TEXT_PATTERN;
      return [{ pointer: at, reason: isDisplayText ? DISPLAY_TEXT_RULE : error.message }];
    }
    default:
      return [{ pointer: at, reason: error.message }];
  }
}

/** Names of the members that the schema at a path, such as `#/properties/clients/items`, knows. */
function membersAt(schema: TSchema, path: string): readonly string[] {
  let at: unknown = schema;
  for (const step of path.split('/').slice(1)) {
    if (Array.isArray(at)) at = at[Number(step)];
    else if (isJsonObject(at)) at = at[decodedStep(step)];
  }
  return isJsonObject(at) && isJsonObject(at.properties) ? Object.keys(at.properties) : [];
}

const MAX_SHOWN_NAME = 64;

/** RFC 6901 section 3; truncates names that the client chose. */
function pointerStep(name: string): string {
  return name.slice(0, MAX_SHOWN_NAME).replaceAll('~', '~0').replaceAll('/', '~1');
}

function decodedStep(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** A route without a query schema accepts no query parameters. */
const NO_QUERY = Type.Object({}, { additionalProperties: false });

/** Completes a route's schema at registration, so that undeclared query parameters are rejected. */
export function completeSchema(route: RouteOptions): void {
  const schema: FastifySchema = route.schema ?? {};
  route.schema = { ...schema, querystring: schema.querystring ?? NO_QUERY };
}

/** Rejects a body on a route that declares none. */
export async function rejectUnexpectedBody(request: FastifyRequest): Promise<void> {
  if (request.is404 || request.body === undefined || request.body === null) return;
  if (request.routeOptions.schema?.body !== undefined) return;
  throw new RequestShapeError([{ pointer: '/body', reason: 'this request takes no body' }]);
}

/**
 * Fastify's serializer compiler: sends a response only if it matches its schema. A mismatch is a bug of ours.
 */
export function compileSerializer({ schema }: { schema: unknown }): (data: unknown) => string {
  if (!isSchema(schema)) return (data) => JSON.stringify(data);
  const validator = whenNeeded(schema);
  return (data) => {
    if (!validator().Check(data)) throw new AnswerShapeError(faultsOf(validator().Errors(data), '', schema));
    return JSON.stringify(data);
  };
}

/** A response does not match its route's schema. Only the log shows it. */
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
