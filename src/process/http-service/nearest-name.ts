/** Finds the name that was probably meant by a misspelled one. */

/** Longer names are not compared. */
const MAX_COMPARED = 64;

/** The nearest of the names, if a third of its characters or less differ. */
export function nearestName(given: string, names: readonly string[]): string | undefined {
  if (given.length > MAX_COMPARED) return undefined;
  let nearest: string | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const name of names) {
    const distance = editDistance(given.toLowerCase(), name.toLowerCase());
    if (distance < least && distance <= Math.max(1, name.length / 3)) [nearest, least] = [name, distance];
  }
  return nearest;
}

/** Number of inserted, deleted and replaced characters (Levenshtein). */
function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [i, character] of [...one].entries()) {
    const next = [i + 1];
    for (let j = 0; j < other.length; j++) {
      const replaced = (row[j] ?? 0) + (character === other[j] ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
