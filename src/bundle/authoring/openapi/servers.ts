/**
 * Reads what routes need of `servers` in an OpenAPI document: origin and path of each URL.
 * Source: OpenAPI Specification 3.1.1, sections 4.8.5 and 4.8.6.
 */
import { type CliError, usageError } from '../../../process/program/errors.ts';
import { isJsonObject, type JsonObject } from '../../../protocol/strict-json.ts';
import { showValue } from '../../format/bundle-error.ts';

export interface ApiServer {
  /** `scheme://authority`; undefined for a URL that is only a path. */
  readonly origin: string | undefined;
  /** Begins with `/` and does not end with it, or is empty. */
  readonly basePath: string;
}

const MAX_SERVERS = 100;
const MAX_URL_CHARACTERS = 2000;
/** Maximum number of paths that one URL stands for: its variables' values in all combinations. */
const MAX_BASE_PATHS = 20;

/**
 * @param place for errors
 * @param prefix in place of the path of every URL
 * @returns undefined for a missing or empty list: then the servers of the level above apply
 * @throws CliError `openapi_invalid`, `openapi_too_large`
 */
export function readServers(
  value: unknown,
  place: string,
  prefix: string | undefined,
): readonly ApiServer[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) throw usageError('openapi_invalid', `${place} must be a list`);
  if (value.length === 0) return undefined;
  if (value.length > MAX_SERVERS) {
    throw usageError('openapi_too_large', `${place}: more than ${MAX_SERVERS} servers`);
  }
  return value.flatMap((server, index) => serversOf(server, `${place}/${index}`, prefix));
}

function serversOf(server: unknown, place: string, prefix: string | undefined): readonly ApiServer[] {
  const url = isJsonObject(server) ? server.url : undefined;
  if (!isJsonObject(server) || typeof url !== 'string') {
    throw usageError('openapi_invalid', `${place} has no url`);
  }
  if (url.length > MAX_URL_CHARACTERS) throw tooLong(place);
  const variables = isJsonObject(server.variables) ? server.variables : {};
  const [authority, path] = splitUrl(url);
  // The default of a variable beside the host may begin the path: https://api.example{basePath}
  const filled = authority.replace(/\{([^{}]*)\}/g, (found, name) => defaultOf(variables, name) ?? found);
  if (filled.length > MAX_URL_CHARACTERS) throw tooLong(place);
  const [start, rest] = splitUrl(filled + path);
  const urls = prefix === undefined ? pathsOf(rest, variables, place) : [rest];
  return urls.map((url) => {
    // A variable may stand for scheme, host and path.
    const [origin, own] = splitUrl(start + url);
    return {
      origin: /^https?:/i.test(origin) ? origin.toLowerCase() : undefined,
      basePath: prefix ?? checkedPath(own, place),
    };
  });
}

function splitUrl(url: string): readonly [authority: string, path: string] {
  const authority = /^(?:(?:[a-z][a-z0-9+.-]*|\{[^{}]*\}):)?\/\/[^/?#]*/i.exec(url)?.[0] ?? '';
  return [authority, url.slice(authority.length)];
}

/** The path with each combination of its variables' values. */
function pathsOf(path: string, variables: JsonObject, place: string): readonly string[] {
  let paths = [path];
  for (const name of new Set([...path.matchAll(/\{([^{}]*)\}/g)].map(([, found = '']) => found))) {
    const values = valuesOf(variables, name);
    if (values.length === 0) {
      const text = `the variable ${showValue(name)} has no default: give the path by --prefix`;
      throw usageError('openapi_invalid', `${place}: ${text}`);
    }
    if (paths.length * values.length > MAX_BASE_PATHS) {
      const text = `its variables give more than ${MAX_BASE_PATHS} paths: give one by --prefix`;
      throw usageError('openapi_too_large', `${place}: ${text}`);
    }
    paths = paths.flatMap((each) => values.map((value) => each.replaceAll(`{${name}}`, () => value)));
    if (paths.some((each) => each.length > MAX_URL_CHARACTERS)) throw tooLong(place);
  }
  return paths;
}

function defaultOf(variables: JsonObject, name: string): string | undefined {
  const variable = Object.hasOwn(variables, name) ? variables[name] : undefined;
  const value = isJsonObject(variable) ? variable.default : undefined;
  // A longer value is an error where it is used, and must not be repeated before.
  return typeof value === 'string' ? value.slice(0, MAX_URL_CHARACTERS + 1) : undefined;
}

/** The default, then the other values. */
function valuesOf(variables: JsonObject, name: string): readonly string[] {
  const first = defaultOf(variables, name);
  if (first === undefined) return [];
  const variable = variables[name];
  const others: readonly unknown[] =
    isJsonObject(variable) && Array.isArray(variable.enum) ? variable.enum : [];
  const texts = others.filter((value) => typeof value === 'string');
  return [...new Set([first, ...texts.map((text) => text.slice(0, MAX_URL_CHARACTERS + 1))])];
}

function tooLong(place: string): CliError {
  return usageError('openapi_too_large', `${place}: a URL of more than ${MAX_URL_CHARACTERS} characters`);
}

function checkedPath(path: string, place: string): string {
  const base = path.replace(/\/+$/, '');
  if (base === '' || base.startsWith('/')) return base;
  const text = `${showValue(path)} depends on where the document is: give the path by --prefix`;
  throw usageError('openapi_invalid', `${place}: ${text}`);
}
