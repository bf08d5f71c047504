/**
 * Reads the operations of an OpenAPI 3.0 or 3.1 document: paths, methods, servers, and references among them. It reads
 * no schema, no other file and no network. A parser library would resolve all references, where a cycle in a schema or
 * the size of a document costs most, and could fetch what a document names.
 * Source: OpenAPI Specification 3.1.1, sections 4.8.5 (server), 4.8.8 (paths) and 4.8.9 (path item).
 */
import { usageError } from '../../../process/program/errors.ts';
import { isJsonObject, type JsonObject, readStrictJson } from '../../../protocol/strict-json.ts';
import { parseStrictYaml, StrictYamlError } from '../../../protocol/strict-yaml.ts';
import { pointer, showValue } from '../../format/bundle-error.ts';
import { MAX_ROUTES } from '../../format/bundle-limits.ts';
import { type ApiServer, readServers } from './servers.ts';

/** Maximum size of a document's file. The largest public ones are about 15 MiB. */
export const MAX_DOCUMENT_BYTES = 16 * 1024 * 1024;
const MAX_YAML_TOKENS = 2_000_000;
const JSON_LIMITS = { maxDepth: 200, maxMembers: 2_000_000 };
/** Maximum number of objects to read, counted anew where a reference leads to them again. */
const MAX_READ = 2_000_000;
/** Maximum number of references from one to the next. */
const MAX_REFERENCES = 16;

export interface ApiOperation {
  /** Upper case. */
  readonly method: string;
  /** As in `paths`: without the path of a server. */
  readonly path: string;
  readonly operationId: string | undefined;
  /** The first one. */
  readonly tag: string | undefined;
  /** At least one: its own, the path's or the document's. */
  readonly servers: readonly ApiServer[];
  /** Names of path parameters with the style `matrix`, whose values begin with `;`. */
  readonly matrixParameters: readonly string[];
}

export interface ApiDocument {
  readonly title: string;
  /** Of OpenAPI, such as `3.1.0`. */
  readonly format: string;
  readonly servers: readonly ApiServer[];
  readonly operations: readonly ApiOperation[];
}

export interface ReadOptions {
  /** Name of the file, for errors. */
  readonly file: string;
  /** Replaces the path of every server: begins with `/` and does not end with it, or is empty. */
  readonly prefix: string | undefined;
}

/** @throws CliError `openapi_invalid`, `openapi_unsupported`, `openapi_reference`, `openapi_too_large` */
export function readApiDocument(text: string, options: ReadOptions): ApiDocument {
  const root = parseText(text.replace(/^\uFEFF/, ''), options.file);
  return new DocumentReader(root, options).read();
}

function parseText(text: string, file: string): JsonObject {
  const value = text.trimStart().startsWith('{') ? parseJson(text, file) : parseYaml(text, file);
  if (!isJsonObject(value)) throw usageError('openapi_invalid', `${file}: not an OpenAPI document`);
  return value;
}

function parseJson(text: string, file: string): unknown {
  const read = readStrictJson(text, JSON_LIMITS);
  switch (read.kind) {
    case 'read':
      return read.value;
    case 'beyond':
      throw usageError('openapi_too_large', `${file}: nested too deep, or more than 2,000,000 members`);
    case 'duplicate':
      throw usageError(
        'openapi_invalid',
        `${file}: the member ${showValue(read.member)} occurs twice in one object: remove one`,
      );
    case 'invalid':
      throw usageError('openapi_invalid', `${file}: begins like JSON and is not valid JSON`);
  }
}

function parseYaml(text: string, file: string): unknown {
  try {
    return parseStrictYaml(text, { scalarNames: true, maxTokens: MAX_YAML_TOKENS });
  } catch (error) {
    if (!(error instanceof StrictYamlError)) throw error;
    throw usageError('openapi_invalid', `${file}: ${error.message}`);
  }
}

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'] as const;

class DocumentReader {
  readonly #root: JsonObject;
  readonly #file: string;
  readonly #prefix: string | undefined;
  readonly #serverLists = new Map<unknown, readonly ApiServer[] | undefined>();
  #read = 0;

  constructor(root: JsonObject, { file, prefix }: ReadOptions) {
    this.#root = root;
    this.#file = file;
    this.#prefix = prefix;
  }

