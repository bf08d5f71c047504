/**
 * Compares where routes of two sites match, for requests of which only the route is known, not the path. Says "the same" or
 * "nothing" only where that holds for every path that the route matched.
 * Source: docs/design/protocol.md "Routes, origins, paths"; `bundle/compile/route-table.ts`.
 */
import type { Route } from '../../bundle/compile/snapshot.ts';
import { parsePathTemplate, type TemplateSegment } from '../../protocol/path-template.ts';

/** What the request of a route meets at another site. */
export type PlaceVerdict =
  | { readonly kind: 'route'; readonly route: Route }
  /** No route matches it. */
  | { readonly kind: 'none' }
  /** The path decides. */
  | { readonly kind: 'unknown' };

interface Place {
  readonly route: Route;
  readonly segments: readonly TemplateSegment[];
}

export class RoutePlaces {
  readonly #places = new Map<string, Place>();
  /** Literals of each node of the tree, by the node's path. */
  readonly #literals = new Map<string, Set<string>>();
  readonly #signature: string;
  readonly #verdicts = new Map<string, PlaceVerdict>();
  #comparedWith: RoutePlaces | undefined;

  constructor(routes: readonly Route[], siteOrigins: readonly string[]) {
    const lines = [siteOrigins.toSorted().join(' ')];
    for (const route of routes) {
      const parsed = parsePathTemplate(route.pathTemplate);
      const segments = parsed.kind === 'template' ? parsed.segments : [];
      this.#places.set(route.routeId, { route, segments });
      lines.push([route.method, nodeAt(segments, segments.length), ...[...route.origins].sort()].join(' '));
      this.#addLiterals(segments);
    }
    this.#signature = lines.sort().join('\n');
  }

  #addLiterals(segments: readonly TemplateSegment[]): void {
    for (const [index, segment] of segments.entries()) {
      if (segment.kind !== 'literal') continue;
      const node = nodeAt(segments, index);
      const literals = this.#literals.get(node) ?? new Set();
      this.#literals.set(node, literals.add(segment.text));
    }
  }

  /** Whether every request matches as it does at the other site, apart from the routes' names. */
  equals(other: RoutePlaces): boolean {
    return this.#signature === other.#signature;
  }

  /** What a request that matched the route at `before` meets here. Remembered: events name the same routes again and again. */
  verdict(routeId: string, before: RoutePlaces): PlaceVerdict {
    if (this.#comparedWith !== before) this.#verdicts.clear();
    this.#comparedWith = before;
    const known = this.#verdicts.get(routeId);
    if (known !== undefined) return known;
    const verdict = this.#verdict(routeId, before);
    // Names of routes only, whatever events name.
    if (before.#places.has(routeId)) this.#verdicts.set(routeId, verdict);
    return verdict;
  }

  #verdict(routeId: string, before: RoutePlaces): PlaceVerdict {
    const was = before.#places.get(routeId);
    const now = this.#places.get(routeId);
    if (was === undefined) return { kind: 'unknown' };
    if (now === undefined || !isSamePlace(was, now)) {
      const isTaken = [...this.#places.values()].some((place) => before.#mayTake(was, place));
      return { kind: isTaken ? 'unknown' : 'none' };
    }
    const keepsOrigins = [...was.route.origins].every((origin) => now.route.origins.has(origin));
    return keepsOrigins && !this.#addsLiterals(was, before)
      ? { kind: 'route', route: now.route }
      : { kind: 'unknown' };
  }

  /** Whether a path of the route may have a segment that is a literal here and was none. */
  #addsLiterals({ segments }: Place, before: RoutePlaces): boolean {
    return segments.some(({ kind }, index) => {
      if (kind === 'literal') return false;
      const node = nodeAt(segments, index);
      const known = before.#literals.get(node);
      return [...(this.#literals.get(node) ?? [])].some((literal) => !known?.has(literal));
    });
  }

  /** Whether a request that matched `was` here may match `place` elsewhere. */
  #mayTake(was: Place, place: Place): boolean {
    if (was.route.method !== place.route.method) return false;
    for (const [index, own] of was.segments.entries()) {
      const other = place.segments[index];
      if (other === undefined) return false;
      if (other.kind === 'rest') return true;
      if (other.kind === 'literal') {
        if (own.kind === 'literal' && own.text !== other.text) return false;
        // A literal beside the placeholder took its own requests.
        if (own.kind !== 'literal' && this.#literals.get(nodeAt(was.segments, index))?.has(other.text))
          return false;
      }
      if (own.kind === 'rest') return true;
    }
    return was.segments.length === place.segments.length;
  }
}

function isSamePlace(a: Place, b: Place): boolean {
  return (
    a.route.method === b.route.method &&
    nodeAt(a.segments, a.segments.length) === nodeAt(b.segments, b.segments.length)
  );
}

/** The node that the first `count` segments lead to. Braces occur in no literal. */
function nodeAt(segments: readonly TemplateSegment[], count: number): string {
  return segments
    .slice(0, count)
    .map((segment) => `/${segment.kind === 'literal' ? segment.text : segment.kind === 'one' ? '{}' : '{*}'}`)
    .join('');
}
