/**
 * Proposes a route for each operation of an OpenAPI document, or says why there is none.
 * Source: docs/design/bundle.md "Path templates".
 */
import { usageError } from '../../../process/program/errors.ts';
import { parsePathTemplate, type TemplateSegment } from '../../../protocol/path-template.ts';
import { MAX_ROUTES } from '../../format/bundle-limits.ts';
import type { ApiDocument, ApiOperation } from './document.ts';

export interface ProposedRoute {
  readonly routeId: string;
  readonly method: string;
  readonly pathTemplate: string;
  readonly resource: string;
}

/** `template`: templates cannot express it. `matrix`: no canonical path has it. The others: another route is there. */
type NoRouteReason = 'template' | 'matrix' | 'same_request' | 'placeholders';

export interface OperationWithoutRoute {
  readonly method: string;
  /** With the path of the server. */
  readonly path: string;
  readonly reason: NoRouteReason;
  readonly text: string;
}

export interface RouteProposal {
  readonly routes: readonly ProposedRoute[];
  readonly without: readonly OperationWithoutRoute[];
  /** Routes of operations whose servers are on other origins than the document's. */
  readonly elsewhere: readonly { readonly routeId: string; readonly origins: readonly string[] }[];
}

/** A route that the site has already. */
export interface KnownRoute {
  readonly routeId: string;
  readonly method: string;
  readonly pathTemplate: string;
}

export interface ProposalOptions {
  /** What becomes a route's resource: the first literal of the path, or the first tag of the operation. */
  readonly resourceFrom: 'path' | 'tag';
  readonly known: readonly KnownRoute[];
}

/** @throws CliError `openapi_too_large` */
export function proposeRoutes(
  api: Pick<ApiDocument, 'servers' | 'operations'>,
  options: ProposalOptions,
): RouteProposal {
  const places = new RoutePlaces();
  const ids = new RouteIds();
  for (const { routeId, method, pathTemplate } of options.known) {
    const template = parsePathTemplate(pathTemplate);
    ids.add(routeId);
    if (template.kind === 'template') places.add(method, template.segments, routeId);
  }
  const documentOrigins = originsOf(api.servers);
  const routes: ProposedRoute[] = [];
  const without: OperationWithoutRoute[] = [];
  const elsewhere: { routeId: string; origins: readonly string[] }[] = [];
  for (const operation of api.operations) {
    const origins = originsOf(operation.servers).filter((origin) => !documentOrigins.includes(origin));
    for (const basePath of new Set(operation.servers.map((server) => server.basePath))) {
      if (routes.length + without.length === MAX_ROUTES) {
        throw usageError('openapi_too_large', `more than ${MAX_ROUTES} routes: give one path by --prefix`);
      }
      const { method } = operation;
      const template = templateOf(basePath, operation);
      const path = shown(basePath + operation.path);
      if (template.kind === 'problem') {
        without.push({ method, path, reason: template.reason, text: template.text });
        continue;
      }
      const routeId = ids.next(operation.operationId ?? `${method.toLowerCase()}${path}`);
      const conflict = places.add(method, template.segments, routeId);
      if (conflict !== undefined) {
        without.push({ method, path, ...conflict });
        continue;
      }
      ids.add(routeId);
      const resource = resourceOf(operation, options.resourceFrom);
      routes.push({ routeId, method, pathTemplate: template.text, resource });
      if (origins.length > 0) elsewhere.push({ routeId, origins });
    }
  }
  return { routes, without: without.map((entry) => withTaker(entry, places)), elsewhere };
}

const MAX_SHOWN_CHARACTERS = 300;

function shown(path: string): string {
  return path.length <= MAX_SHOWN_CHARACTERS ? path : `${path.slice(0, MAX_SHOWN_CHARACTERS)}…`;
}

function originsOf(servers: ApiOperation['servers']): readonly string[] {
  return [...new Set(servers.flatMap(({ origin }) => origin ?? []))];
}

/** In the grammar of OpenAPI, with `{name+}` and `{name*}` of API gateways for the rest of a path. */
const WHOLE_PLACEHOLDER = /^\{([^{}]+?)([+*]?)\}$/;
/** As in the schema of a bundle. */
const MAX_TEMPLATE_CHARACTERS = 2048;
const MAX_NAME_CHARACTERS = 50;

type Template =
  | { readonly kind: 'template'; readonly text: string; readonly segments: readonly TemplateSegment[] }
  | { readonly kind: 'problem'; readonly reason: NoRouteReason; readonly text: string };

