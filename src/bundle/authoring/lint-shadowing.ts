/**
 * Finds requests that fit a template and still match nothing, because a literal beside its placeholder took precedence
 * and matching does not backtrack. Often this is intended.
 * Source: docs/protocol.md "Routes, origins, paths".
 */

import { parsePathTemplate, type TemplateSegment } from '../../protocol/path-template.ts';
import type { RouteTable } from '../compile/snapshot.ts';
import { pointer, showValue } from '../format/bundle-error.ts';
import type { BundleContent, RouteContent } from '../format/schema.ts';
import { type Finding, notice } from './findings.ts';

/** Maximum number of literals beside a placeholder to try for each route; one example is enough. */
const MAX_SIBLINGS_TRIED = 20;

/** @param table the content's routes */
export function lintShadowing(content: BundleContent, table: RouteTable): readonly Finding[] {
  const templates = content.routes.map((route) => segmentsOf(route));
  const literals = literalsByPlace(templates);
  return content.routes.flatMap((route, index) => {
    const example = shadowedExample(route, templates[index] ?? [], literals, content, table);
    if (example === undefined) return [];
    const text = `${showValue(route.route_id)}: ${example} fits the template but matches no route`;
    return [notice('route_shadowed', pointer('routes', index, 'path_template'), text)];
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
  templates: readonly (readonly TemplateSegment[])[],
): ReadonlyMap<string, ReadonlySet<string>> {
  const literals = new Map<string, Set<string>>();
  for (const segments of templates) {
    for (const [index, segment] of segments.entries()) {
      if (segment.kind !== 'literal' || segment.text === '') continue;
      const place = placeOf(segments.slice(0, index));
      const known = literals.get(place) ?? new Set();
      literals.set(place, known.add(segment.text));
    }
  }
  return literals;
}

function shadowedExample(
  route: RouteContent,
  segments: readonly TemplateSegment[],
  literals: ReadonlyMap<string, ReadonlySet<string>>,
  content: BundleContent,
  table: RouteTable,
): string | undefined {
  const origin = (route.origins ?? content.origins)[0];
  if (origin === undefined) return undefined;
  for (const [index, segment] of segments.entries()) {
    if (segment.kind === 'literal') continue;
    const siblings = [...(literals.get(placeOf(segments.slice(0, index))) ?? [])].slice(
      0,
      MAX_SIBLINGS_TRIED,
    );
    for (const sibling of siblings) {
      const path = pathWith(segments, index, sibling);
      if (table.match(route.method, origin, path).kind === 'no_route') return path;
    }
  }
  return undefined;
}

/** The template's path with `value` for one placeholder, and values that no template names for the others. */
function pathWith(segments: readonly TemplateSegment[], place: number, value: string): string {
  const values = segments.map((segment, index) => {
    if (index === place) return segment.kind === 'rest' ? `${value}/any-other` : value;
    return segment.kind === 'literal' ? segment.text : 'any-value';
  });
  return `/${values.join('/')}`;
}
