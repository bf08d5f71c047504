/**
 * Parses a Redis URL into addresses and login. The URL contains a password, so messages show only its hosts and ports.
 * Forms: docs/operate/replay.md "Where Redis is".
 */
import { MAX_PORT } from '../../protocol/limits.ts';
import { hostOfUrl } from '../../protocol/url-host.ts';

/** Address of one server; an IPv6 address without brackets, as sockets expect it. */
export interface RedisAddress {
  readonly host: string;
  readonly port: number;
}

export interface RedisLogin {
  readonly username: string | undefined;
  /** A function, so that neither JSON nor an inspected object shows the password. */
  readonly revealPassword: () => string | undefined;
}

interface AnyEndpoint {
  readonly tls: boolean;
  /** Login for the servers that store data. */
  readonly login: RedisLogin;
}

export interface SingleEndpoint extends AnyEndpoint {
  readonly kind: 'single';
  readonly address: RedisAddress;
  readonly databaseNumber: number;
}

/** An endpoint whose primary Sentinels name. */
export interface SentinelEndpoint extends AnyEndpoint {
  readonly kind: 'sentinel';
  readonly sentinels: readonly RedisAddress[];
  /** The primary's name in the Sentinels' configuration. */
  readonly primaryName: string;
  readonly databaseNumber: number;
}

export interface ClusterEndpoint extends AnyEndpoint {
  readonly kind: 'cluster';
  /** Some of the nodes, which name the others. */
  readonly seeds: readonly RedisAddress[];
}

export type RedisEndpoint = SingleEndpoint | SentinelEndpoint | ClusterEndpoint;

/** Invalid setting. The message is for the operator and contains no secret. */
export class RedisSettingError extends Error {
  override readonly name = 'RedisSettingError';
}

const DEFAULT_PORT = 6379;
const DEFAULT_SENTINEL_PORT = 26379;
const MAX_HOSTS = 32;
/** Scheme, user and password, hosts, path. `@`, `/`, `?` and `#` in a password are percent-encoded. */
const SEVERAL_HOSTS = /^(rediss?)-(sentinel|cluster):\/\/(?:([^@/?#]*)@)?([^@/?#]*)(?:\/([^?#]*))?$/;
const HOST_AND_PORT =
  /^(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252})))(?::([0-9]{1,5}))?$/;

