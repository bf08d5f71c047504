/**
 * What a server must be before it may remember anything, judged from its `INFO`.
 * Source: docs/protocol.md "Replay".
 */

const MIN_MAJOR_VERSION = 7;

/**
 * One line about the first requirement that the server does not meet; undefined when it meets all.
 * `info` is the answer to `INFO`: lines `field:value`, CRLF between them.
 */
export function findServerProblem(info: unknown, label: string): string | undefined {
  const fields = typeof info === 'string' ? parseInfo(info) : new Map<string, string>();
  const version = fields.get('redis_version');
  if (version === undefined) return `the server at ${label} does not answer as Redis does`;
  if (fields.get('redis_mode') === 'sentinel') {
    return `the server at ${label} is a Redis Sentinel, which is not supported: give a single Redis server`;
  }
  if (fields.get('cluster_enabled') !== '0') {
    return `Redis at ${label} runs in Cluster mode, which is not supported: give a single Redis server`;
  }
  if (!(Number.parseInt(version, 10) >= MIN_MAJOR_VERSION)) {
    return `Redis at ${label} is older than version ${MIN_MAJOR_VERSION}`;
  }
  if (fields.get('loading') !== '0') return `Redis at ${label} is loading its data`;
  if (fields.get('role') !== 'master') return `Redis at ${label} is a replica: give the primary`;
  if (fields.get('maxmemory_policy') !== 'noeviction') {
    return `Redis at ${label} must have maxmemory-policy noeviction: it may forget identifiers that are in use`;
  }
  return undefined;
}

function parseInfo(info: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (const line of info.split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return fields;
}
