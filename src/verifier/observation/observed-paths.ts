/**
 * Shapes of the paths that no route matches, so that a person can write the forgotten routes. Callers choose these paths, and they
 * may hold identifiers: they are kept in a local file alone, and their number is bounded.
 * Source: docs/operate/observe.md "Forgotten routes".
 */
import type { Route } from '../../bundle/compile/snapshot.ts';

export const MAX_SHAPES = 200;
/** Segments after the eighth become one placeholder. */
const MAX_SEGMENTS = 8;
/** Values of one segment that are not literals of a known route; more become one placeholder. */
const MAX_VALUES = 20;
/** A longer segment is a placeholder at once. */
const MAX_LITERAL_CHARACTERS = 64;
export const SHAPE_METHODS: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
]);
/** As a child, stands for any segment. A segment with a brace, which a path may have, is one of these, so that templates stay valid. */
const ANY = '{}';
/** As a child, stands for the rest of a path. */
const REST = '{*}';

export interface ObservedShape {
  readonly method: string;
  /** A path template. */
  readonly pathTemplate: string;
  readonly requests: number;
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
}

interface Count {
  requests: number;
  firstSeenMs: number;
  lastSeenMs: number;
}

interface Node {
  readonly children: Map<string, Node>;
  /** By method. */
  readonly counts: Map<string, Count>;
}

export class ObservedPaths {
  readonly #root = newNode();
  #shapes = 0;
  #literals: ReadonlySet<string> = new Set();
  /** Requests of other methods, and of paths for which there was no room. */
  #others: number;

