/**
 * Finds requests that fit a template and still match nothing, because a literal beside its placeholder took precedence
 * and matching does not backtrack. Beside `{name}` this is often intended. Beside `{name*}`, which stands for all paths, it
 * is a warning when the literal leads to no route of the method at all.
 * Source: docs/design/protocol.md "Routes, origins, paths".
 */
import { parsePathTemplate, type TemplateSegment } from '../../protocol/path-template.ts';
import type { RouteTable } from '../compile/snapshot.ts';
import { pointer, showValue } from '../format/bundle-error.ts';
import type { BundleContent, RouteContent } from '../format/schema.ts';
import { type Finding, notice, warning } from './findings.ts';

/** Maximum number of literals beside `{name}` to try for each route; one example is enough. */
const MAX_SIBLINGS_TRIED = 20;

/** A literal at one position of the tree. */
interface Literal {
  readonly text: string;
  /** The first route with it, as method and template. */
  readonly route: string;
  /** Of all routes with it. */
  readonly methods: Set<string>;
}

type Literals = ReadonlyMap<string, ReadonlyMap<string, Literal>>;

/** @param table the content's routes */
export function lintShadowing(content: BundleContent, table: RouteTable): readonly Finding[] {
  const templates = content.routes.map((route) => segmentsOf(route));
  const literals = literalsByPlace(content.routes, templates);
  return content.routes.flatMap((route, index) => {
    const found = shadowedExample(route, templates[index] ?? [], literals, content, table);
    if (found === undefined) return [];
    const { literal, path, isWholeMethod } = found;
    const place = pointer('routes', index, 'path_template');
    const name = showValue(route.route_id);
    if (isWholeMethod) {
      const text = `${name}: no ${route.method} request with ${showValue(literal.text)} in this place has a route, such as ${path}: ${literal.route} takes precedence`;
      return [warning('method_shadowed', place, text)];
    }
    const text = `${name}: ${path} fits the template but matches no route: ${literal.route} takes precedence`;
    return [notice('route_shadowed', place, text)];
  });
}

function segmentsOf(route: RouteContent): readonly TemplateSegment[] {
  const template = parsePathTemplate(route.path_template);
  return template.kind === 'template' ? template.segments : [];
}

/** Identifies a position in the tree by all segments before it, with the same sign for every placeholder. */
function placeOf(segments: readonly TemplateSegment[]): string {
  return segments.map((segment) => (segment.kind === 'literal' ? segment.text : '{}')).join('/');
}

function literalsByPlace(
  routes: readonly RouteContent[],
  templates: readonly (readonly TemplateSegment[])[],
): Literals {
  const literals = new Map<string, Map<string, Literal>>();
  for (const [index, { method, path_template: template }] of routes.entries()) {
    const segments = templates[index] ?? [];
    for (const [position, segment] of segments.entries()) {
      if (segment.kind !== 'literal' || segment.text === '') continue;
      const place = placeOf(segments.slice(0, position));
      const known = literals.get(place) ?? new Map<string, Literal>();
      literals.set(place, known);
      const { text } = segment;
      const literal = known.get(text) ?? { text, route: `${method} ${template}`, methods: new Set() };
      known.set(text, literal);
      literal.methods.add(method);
    }
  }
  return literals;
}

interface Shadow {
  readonly literal: Literal;
  /** A path that matches nothing. */
  readonly path: string;
  /** Whether no path of the route's method goes through the literal, beside `{name*}`. */
  readonly isWholeMethod: boolean;
}

function shadowedExample(
  route: RouteContent,
  segments: readonly TemplateSegment[],
  literals: Literals,
  content: BundleContent,
  table: RouteTable,
): Shadow | undefined {
  const origin = (route.origins ?? content.origins)[0];
  if (origin === undefined) return undefined;
  for (const [index, segment] of segments.entries()) {
    if (segment.kind === 'literal') continue;
    for (const { literal, isWholeMethod } of siblingsToTry(route, segments, index, literals)) {
      const path = pathWith(segments, index, literal.text);
      if (table.match(route.method, origin, path).kind === 'no_route')
        return { literal, path, isWholeMethod };
    }
  }
  return undefined;
}

/** Beside `{name*}` those first that have no route of the method. */
function siblingsToTry(
  { method }: RouteContent,
  segments: readonly TemplateSegment[],
  index: number,
  literals: Literals,
): readonly { readonly literal: Literal; readonly isWholeMethod: boolean }[] {
  const siblings = literals.get(placeOf(segments.slice(0, index)));
  const others: Literal[] = [];
  for (const literal of siblings?.values() ?? []) {
    if (segments[index]?.kind === 'rest' && !literal.methods.has(method))
      return [{ literal, isWholeMethod: true }];
    if (others.length < MAX_SIBLINGS_TRIED) others.push(literal);
    else if (segments[index]?.kind !== 'rest') break;
  }
  return others.map((literal) => ({ literal, isWholeMethod: false }));
}

/** The template's path with `value` for one placeholder, and values that no template names for the others. */
function pathWith(segments: readonly TemplateSegment[], place: number, value: string): string {
  const values = segments.map((segment, index) => {
    if (index === place) return segment.kind === 'rest' ? `${value}/any-other` : value;
    return segment.kind === 'literal' ? segment.text : 'any-value';
  });
  return `/${values.join('/')}`;
}