function templateOf(basePath: string, { matrixParameters, path }: ApiOperation): Template {
  const problem = (reason: NoRouteReason, text: string) => ({ kind: 'problem', reason, text }) as const;
  const tooLong = problem('template', `longer than ${MAX_TEMPLATE_CHARACTERS} characters`);
  if (!path.startsWith('/')) return problem('template', 'must begin with "/"');
  if (path.includes('?')) return problem('template', 'a template has no query');
  if (basePath.length + path.length > MAX_TEMPLATE_CHARACTERS) return tooLong;
  const matrix = matrixParameters.find((name) => path.includes(`{${name}}`));
  if (matrix !== undefined) {
    const text = `the value of {${matrix}} begins with ";" (style matrix), which no request may have in its path`;
    return problem('matrix', text);
  }
  const names = new Set<string>();
  const segments = (basePath + path).split('/').map((segment) => segmentText(segment, names));
  const template = parsePathTemplate(segments.join('/'));
  if (template.kind === 'problem') return problem('template', template.text);
  return template.text.length > MAX_TEMPLATE_CHARACTERS ? tooLong : template;
}

/** Names have other characters in OpenAPI, and mean nothing to a verifier. */
function segmentText(segment: string, names: Set<string>): string {
  const [, name, sign] = WHOLE_PLACEHOLDER.exec(segment) ?? [];
  if (name === undefined) return segment;
  const plain = name.replace(/[^A-Za-z0-9_]/g, '_').slice(0, MAX_NAME_CHARACTERS);
  const first = /^[0-9]/.test(plain) ? `_${plain}` : plain;
  let unused = first;
  for (let count = 2; names.has(unused); count++) unused = `${first}_${count}`;
  names.add(unused);
  return `{${unused}${sign === '' ? '' : '*'}}`;
}

/** Which requests have a route already. */
class RoutePlaces {
  readonly #routeIds = new Map<string, string>();
  /** The kind of placeholder after each beginning of a template. */
  readonly #placeholders = new Map<string, 'one' | 'rest'>();

  /** @returns why the route cannot be added */
  add(
    method: string,
    segments: readonly TemplateSegment[],
    routeId: string,
  ): Pick<OperationWithoutRoute, 'reason' | 'text'> | undefined {
    const other = this.#routeIds.get(`${method} ${shapeOf(segments)}`);
    if (other !== undefined) {
      return { reason: 'same_request', text: `route ${other} matches the same requests` };
    }
    const wanted = segments.flatMap(({ kind }, index) =>
      kind === 'literal' ? [] : [{ place: shapeOf(segments.slice(0, index)), kind }],
    );
    if (wanted.some(({ place, kind }) => (this.#placeholders.get(place) ?? kind) !== kind)) {
      const text = 'another route has {name} where this one has {name*}, or the reverse';
      return { reason: 'placeholders', text };
    }
    for (const { place, kind } of wanted) this.#placeholders.set(place, kind);
    this.#routeIds.set(`${method} ${shapeOf(segments)}`, routeId);
    return undefined;
  }

  /** The route that takes requests for a path with braces inside segments. */
  takerOf(method: string, path: string): string | undefined {
    const segments = path
      .slice(1)
      .split('/')
      .map(
        (text): TemplateSegment =>
          /[{}]/.test(text) ? { kind: 'one', name: '' } : { kind: 'literal', text },
      );
    return this.#routeIds.get(`${method} ${shapeOf(segments)}`);
  }
}

/** The same for templates that match the same paths. */
function shapeOf(segments: readonly TemplateSegment[]): string {
  const SIGNS = { one: '{}', rest: '{*}' };
  return segments
    .map((segment) => `/${segment.kind === 'literal' ? segment.text : SIGNS[segment.kind]}`)
    .join('');
}

function withTaker(entry: OperationWithoutRoute, places: RoutePlaces): OperationWithoutRoute {
  const taker = entry.reason === 'template' ? places.takerOf(entry.method, entry.path) : undefined;
  return taker === undefined ? entry : { ...entry, text: `${entry.text}; its requests match route ${taker}` };
}

const MAX_ID_CHARACTERS = 200;

class RouteIds {
  readonly #taken = new Set<string>();
  /** By ID: the number to try next. */
  readonly #next = new Map<string, number>();

  add(routeId: string): void {
    this.#taken.add(routeId);
  }

  /** An ID like `name` that no route has. */
  next(name: string): string {
    const id = slug(name);
    let unused = id;
    for (let count = this.#next.get(id) ?? 2; this.#taken.has(unused); count++) {
      unused = `${id}-${count}`;
      this.#next.set(id, count);
    }
    return unused;
  }
}

function slug(text: string): string {
  const plain = text.slice(0, MAX_ID_CHARACTERS).replace(/[^A-Za-z0-9._]+/g, '-');
  return plain.replace(/^-+|-+$/g, '') || 'api';
}

function resourceOf({ path, tag }: ApiOperation, from: ProposalOptions['resourceFrom']): string {
  if (from === 'tag' && tag !== undefined) return slug(tag);
  const words = path.split('/').filter((segment) => segment !== '' && !/[{}]/.test(segment));
  return slug(words.find((word) => !/^(?:api|v[0-9][0-9a-z.]*)$/i.test(word)) ?? words[0] ?? '');
}
