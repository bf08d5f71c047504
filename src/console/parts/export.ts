/** Files that the browser saves. Source: RFC 4180; OWASP "CSV Injection". */

/** Spreadsheets take a cell that begins with one of these for a formula. */
const FORMULA = /^[=+\-@\t\r]/;

/** @returns CSV with a heading; no cell is taken for a formula */
export function csvOf<T>(
  columns: readonly (readonly [name: string, value: (item: T) => string])[],
  items: readonly T[],
): string {
  const heading = columns.map(([name]) => name);
  const rows = items.map((item) => columns.map(([, value]) => cell(value(item))));
  return [heading, ...rows].map((row) => `${row.join(',')}\r\n`).join('');
}

function cell(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function saveFile(name: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
