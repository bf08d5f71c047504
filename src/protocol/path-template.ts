/**
 * Path templates: literal segments, `{name}` for one segment, `{name*}` at the end for one or more.
 * Source: docs/design/protocol.md "Routes, origins, paths".
 */
import { isCanonicalTarget } from './request-target.ts';

export type TemplateSegment =
  | { readonly kind: 'literal'; readonly text: string }
  /** `{name}`: one non-empty segment. */
  | { readonly kind: 'one'; readonly name: string }
  /** `{name*}`: one or more non-empty segments, up to the end. */
  | { readonly kind: 'rest'; readonly name: string };

export interface PathTemplate {
  readonly kind: 'template';
  readonly text: string;
  readonly segments: readonly TemplateSegment[];
}

/** The fault of a text, as the end of a sentence. */
export interface TemplateProblem {
  readonly kind: 'problem';
  readonly text: string;
}

const PLACEHOLDER = /^\{([A-Za-z_][A-Za-z0-9_]{0,63})(\*?)\}$/;

/** Parses a template; returns the problem of an invalid one. */
export function parsePathTemplate(template: string): PathTemplate | TemplateProblem {
  if (!template.startsWith('/')) return problem('must begin with "/"');
  const segments = template.slice(1).split('/').map(parseSegment);
  const names = new Set<string>();
  for (const [index, segment] of segments.entries()) {
    if (segment === undefined)
      return problem('a placeholder is a whole segment: {name}, or {name*} at the end');
    if (segment.kind === 'literal') continue;
    if (segment.kind === 'rest' && index !== segments.length - 1) {
      return problem(`{${segment.name}*} must be the last segment`);
    }
    if (names.has(segment.name)) return problem(`placeholder ${segment.name} occurs twice`);
    names.add(segment.name);
  }
  const found = segments.filter((segment) => segment !== undefined);
  if (!isCanonicalTarget(examplePath(found)) || template.includes('?')) {
    return problem('not in canonical form, so that no request would match');
  }
  return { kind: 'template', text: template, segments: found };
}

/**
 * Folds a segment as a lenient upstream may read it: escapes decoded, ASCII in lower case. The upstream could serve one
 * segment as another with the same folding, so a value that only folds to a literal beside its placeholder does not
 * match.
 */
export function foldSegment(segment: string): string {
  return decodedSegment(segment).replace(/[A-Z]/g, (capital) => capital.toLowerCase());
}

/** Segments of canonical paths always decode; any other is returned as is. */
function decodedSegment(segment: string): string {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function problem(text: string): TemplateProblem {
  return { kind: 'problem', text };
}

function parseSegment(text: string): TemplateSegment | undefined {
  const [, name, star] = PLACEHOLDER.exec(text) ?? [];
  if (name !== undefined) return { kind: star === '*' ? 'rest' : 'one', name };
  return /[{}]/.test(text) ? undefined : { kind: 'literal', text };
}

/** An example path of the template's shape: each placeholder becomes the segment `x`. */
function examplePath(segments: readonly TemplateSegment[]): string {
  return `/${segments.map((segment) => (segment.kind === 'literal' ? segment.text : 'x')).join('/')}`;
}
