/**
 * Finds the route of a request in one tree of path segments; the leaves compare method and origin. Matching goes from
 * left to right, prefers a literal to a placeholder, and never backtracks. So a request has one reading, and the cost
 * depends only on the number of its segments, not on the number of routes.
 * Source: docs/design/protocol.md "Routes, origins, paths".
 */
import { foldSegment, type TemplateSegment } from '../../protocol/path-template.ts';
import type { Route, RouteMatch, RouteTable } from './snapshot.ts';

/** By method, then by origin: the precomputed result. */
type Leaf = Map<string, Map<string, RouteMatch>>;

interface Node {
  readonly literals: Map<string, Node>;
  /** The folded literals. A value that only folds to one of them matches nothing. */
  readonly foldedLiterals: Set<string>;
  /** Child for `{name}`; excludes `rest`. */
  one: Node | undefined;
  /** Leaf for `{name*}`; excludes `one`. */
  rest: Leaf | undefined;
  /** Leaf for paths that end here. */
  leaf: Leaf | undefined;
}

const WRONG_ORIGIN: RouteMatch = { kind: 'no_route', detail: 'origin' };
const NO_MATCH: RouteMatch = { kind: 'no_route', detail: 'no_match' };

/** Why a route cannot be added to the table. */
export type RouteConflict =
  /** Its template has `{name}` where another has `{name*}`, or the reverse. */
  | { readonly kind: 'placeholders' }
  /** This route would match the same request. */
  | { readonly kind: 'same_request'; readonly routeId: string };

/** The mutable tree behind {@link RouteTable}; fill it with {@link RouteTree.add}. */
export class RouteTree implements RouteTable {
  readonly #root: Node = newNode();
  readonly #siteOrigins: ReadonlySet<string>;
  #size = 0;

  /** @param siteOrigins every `scheme://authority` of the site; each route's origins are among them */
  constructor(siteOrigins: ReadonlySet<string>) {
    this.#siteOrigins = siteOrigins;
  }

  get size(): number {
    return this.#size;
  }

  /**
   * Adds a route whose template has these segments. After a conflict the tree may hold a part of the route and must not
   * be used.
   */
  add(route: Route, segments: readonly TemplateSegment[]): RouteConflict | undefined {
    const leaf = leafFor(this.#root, segments);
    if (leaf === undefined) return { kind: 'placeholders' };
    const byOrigin = leaf.get(route.method) ?? new Map<string, RouteMatch>();
    leaf.set(route.method, byOrigin);
    const match: RouteMatch = { kind: 'route', route };
    for (const origin of route.origins) {
      const other = byOrigin.get(origin);
      if (other?.kind === 'route') return { kind: 'same_request', routeId: other.route.routeId };
      byOrigin.set(origin, match);
    }
    this.#size++;
    return undefined;
  }

  match(method: string, origin: string, path: string): RouteMatch {
    if (!this.#siteOrigins.has(origin)) return WRONG_ORIGIN;
    const byOrigin = findLeaf(this.#root, path)?.get(method);
    if (byOrigin === undefined) return NO_MATCH;
    return byOrigin.get(origin) ?? WRONG_ORIGIN;
  }

  find(routeId: string): Route | undefined {
    return routesBelow(this.#root).find((route) => route.routeId === routeId);
  }

  all(): readonly Route[] {
    return [...new Set(routesBelow(this.#root))];
  }
}

function routesBelow({ leaf, literals, one, rest }: Node): readonly Route[] {
  const here = [leaf, rest].flatMap((found) => [...(found?.values() ?? [])]);
  const matches = here.flatMap((byOrigin) => [...byOrigin.values()]);
  const routes = matches.flatMap((match) => (match.kind === 'route' ? [match.route] : []));
  const children = [...literals.values(), ...(one === undefined ? [] : [one])];
  return [...routes, ...children.flatMap(routesBelow)];
}

function newNode(): Node {
  return { literals: new Map(), foldedLiterals: new Set(), one: undefined, rest: undefined, leaf: undefined };
}

/** Returns the leaf for a template and creates it if missing; undefined where `{name}` and `{name*}` would conflict. */
function leafFor(root: Node, segments: readonly TemplateSegment[]): Leaf | undefined {
  let node = root;
  for (const segment of segments) {
    if (segment.kind === 'rest') {
      if (node.one !== undefined) return undefined;
      node.rest ??= new Map();
      return node.rest;
    }
    if (segment.kind === 'one' && node.rest !== undefined) return undefined;
    node = segment.kind === 'literal' ? literalChild(node, segment.text) : placeholderChild(node);
  }
  node.leaf ??= new Map();
  return node.leaf;
}

function literalChild(node: Node, text: string): Node {
  const child = node.literals.get(text) ?? newNode();
  node.literals.set(text, child);
  node.foldedLiterals.add(foldSegment(text));
  return child;
}

function placeholderChild(node: Node): Node {
  node.one ??= newNode();
  return node.one;
}

const SLASH = 0x2f;

/** @param path canonical; other paths still have one result, at the same cost */
function findLeaf(root: Node, path: string): Leaf | undefined {
  if (path.charCodeAt(0) !== SLASH) return undefined;
  let node = root;
  let start = 1;
  for (;;) {
    const slash = path.indexOf('/', start);
    const segment = slash === -1 ? path.slice(start) : path.slice(start, slash);
    const literal = node.literals.get(segment);
    if (literal !== undefined) {
      node = literal;
    } else {
      if (segment === '' || isFoldedLiteral(node, segment)) return undefined;
      if (node.one === undefined) return node.rest && hasNoEmptySegment(path, start) ? node.rest : undefined;
      node = node.one;
    }
    if (slash === -1) return node.leaf;
    start = slash + 1;
  }
}

/** An upstream that decodes paths, or ignores case, would serve the literal's resource. */
function isFoldedLiteral(node: Node, segment: string): boolean {
  return node.foldedLiterals.size > 0 && node.foldedLiterals.has(foldSegment(segment));
}

function hasNoEmptySegment(path: string, start: number): boolean {
  return !path.endsWith('/') && !path.includes('//', start);
}
