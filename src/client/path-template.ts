/**
 * Path templates as routes and signing profiles state them: literal segments, `{name}` for one segment that
 * is not empty, `{name*}` for one or more at the end.
 * Source: docs/protocol.md "Routes, origins, paths".
 */
import { isCanonicalTarget } from '../protocol/request-target.ts';

export type TemplateSegment =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'one' }
  | { readonly kind: 'rest' };

export interface PathTemplate {
  readonly text: string;
  readonly segments: readonly TemplateSegment[];
}

const PLACEHOLDER = /^\{[A-Za-z_][A-Za-z0-9_]*(\*?)\}$/;

/** Undefined when the text is not a template that a canonical path could match. */
export function parsePathTemplate(text: string): PathTemplate | undefined {
  if (!text.startsWith('/')) return undefined;
  const segments: TemplateSegment[] = [];
  const parts = text.slice(1).split('/');
  for (const [i, part] of parts.entries()) {
    const placeholder = PLACEHOLDER.exec(part);
    if (placeholder === null && /[{}?]/.test(part)) return undefined;
    if (placeholder?.[1] === '*' && i !== parts.length - 1) return undefined;
    segments.push(segmentOf(part, placeholder?.[1]));
  }
  const example = segments.map((segment) => (segment.kind === 'literal' ? segment.text : 'x'));
  return isCanonicalTarget(`/${example.join('/')}`) ? { text, segments } : undefined;
}

function segmentOf(part: string, star: string | undefined): TemplateSegment {
  if (star === undefined) return { kind: 'literal', text: part };
  return star === '*' ? { kind: 'rest' } : { kind: 'one' };
}

interface HasTemplate {
  readonly template: PathTemplate;
}

/**
 * The candidates whose template matches the path, as a verifier that knew these templates alone would find
 * them: segment by segment, a literal before a placeholder, without going back; a value that equals a sibling
 * literal but for its case matches nothing.
 * @param path canonical path without query
 */
export function matchTemplates<T extends HasTemplate>(candidates: readonly T[], path: string): readonly T[] {
  const values = path.slice(1).split('/');
  let open = candidates;
  for (const [i, value] of values.entries()) {
    const literals = open.filter((candidate) => candidate.template.segments[i]?.kind === 'literal');
    const exact = literals.filter((candidate) => literalAt(candidate, i) === value);
    if (exact.length > 0) {
      open = exact;
      continue;
    }
    const folded = foldCase(value);
    if (value === '' || literals.some((candidate) => foldCase(literalAt(candidate, i)) === folded)) return [];
    const ones = open.filter((candidate) => candidate.template.segments[i]?.kind === 'one');
    if (ones.length === 0) return isRestValue(values, i) ? restOf(open, i) : [];
    open = ones;
  }
  return open.filter((candidate) => candidate.template.segments.length === values.length);
}

function restOf<T extends HasTemplate>(open: readonly T[], i: number): readonly T[] {
  return open.filter((candidate) => candidate.template.segments[i]?.kind === 'rest');
}

/** `{name*}` takes segments that are not empty: a trailing slash counts. */
function isRestValue(values: readonly string[], from: number): boolean {
  return values.slice(from).every((value) => value !== '');
}

function literalAt(candidate: HasTemplate, i: number): string {
  const segment = candidate.template.segments[i];
  return segment?.kind === 'literal' ? segment.text : '';
}

/** Lower-case ASCII; canonical paths hold nothing else. */
function foldCase(text: string): string {
  return text.toLowerCase();
}
