/**
 * Matches a path to a signer's templates by the verifier's own rule.
 * Source: docs/protocol.md "Routes, origins, paths".
 */
import { foldSegment, type PathTemplate } from '../protocol/path-template.ts';

interface HasTemplate {
  readonly template: PathTemplate;
}

/**
 * The candidates whose template matches the path, as a verifier that knew these templates alone would find
 * them: segment by segment, a literal before a placeholder, without going back; a value that equals a sibling
 * literal but for case or escapes matches nothing.
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
    const folded = foldSegment(value);
    if (value === '' || literals.some((candidate) => foldSegment(literalAt(candidate, i)) === folded))
      return [];
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