  /** @param kept shapes of an earlier run */
  constructor(kept: readonly ObservedShape[] = [], others = 0) {
    this.#others = others;
    for (const { firstSeenMs, lastSeenMs, method, pathTemplate, requests } of kept.slice(0, MAX_SHAPES)) {
      const node = keysOfTemplate(pathTemplate).reduce(ownChildOf, this.#root);
      this.#shapes += addCount(node, method, { requests, firstSeenMs, lastSeenMs });
    }
  }

  /** Literals of these routes stay literals. */
  follow(routes: { all(): readonly Pick<Route, 'pathTemplate'>[] }): void {
    const literals = new Set<string>();
    for (const { pathTemplate } of routes.all()) {
      for (const segment of segmentsOf(pathTemplate)) if (!segment.startsWith('{')) literals.add(segment);
    }
    this.#literals = literals;
  }

  /** @param path canonical, without query */
  add(method: string, path: string, nowMs: number): void {
    if (!SHAPE_METHODS.has(method)) {
      this.#others += 1;
      return;
    }
    this.#add(method, keysOfPath(path), { requests: 1, firstSeenMs: nowMs, lastSeenMs: nowMs });
  }

  get others(): number {
    return this.#others;
  }

  /** Most requested first, then by path. */
  shapes(): readonly ObservedShape[] {
    const found: ObservedShape[] = [];
    collect(this.#root, [], found);
    const nameOf = ({ method, pathTemplate }: ObservedShape) => `${pathTemplate} ${method}`;
    return found.sort((a, b) => b.requests - a.requests || (nameOf(a) < nameOf(b) ? -1 : 1));
  }

  #add(method: string, keys: readonly string[], count: Count): void {
    const nodes = [this.#root];
    for (const key of keys) nodes.push(this.#childOf(nodes.at(-1) ?? this.#root, key));
    this.#shapes += addCount(nodes.at(-1) ?? this.#root, method, count);
    for (const node of nodes) this.#collapse(node);
    if (this.#shapes <= MAX_SHAPES) return;
    this.#remove(method, keys);
    this.#others += count.requests;
  }

  /** The child of a key, made when it is not there. A value joins the placeholder where there is one. */
  #childOf(node: Node, key: string): Node {
    return this.#knownChild(node, key) ?? ownChildOf(node, key);
  }

  #knownChild({ children }: Node, key: string): Node | undefined {
    return children.get(key) ?? (this.#isValue(key) ? children.get(ANY) : undefined);
  }

  /** Whether the key is a segment that is no literal of a known route. */
  #isValue(key: string): boolean {
    return key !== ANY && key !== REST && !this.#literals.has(key);
  }

  /** Merges the values of the next segment into one placeholder once there are too many. */
  #collapse(node: Node): void {
    const values = [...node.children].filter(([key]) => this.#isValue(key));
    if (values.length <= MAX_VALUES) return;
    const any = this.#childOf(node, ANY);
    for (const [key, child] of values) {
      node.children.delete(key);
      this.#merge(child, any);
    }
  }

  #merge(from: Node, to: Node): void {
    for (const [method, count] of from.counts) this.#shapes += addCount(to, method, count) - 1;
    for (const [key, child] of from.children) {
      const known = to.children.get(key);
      if (known === undefined) to.children.set(key, child);
      else this.#merge(child, known);
    }
    from.children.clear();
    this.#collapse(to);
  }

  /** Removes a shape that was just added: it is one more than there may be, so nothing has joined it. */
  #remove(method: string, keys: readonly string[]): void {
    const nodes = [this.#root];
    for (const key of keys) {
      const next = this.#knownChild(nodes.at(-1) ?? this.#root, key);
      if (next === undefined) return;
      nodes.push(next);
    }
    if (nodes.at(-1)?.counts.delete(method)) this.#shapes -= 1;
    for (let depth = keys.length; depth > 0; depth--) {
      const [node, parent] = [nodes[depth], nodes[depth - 1]];
      if (node === undefined || parent === undefined || node.counts.size > 0 || node.children.size > 0)
        return;
      for (const [key, child] of parent.children) if (child === node) parent.children.delete(key);
    }
  }
}

function newNode(): Node {
  return { children: new Map(), counts: new Map() };
}

function ownChildOf({ children }: Node, key: string): Node {
  const child = children.get(key) ?? newNode();
  children.set(key, child);
  return child;
}

/** @returns how many shapes there are more: 0 or 1 */
function addCount(node: Node, method: string, { firstSeenMs, lastSeenMs, requests }: Count): 0 | 1 {
  const known = node.counts.get(method);
  if (known === undefined) {
    node.counts.set(method, { firstSeenMs, lastSeenMs, requests });
    return 1;
  }
  known.requests += requests;
  known.firstSeenMs = Math.min(known.firstSeenMs, firstSeenMs);
  known.lastSeenMs = Math.max(known.lastSeenMs, lastSeenMs);
  return 0;
}

function segmentsOf(path: string): readonly string[] {
  return path.slice(1).split('/');
}

function keysOfPath(path: string): readonly string[] {
  const segments = segmentsOf(path);
  const keys = segments
    .slice(0, MAX_SEGMENTS)
    .map((segment) => (segment.length > MAX_LITERAL_CHARACTERS || /[{}]/.test(segment) ? ANY : segment));
  return segments.length > MAX_SEGMENTS ? [...keys, REST] : keys;
}

function keysOfTemplate(template: string): readonly string[] {
  return segmentsOf(template).map((segment) =>
    segment.endsWith('*}') ? REST : segment.startsWith('{') ? ANY : segment,
  );
}

function collect(node: Node, keys: readonly string[], found: ObservedShape[]): void {
  for (const [method, count] of node.counts) {
    found.push({ method, pathTemplate: templateOf(keys), ...count });
  }
  for (const [key, child] of node.children) collect(child, [...keys, key], found);
}

/** Placeholders are named by their position: `/v1/things/{p3}`. */
function templateOf(keys: readonly string[]): string {
  const segments = keys.map((key, at) => (key === ANY ? `{p${at + 1}}` : key === REST ? '{rest*}' : key));
  return `/${segments.join('/')}`;
}
