/** Shows Control's resources to people: tables that fit the terminal, and members without JSON. */
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';

const GAP = '  ';

/**
 * A table, or a list of each item's members when the terminal is too narrow. @param width columns of the terminal;
 * undefined for no limit
 */
export function tableLines(
  columns: readonly string[],
  items: readonly JsonObject[],
  width: number | undefined,
): readonly string[] {
  if (items.length === 0) return ['none'];
  const rows = [
    columns.map((column) => column.toUpperCase()),
    ...items.map((item) => columns.map((column) => shown(item[column]))),
  ];
  const widths = columns.map((_, index) => Math.max(...rows.map((row) => row[index]?.length ?? 0)));
  const total = widths.reduce((sum, each) => sum + each + GAP.length, -GAP.length);
  if (width !== undefined && total > width) {
    return items.flatMap((item, index) => {
      const members = Object.fromEntries(columns.map((column) => [column, item[column]]));
      return [...(index === 0 ? [] : ['']), ...memberLines(members, width)];
    });
  }
  return rows.map((row) =>
    row
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join(GAP)
      .trimEnd(),
  );
}

/** One line for each member. Members of an object are prefixed with its name, and a list of objects becomes a table. */
export function memberLines(body: JsonObject, width: number | undefined): readonly string[] {
  const members = flattened(body);
  const longest = Math.max(0, ...members.map(([name]) => name.length));
  return members.flatMap(([name, value]) => {
    if (!isListOfObjects(value)) return [`${name.padEnd(longest)}${GAP}${shown(value)}`];
    const lines = tableLines(columnsOf(value), value, width && width - GAP.length);
    return [`${name}:`, ...lines.map((line) => `${GAP}${line}`)];
  });
}

function flattened(body: JsonObject): readonly (readonly [name: string, value: unknown])[] {
  return Object.entries(body).flatMap(([name, value]) =>
    isJsonObject(value) && Object.keys(value).length > 0
      ? flattened(value).map(([member, inner]) => [`${name}.${member}`, inner] as const)
      : [[name, value] as const],
  );
}

export function isListOfObjects(value: unknown): value is readonly JsonObject[] {
  return Array.isArray(value) && value.length > 0 && value.every(isJsonObject);
}

/** All members of the items, in the order of their first occurrence. */
function columnsOf(items: readonly JsonObject[]): readonly string[] {
  return [...new Set(items.flatMap((item) => Object.keys(item)))];
}

function shown(value: unknown): string {
  if (value === undefined || value === null) return '-';
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(shown).join(', ');
  if (!isJsonObject(value)) return String(value);
  const members = Object.entries(value).map(([name, inner]) => `${name}=${shown(inner)}`);
  return members.length === 0 ? '-' : members.join(' ');
}
