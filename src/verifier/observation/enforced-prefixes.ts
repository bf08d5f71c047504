/**
 * Finds paths that an upstream might serve as an enforced route's, although they match no route: another spelling, a trailing
 * slash, something appended. Compares with the literal beginning of every enforced template, so a template that begins with a
 * placeholder covers every path. Source: docs/operate/observe.md.
 */
import type { Route } from '../../bundle/compile/snapshot.ts';

export class EnforcedPrefixes {
  /** Folded literal beginnings, sorted, each with its routes. */
  readonly #prefixes: readonly string[];
  readonly #routes = new Map<string, Route[]>();

  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      const prefix = literalPrefix(route.pathTemplate);
      const known = this.#routes.get(prefix);
      if (known === undefined) this.#routes.set(prefix, [route]);
      else known.push(route);
    }
    this.#prefixes = [...this.#routes.keys()].sort(byCodeUnit);
  }

  /**
   * Whether the path begins like a route for which `isEnforced`, whatever its method.
   * @param path canonical, without query
   */
  covers(path: string, isEnforced: (route: Route) => boolean): boolean {
    const folded = foldPath(path);
    if (folded === undefined) return true;
    // Every prefix of a text sorts before it, so each round leaves a shorter text to look for.
    let rest = folded;
    for (;;) {
      const prefix = this.#lastUpTo(rest);
      if (prefix === undefined) return false;
      if (!folded.startsWith(prefix)) {
        rest = commonPrefix(prefix, rest);
        continue;
      }
      if (this.#routes.get(prefix)?.some(isEnforced)) return true;
      if (prefix === '') return false;
      rest = prefix.slice(0, -1);
    }
  }

  /** The last prefix in the order that is not after the text. */
  #lastUpTo(text: string): string | undefined {
    let [low, high] = [0, this.#prefixes.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#prefixes[middle] ?? '') <= text) low = middle + 1;
      else high = middle;
    }
    return this.#prefixes[low - 1];
  }
}

function byCodeUnit(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function commonPrefix(a: string, b: string): string {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return a.slice(0, length);
}

function literalPrefix(template: string): string {
  const placeholder = template.indexOf('{');
  // Where it cannot be folded, the prefix is empty and covers every path.
  return foldPath(placeholder === -1 ? template : template.slice(0, placeholder)) ?? '';
}

/**
 * Folds a path as the most lenient upstream may read it: escapes decoded, without regard to case, accents, compatibility forms
 * and invisible characters, and without parameters (`;`), dots, spaces and slashes at the ends of its segments.
 * @returns undefined when a segment may be read as `.` or `..`
 */
export function foldPath(path: string): string | undefined {
  // A compatibility form may have a slash in it, so segments are known only afterwards.
  const segments = decoded(path)
    .normalize('NFKD')
    .replace(/[\p{M}\p{C}]/gu, '')
    // Last to upper case: the small sigma has two forms, and letters such as the dotless i have no lower case of their own.
    .toLowerCase()
    .toUpperCase()
    .split(/[/\\]/)
    .map((segment) => segment.replace(/;.*$/s, ''));
  if (segments.some((segment) => /^\.+$/.test(segment.trim()))) return undefined;
  const ended = segments.map((segment) => segment.replace(/(?<![.\s])[.\s]+$/u, '')).filter(Boolean);
  return ended.map((segment) => `/${segment}`).join('');
}

/** Canonical paths always decode. */
function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