/** `host:port`, for messages. */
export function addressLabel({ host, port }: RedisAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * Parses `redis://[user:password@]host[:port][/database]`,
 * `redis-sentinel://[user:password@]host[:port],…/primary[/database]` and
 * `redis-cluster://[user:password@]host[:port],…`. The scheme `rediss` uses TLS for every connection.
 * @throws RedisSettingError
 */
export function parseRedisEndpoint(url: string): RedisEndpoint {
  const several = SEVERAL_HOSTS.exec(url);
  if (several !== null) return parseSeveralHosts(several);
  if (/^rediss?-(?:sentinel|cluster):/.test(url)) {
    throw new RedisSettingError(
      'the Redis URL is malformed, or it has a query or fragment, which it cannot take',
    );
  }
  return parseSingle(url);
}

/**
 * Puts a password into a URL that {@link parseRedisEndpoint} accepts.
 * @throws RedisSettingError if the URL has a password, or the password is empty
 */
export function withPassword(url: string, password: string): string {
  if (password === '') throw new RedisSettingError('the password of Redis is empty');
  if (parseRedisEndpoint(url).login.revealPassword() !== undefined) {
    throw new RedisSettingError('the Redis URL contains a password, and a file gives one too');
  }
  return url.replace(
    /^([a-z-]+:\/\/)(?:([^@:/?#]*):?@)?/,
    (_, scheme: string, user = '') => `${scheme}${user}:${encodeURIComponent(password)}@`,
  );
}

function parseSingle(url: string): SingleEndpoint {
  if (!URL.canParse(url)) throw new RedisSettingError('the Redis URL is malformed');
  const parsed = new URL(url);
  if (parsed.protocol !== 'redis:' && parsed.protocol !== 'rediss:') {
    throw new RedisSettingError(
      'the Redis URL must begin with redis://, redis-sentinel:// or redis-cluster://, or rediss for TLS',
    );
  }
  if (parsed.hostname === '') throw new RedisSettingError('the Redis URL names no host');
  if (!HOST_AND_PORT.test(parsed.hostname)) {
    throw new RedisSettingError(
      'a redis:// URL names one host: several are for redis-sentinel and redis-cluster',
    );
  }
  if (parsed.search !== '' || parsed.hash !== '') {
    throw new RedisSettingError('the Redis URL takes no query and no fragment');
  }
  return {
    kind: 'single',
    tls: parsed.protocol === 'rediss:',
    login: parseLogin(parsed.username, parsed.password),
    address: {
      host: hostOfUrl(parsed),
      port: parsed.port === '' ? DEFAULT_PORT : Number(parsed.port),
    },
    databaseNumber: parseDatabaseNumber(parsed.pathname.slice(1)),
  };
}

function parseSeveralHosts(match: RegExpExecArray): SentinelEndpoint | ClusterEndpoint {
  const [, scheme, kind, credentials = '', hosts = '', path = ''] = match;
  const colon = credentials.indexOf(':');
  const login =
    colon < 0
      ? parseLogin(credentials, '')
      : parseLogin(credentials.slice(0, colon), credentials.slice(colon + 1));
  const common = { tls: scheme === 'rediss', login };
  if (kind === 'cluster') {
    if (path !== '') throw new RedisSettingError('a Redis Cluster has one database: the URL takes no path');
    return { ...common, kind, seeds: parseAddresses(hosts, DEFAULT_PORT) };
  }
  const [name = '', database = '', ...rest] = path.split('/');
  if (!/^[A-Za-z0-9._-]{1,128}$/.test(name) || rest.length > 0) {
    throw new RedisSettingError(
      'after the Sentinels the Redis URL must name the primary as they do: /<name>, or /<name>/<database>',
    );
  }
  return {
    ...common,
    kind: 'sentinel',
    sentinels: parseAddresses(hosts, DEFAULT_SENTINEL_PORT),
    primaryName: name,
    databaseNumber: parseDatabaseNumber(database),
  };
}

function parseAddresses(hosts: string, defaultPort: number): readonly RedisAddress[] {
  const addresses = hosts.split(',').map((text) => {
    const [, ipv6, name, portText] = HOST_AND_PORT.exec(text) ?? [];
    const host = ipv6 ?? name;
    const port = portText === undefined ? defaultPort : Number(portText);
    if (host === undefined || port < 1 || port > MAX_PORT) {
      throw new RedisSettingError('the hosts in the Redis URL must read host:port,host:port');
    }
    return { host, port };
  });
  if (addresses.length > MAX_HOSTS)
    throw new RedisSettingError(`the Redis URL takes at most ${MAX_HOSTS} hosts`);
  if (new Set(addresses.map(addressLabel)).size < addresses.length) {
    throw new RedisSettingError('the Redis URL names the same host twice');
  }
  return addresses;
}

function parseDatabaseNumber(text: string): number {
  if (text === '') return 0;
  if (!/^[0-9]{1,5}$/.test(text)) {
    throw new RedisSettingError('the path of the Redis URL must end with a database number');
  }
  return Number(text);
}

function parseLogin(username: string, password: string): RedisLogin {
  const revealed = decodePart(password);
  return { username: decodePart(username), revealPassword: () => revealed };
}

function decodePart(part: string): string | undefined {
  if (part === '') return undefined;
  try {
    return decodeURIComponent(part);
  } catch {
    throw new RedisSettingError('user name or password in the Redis URL is not percent-encoded correctly');
  }
}
