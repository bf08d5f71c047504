/** Parses Redis replies that hold names and values, in RESP2 and RESP3. */

/** Parses the reply to `INFO` or `CLUSTER INFO`: lines `field:value`, separated by CRLF. Any other reply gives an empty map. */
export function parseInfo(info: unknown): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  if (typeof info !== 'string') return fields;
  for (const line of info.split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return fields;
}

/** Alternating names and values, as in RESP2, or a map, as in RESP3. Any other reply gives an empty map. */
export function parsePairs(reply: unknown): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  if (Array.isArray(reply)) {
    for (let at = 0; at + 1 < reply.length; at += 2) setText(fields, reply[at], reply[at + 1]);
  } else if (reply instanceof Map) {
    for (const [name, value] of reply) setText(fields, name, value);
  } else if (typeof reply === 'object' && reply !== null) {
    for (const [name, value] of Object.entries(reply)) setText(fields, name, value);
  }
  return fields;
}

/** Parses a whole number in decimal digits; undefined for anything else. */
export function parseCount(text: string | undefined): number | undefined {
  return text !== undefined && /^[0-9]{1,15}$/.test(text) ? Number(text) : undefined;
}

function setText(fields: Map<string, string>, name: unknown, value: unknown): void {
  if (typeof name === 'string' && typeof value === 'string') fields.set(name, value);
}
