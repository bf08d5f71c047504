/** Describes where and how two redacted texts differ, without revealing them. */

export interface Difference {
  /** Position of the first difference, from 1; if one text is a prefix of the other, one past its end. */
  readonly character: number;
  /** `path segment 3`, `query parameter 2`; null for other lines than the target. */
  readonly place: string | null;
  /** Null when other characters differ too. */
  readonly only_in: 'case' | 'escapes' | null;
}

export function differenceOf(line: string, signed: string, rebuilt: string): Difference | null {
  if (signed === rebuilt) return null;
  let equal = 0;
  while (equal < signed.length && signed[equal] === rebuilt[equal]) equal++;
  return {
    character: equal + 1,
    place: line === 'target' ? placeInTarget(signed, equal) : null,
    only_in: whatDiffers(signed, rebuilt),
  };
}

function placeInTarget(target: string, index: number): string {
  const before = target.slice(0, index);
  const query = before.indexOf('?');
  if (query === -1) return `path segment ${Math.max(1, before.split('/').length - 1)}`;
  return `query parameter ${before.slice(query + 1).split('&').length}`;
}

function whatDiffers(signed: string, rebuilt: string): Difference['only_in'] {
  if (signed.toLowerCase() === rebuilt.toLowerCase()) return 'case';
  return unescaped(signed) === unescaped(rebuilt) ? 'escapes' : null;
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
