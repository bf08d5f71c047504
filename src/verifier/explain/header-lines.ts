/** Every header line of a CheckRequest, in whichever form it is. */
import type { CheckRequest } from '../../process/ext-authz/request-messages.ts';

/** Names in lower case. */
export function headerLinesOf({ attributes }: CheckRequest): readonly (readonly [string, string])[] {
  const http = attributes?.request?.http;
  const merged = Object.entries(http?.headers ?? {});
  const raw = (http?.header_map?.headers ?? []).map(({ key, raw_value, value }): [string, string] => [
    key ?? '',
    raw_value === undefined ? (value ?? '') : Buffer.from(raw_value).toString('latin1'),
  ]);
  return [...merged, ...raw].map(([name, value]) => [name.toLowerCase(), value]);
}
