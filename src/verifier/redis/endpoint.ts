/**
 * Where Redis is and how to log in, out of one URL. The URL holds a password: neither it nor parts of it
 * beyond host and port appear in any message.
 */

/** One server; Sentinel and Cluster will be other kinds. */
export interface RedisEndpoint {
  readonly kind: 'single';
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  readonly databaseNumber: number;
  readonly username: string | undefined;
  /** A function, so that neither JSON nor an inspected object shows the password. */
  readonly revealPassword: () => string | undefined;
  /** `host:port`, for messages. */
  readonly label: string;
}

/** A setting that cannot be used; the message is for the operator and holds no secret. */
export class RedisSettingError extends Error {
  override readonly name = 'RedisSettingError';
}

const DEFAULT_PORT = 6379;
const LATER_SCHEMES = new Set(['redis-sentinel:', 'rediss-sentinel:', 'redis-cluster:', 'rediss-cluster:']);

/**
 * `redis://[user:password@]host[:port][/database]`, or `rediss://` for TLS.
 * Errors: `RedisSettingError`.
 */
export function parseRedisEndpoint(url: string): RedisEndpoint {
  if (!URL.canParse(url)) throw new RedisSettingError('the Redis URL is malformed');
  const parsed = new URL(url);
  if (LATER_SCHEMES.has(parsed.protocol)) {
    throw new RedisSettingError('Redis Sentinel and Redis Cluster are not supported: give a redis:// URL');
  }
  if (parsed.protocol !== 'redis:' && parsed.protocol !== 'rediss:') {
    throw new RedisSettingError('the Redis URL must begin with redis:// or rediss://');
  }
  if (parsed.hostname === '') throw new RedisSettingError('the Redis URL names no host');
  if (parsed.search !== '' || parsed.hash !== '') {
    throw new RedisSettingError('the Redis URL takes no query and no fragment');
  }
  const port = parsed.port === '' ? DEFAULT_PORT : Number(parsed.port);
  const password = decodePart(parsed.password);
  return {
    kind: 'single',
    // A URL writes an IPv6 address in brackets, a socket takes it without.
    host: parsed.hostname.replace(/^\[(.*)\]$/, '$1'),
    port,
    tls: parsed.protocol === 'rediss:',
    databaseNumber: parseDatabaseNumber(parsed.pathname),
    username: decodePart(parsed.username),
    revealPassword: () => password,
    label: `${parsed.hostname}:${port}`,
  };
}

function parseDatabaseNumber(pathname: string): number {
  if (pathname === '' || pathname === '/') return 0;
  if (!/^\/[0-9]{1,5}$/.test(pathname)) {
    throw new RedisSettingError('the path of the Redis URL must be a database number');
  }
  return Number(pathname.slice(1));
}

function decodePart(part: string): string | undefined {
  if (part === '') return undefined;
  try {
    return decodeURIComponent(part);
  } catch {
    throw new RedisSettingError('user name or password in the Redis URL is not percent-encoded correctly');
  }
}