  read(): ApiDocument {
    const format = member(this.#root, 'openapi');
    if (typeof format !== 'string' || !/^3\.[01](?:\.|$)/.test(format)) {
      const found = format ?? member(this.#root, 'swagger');
      const text =
        found === undefined ? 'has no member openapi' : `is of version ${showValue(found)}: convert it`;
      throw usageError('openapi_unsupported', `${this.#file}: ${text}; only OpenAPI 3.0 and 3.1 can be read`);
    }
    const info = member(this.#root, 'info');
    const title = isJsonObject(info) ? member(info, 'title') : undefined;
    const servers = this.#servers(this.#root, '#') ?? [{ origin: undefined, basePath: this.#prefix ?? '' }];
    return {
      title: typeof title === 'string' ? title : this.#file,
      format,
      servers,
      operations: this.#operations(servers),
    };
  }

  #operations(servers: readonly ApiServer[]): readonly ApiOperation[] {
    // OpenAPI 3.1 allows documents without paths.
    const paths = this.#object(member(this.#root, 'paths') ?? {}, '#/paths');
    const operations: ApiOperation[] = [];
    for (const [path, item] of Object.entries(paths)) {
      if (path.startsWith('x-')) continue;
      operations.push(...this.#operationsOf(path, item, servers));
      if (operations.length > MAX_ROUTES) {
        throw usageError('openapi_too_large', `${this.#file}: more than ${MAX_ROUTES} operations`);
      }
    }
    return operations;
  }

  #operationsOf(path: string, item: unknown, inherited: readonly ApiServer[]): readonly ApiOperation[] {
    const place = `#${pointer('paths', path)}`;
    const levels = this.#resolve(item ?? {}, place);
    const find = (name: string) => firstOf(levels, name);
    const servers = this.#serverList(find('servers'), place) ?? inherited;
    const shared = this.#matrixParameters(find('parameters'), place);
    return METHODS.flatMap((method) => {
      const value = find(method);
      if (value === undefined) return [];
      const operation = this.#object(value, `${place}/${method}`);
      const own = this.#matrixParameters(member(operation, 'parameters'), `${place}/${method}`);
      const id = member(operation, 'operationId');
      const tags = member(operation, 'tags');
      const tag: unknown = Array.isArray(tags) ? tags[0] : undefined;
      return {
        method: method.toUpperCase(),
        path,
        operationId: typeof id === 'string' ? id : undefined,
        tag: typeof tag === 'string' ? tag : undefined,
        servers: this.#servers(operation, `${place}/${method}`) ?? servers,
        matrixParameters: [...shared, ...own],
      };
    });
  }

  #servers(owner: JsonObject, place: string): readonly ApiServer[] | undefined {
    return this.#serverList(member(owner, 'servers'), place);
  }

  #serverList(value: unknown, place: string): readonly ApiServer[] | undefined {
    if (this.#serverLists.has(value)) return this.#serverLists.get(value);
    const servers = readServers(value, `${this.#file}: ${place}/servers`, this.#prefix);
    this.#serverLists.set(value, servers);
    return servers;
  }

  #matrixParameters(parameters: unknown, place: string): readonly string[] {
    if (!Array.isArray(parameters)) return [];
    return parameters.flatMap((entry, index) => {
      const levels = this.#resolve(entry, `${place}/parameters/${index}`);
      const find = (name: string) => firstOf(levels, name);
      const name = find('name');
      return find('in') === 'path' && find('style') === 'matrix' && typeof name === 'string' ? [name] : [];
    });
  }

  /** The value, then what it refers to, and so on. */
  #resolve(value: unknown, place: string): readonly JsonObject[] {
    const levels: JsonObject[] = [];
    const seen = new Set<string>();
    let next = value;
    for (;;) {
      const level = this.#object(next, place);
      levels.push(level);
      const reference = member(level, '$ref');
      if (reference === undefined) return levels;
      if (typeof reference !== 'string' || !reference.startsWith('#')) {
        const text = `refers to ${showValue(reference)}: put all into one file first; no other file is read`;
        throw usageError('openapi_reference', `${this.#file}: ${place} ${text}`);
      }
      if (seen.has(reference) || seen.size === MAX_REFERENCES) {
        const text = `${showValue(reference)} leads in a circle, or over more than ${MAX_REFERENCES} others`;
        throw usageError('openapi_reference', `${this.#file}: ${place}: ${text}`);
      }
      seen.add(reference);
      next = this.#find(reference, place);
    }
  }

  /** @param reference a JSON Pointer as a fragment (RFC 6901 section 6) */
  #find(reference: string, place: string): unknown {
    let value: unknown = this.#root;
    for (const step of decodedSteps(reference)) {
      if (Array.isArray(value)) value = value[Number(step)];
      else value = isJsonObject(value) ? member(value, step) : undefined;
    }
    if (value !== undefined) return value;
    throw usageError(
      'openapi_reference',
      `${this.#file}: ${place} refers to ${showValue(reference)}, which is not in the file`,
    );
  }

  #object(value: unknown, place: string): JsonObject {
    if (++this.#read > MAX_READ) {
      throw usageError('openapi_too_large', `${this.#file}: more than ${MAX_READ} objects to read`);
    }
    if (!isJsonObject(value)) {
      throw usageError('openapi_invalid', `${this.#file}: ${place} must be an object`);
    }
    if (Object.hasOwn(value, '<<')) {
      throw usageError('openapi_invalid', `${this.#file}: ${place}: merge keys (<<) are not supported`);
    }
    return value;
  }
}

/** Only own members: names come from the document. */
function member(object: JsonObject, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

function firstOf(levels: readonly JsonObject[], name: string): unknown {
  return levels.map((level) => member(level, name)).find((value) => value !== undefined);
}

function decodedSteps(reference: string): readonly string[] {
  const text = reference.slice(1);
  if (text === '') return [];
  try {
    const steps = decodeURIComponent(text).split('/').slice(1);
    return steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  } catch {
    return [text];
  }
}
