/** Paths of Control's API. */

type Values = { readonly [name: string]: string | number | undefined };

export interface PathInput {
  /** Values of the names in braces. */
  readonly path?: Values | undefined;
  /** Members that are undefined are not sent. */
  readonly query?: Values | undefined;
}

/**
 * The path with the values of its names, percent-encoded, and with the query.
 * @param template with names in braces, as in the OpenAPI document
 */
export function pathWith(template: string, { path, query }: PathInput = {}): string {
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = path?.[name];
    if (value === undefined) throw new Error(`${template}: no ${name}`);
    return encodeURIComponent(value);
  });
  const sent = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) sent.set(name, String(value));
  }
  if (sent.size === 0) return filled;
  return `${filled}${filled.includes('?') ? '&' : '?'}${sent}`;
}
