/** Shows proposed routes: as YAML to paste into a site file or bundle, with comments, or as JSON. */
import type { ApiDocument } from '../../bundle/authoring/openapi/document.ts';
import type { RouteProposal } from '../../bundle/authoring/openapi/propose-routes.ts';
import type { RoutePattern } from '../../bundle/authoring/openapi/route-pattern.ts';
import type { JsonMembers } from '../../process/program/output.ts';
import { visibleJson, visibleText } from '../../process/program/visible-text.ts';
import { type Access, accessOfMethod } from '../../protocol/access.ts';
import type { JsonObject } from '../../protocol/strict-json.ts';

/** What routes are proposed for. */
export interface ShownApi extends Omit<ApiDocument, 'format'> {
  /** Of OpenAPI; undefined for observed paths. */
  readonly format: string | undefined;
  /** Shown as comments, at the end. */
  readonly notes: readonly string[];
}

export interface ShownProposal {
  readonly api: ShownApi;
  readonly proposal: RouteProposal;
  readonly pattern: RoutePattern;
  /** Whether the pattern is only an example. */
  readonly isExample: boolean;
  /** When the observation of the routes ends; undefined: they are enforced. */
  readonly observeUntil: string | undefined;
}

/** The second key of the observation: settings for a verifier's `--config` file. Source: docs/operate/observe.md. */
export function allowObserveText({ proposal, observeUntil = '' }: ShownProposal): string {
  return `${listLines(
    'allow_observe',
    proposal.routes.map(({ routeId }) => [`  - ${JSON.stringify(`${routeId}=${observeUntil}`)}`]),
  ).join('\n')}\n`;
}

export function proposalMembers(shown: ShownProposal): JsonMembers {
  const { api, proposal, pattern } = shown;
  const routes = routesOf(shown);
  const sources = proposal.routes.map(({ routeId }) => sourcesOf(routeId, pattern));
  return {
    title: api.title,
    ...(api.format === undefined ? { notes: api.notes } : { openapi: api.format }),
    origins: originsOf(api),
    operations: api.operations.length,
    resources: resourcesOf(proposal),
    routes,
    ...(pattern.form === 'bundle' ? { route_sources: sources } : {}),
    without_route: proposal.without,
    other_origins: proposal.elsewhere.map(({ routeId, origins }) => ({ route_id: routeId, origins })),
  };
}

export function proposalLines(shown: ShownProposal): readonly string[] {
  const { api, proposal, pattern } = shown;
  const routes = routesOf(shown).map((route) => entryLines(route));
  const sources = proposal.routes.map(({ routeId }) => entryLines(sourcesOf(routeId, pattern)));
  return [
    ...headLines(shown),
    ...listLines('routes', routes),
    ...(pattern.form === 'bundle' ? listLines('route_sources', sources) : []),
    ...proposal.without.map(({ method, path, text }) => comment(`no route: ${method} ${path}: ${text}`)),
    ...proposal.elsewhere.map(({ routeId, origins }) =>
      comment(
        `${routeId} is served at ${origins.join(', ')}: give the route origins if the site has several`,
      ),
    ),
    ...api.notes.map(comment),
  ];
}

function headLines({ api, proposal, isExample }: ShownProposal): readonly string[] {
  const { routes, without } = proposal;
  const resources = resourcesOf(proposal).map(({ resource, access }) => `${resource} (${access})`);
  const counts = `operations: ${api.operations.length}; routes: ${routes.length}; without a route: ${without.length}`;
  const example =
    'audience and allowed_sources are examples: correct them, or run again with --like and a site file';
  return [
    comment(`${api.title}${api.format === undefined ? '' : `, OpenAPI ${api.format}`}. ${counts}`),
    ...(api.servers.length === 0 ? [] : [comment(`servers: ${serversOf(api).join(', ')}`)]),
    comment(`resources, for grants: ${resources.join(', ') || 'none'}`),
    ...(isExample ? [comment(example)] : []),
  ];
}

/** Text of the document must not end the comment. */
function comment(text: string): string {
  return `# ${visibleText(text)}`;
}

function originsOf({ servers }: Pick<ApiDocument, 'servers'>): readonly string[] {
  return [...new Set(servers.flatMap(({ origin }) => origin ?? []))];
}

function serversOf({ servers }: Pick<ApiDocument, 'servers'>): readonly string[] {
  return [...new Set(servers.map(({ origin = '', basePath }) => `${origin}${basePath}` || '/'))];
}

/** In the order of their first routes; `write` includes `read`. */
function resourcesOf({
  routes,
}: RouteProposal): readonly { readonly resource: string; readonly access: Access }[] {
  const found = new Map<string, Access>();
  for (const { resource, method } of routes) {
    if (found.get(resource) !== 'write') found.set(resource, accessOfMethod(method));
  }
  return [...found].map(([resource, access]) => ({ resource, access }));
}

function routesOf({ proposal, pattern, observeUntil }: ShownProposal): readonly JsonObject[] {
  return proposal.routes.map(({ routeId, method, pathTemplate, resource }) => ({
    route_id: routeId,
    method,
    path_template: pathTemplate,
    audience: pattern.audience,
    ...pattern.freshness,
    resource,
    ...(observeUntil === undefined ? {} : { enforcement: 'observe', observe_until: observeUntil }),
    ...(pattern.form === 'site' ? { allowed_sources: pattern.allowedSources } : {}),
  }));
}

function sourcesOf(routeId: string, { allowedSources }: RoutePattern): JsonObject {
  return { route_id: routeId, allowed_sources: allowedSources };
}

function listLines(name: string, entries: readonly (readonly string[])[]): readonly string[] {
  return entries.length === 0 ? [`${name}: []`] : [`${name}:`, ...entries.flat()];
}

function entryLines(entry: JsonObject): readonly string[] {
  return Object.entries(entry).flatMap(([name, value], index) => {
    const head = `${index === 0 ? '  - ' : '    '}${name}:`;
    return Array.isArray(value)
      ? [head, ...value.map((each) => `      - ${visibleJson(each)}`)]
      : [`${head} ${scalar(value)}`];
  });
}

const PLAIN = /^[A-Za-z/][\w./{}*-]*$/;
const KEYWORD = /^(?:true|false|null|yes|no|on|off|y|n)$/i;

/** Quotes unless every YAML parser reads the plain text as the same string. JSON strings are YAML. */
function scalar(value: unknown): string {
  return typeof value === 'string' && PLAIN.test(value) && !KEYWORD.test(value)
    ? value
    : JSON.stringify(value);
}
