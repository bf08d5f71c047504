/**
 * What an operation of Envoy Gateway's EnvoyPatchPolicy is for: its JSONPath and the pointer below what that selects, as one path.
 * Whatever an expression may select counts as selected.
 * Source: Envoy Gateway 1.9, internal/utils/jsonpatch/patch.go.
 */
import { snakeCase, type View } from './view.ts';

export interface PatchTarget {
  /** Whole lists of filters, or of what holds them. */
  readonly isList: boolean;
  /** What chooses the HTTP filter that it is for, or that is below: `0`, `-`, `*`, `?(@.name == 'x')`. */
  readonly filter: string | undefined;
  /** Members below that filter; below everything where it is for no filter. */
  readonly members: readonly string[];
}

const LISTS = ['http_filters', 'filters', 'filter_chains', 'default_filter_chain'];

/** @param pointer `path`, or `from` */
export function targetOf(operation: View, pointer: 'path' | 'from'): PatchTarget {
  const pointed = operation.get(pointer)?.text ?? '';
  const selected = pointer === 'path' ? stepsOf(operation.get('json_path')?.text ?? '') : [];
  const below = pointed.split('/').filter((name) => name !== '');
  const steps = [...selected, ...below.map(unescapePointer)];
  const list = steps.findLastIndex((step) => snakeCase(step) === 'http_filters');
  const chosen = list === -1 ? steps.findLastIndex((step) => /ext_?authz/i.test(step)) : list + 1;
  const filter = list === -1 && !steps[chosen]?.startsWith('?') ? undefined : steps[chosen];
  return {
    isList: filter === undefined && isListOf(steps),
    filter,
    members: filter === undefined ? steps : steps.slice(chosen + 1),
  };
}

/** One of the lists, or an element of one that holds the filters. */
function isListOf(steps: readonly string[]): boolean {
  const names = steps.map(snakeCase);
  const own = names.at(-1) === 'typed_config' ? names.slice(0, -1) : names;
  const isElement = isSelector(own.at(-1) ?? '');
  const last = isElement ? own.at(-2) : own.at(-1);
  return LISTS.includes(last ?? '');
}

/** Of elements: an index, a slice, all, those that an expression takes. */
export function isSelector(step: string): boolean {
  return /^(?:[-\d:, ]+|\*|\?.*)$/s.test(step);
}

/** RFC 6901 section 4. */
function unescapePointer(name: string): string {
  return name.replaceAll('~1', '/').replaceAll('~0', '~');
}

const STEP =
  /\.{1,2}([\w*@-]+)|\[\s*(?:'([^']*)'|"([^"]*)"|((?:'[^']*'|"[^"]*"|\[(?:'[^']*'|"[^"]*"|[^\]'"])*\]|[^[\]'"])*))\s*\]/g;

/** Of a JSONPath; names that are quoted and names behind points are the same. */
function stepsOf(path: string): readonly string[] {
  return [...path.matchAll(STEP)].map(
    ([, ...forms]) => forms.find((form) => form !== undefined)?.trim() ?? '',
  );
}

/** Unless it takes one filter by its name, and that is another one. */
export function mayBeCheck(filter: string): boolean {
  const [, , name] = /^\?\s*\(?\s*@\.name\s*==\s*(['"])([^'"]*)\1\s*\)?$/.exec(filter) ?? [];
  return name === undefined || name.includes('ext_authz');
}

const OF_CHECK =
  /^\?\s*\(?\s*@\.(?:name|typed_config\[['"]@type['"]\])\s*(?:==|=~)\s*(['"])[\w./^-]*(?:ext_authz|ExtAuthz)[\w./$-]*\1\s*\)?$/;

/** Whether what is put there comes before the check, whatever the filters are. */
export function isBeforeCheck(filter: string): boolean {
  return filter === '0' || OF_CHECK.test(filter);
}
