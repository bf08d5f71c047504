/** Tables for spreadsheets. Source: RFC 4180; OWASP "CSV Injection". */

/**
 * Matches a possible start of a cell, followed by a character that starts a formula. It includes the separators of
 * other locales and the full-width forms that East Asian locales accept.
 */
const FORMULA = /(^|[;\t\r\n])(?=\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20|%]|[\t\r\n])/g;

/** @returns CSV with a heading line, in which no cell is a formula */
export function csvOf<T>(
  columns: readonly (readonly [name: string, value: (item: T) => string])[],
  items: readonly T[],
): string {
  const rows = items.map((item) => columns.map(([, value]) => value(item)));
  return [columns.map(([name]) => name), ...rows].map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

function cell(text: string): string {
  return `"${text.replace(FORMULA, "$1'").replaceAll('"', '""')}"`;
}
