/** Parses listen addresses: `HOST:PORT`, `[IPv6]:PORT` and `unix:PATH`. */
import { MAX_PORT } from '../../protocol/limits.ts';
import { usageError } from '../program/errors.ts';
import { parsed, text, withDefault } from './settings.ts';

export interface HostAndPort {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

const EXAMPLE_PORT: { readonly [flag: string]: number } = { listen: 9191, 'admin-listen': 9192 };

/** The setting of a program's admin listener. */
export function adminListenSetting(byDefault: string) {
  return withDefault(
    text('--admin-listen <address>', '/livez, /readyz and /metrics, as HOST:PORT'),
    byDefault,
  );
}

/** A setting whose value is `HOST:PORT`, `[IPv6]:PORT` or `unix:PATH`. */
export function socketAddress(specification: string, description: string) {
  return parsed(text(specification, description), (value, flag) => parseSocketAddress(flag, value));
}

/** @throws CliError `bad_address` */
export function parseHostAndPort(flag: string, address: string, forms = 'HOST:PORT'): HostAndPort {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+)):([0-9]{1,5})$/.exec(address);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined) {
    throw usageError(
      'bad_address',
      `--${flag} must be ${forms}, such as 127.0.0.1:${EXAMPLE_PORT[flag] ?? 9191}`,
    );
  }
  if (port > MAX_PORT) throw usageError('bad_address', `--${flag}: the port must be 0 to 65535`);
  return { host, port };
}

/** Maximum path length of a Unix socket on Linux (unix(7)), without the terminating byte. */
const MAX_SOCKET_PATH_BYTES = 107;

/**
 * Validates `HOST:PORT`, `[IPv6]:PORT` or `unix:PATH`, and returns it unchanged.
 * @throws CliError `bad_address`
 */
export function parseSocketAddress(flag: string, address: string): string {
  if (!address.startsWith('unix:')) {
    parseHostAndPort(flag, address, 'HOST:PORT or unix:PATH');
    return address;
  }
  const pathBytes = Buffer.byteLength(address.slice('unix:'.length));
  if (pathBytes === 0 || pathBytes > MAX_SOCKET_PATH_BYTES) {
    throw usageError('bad_address', `--${flag}: a socket's path has 1 to ${MAX_SOCKET_PATH_BYTES} bytes`);
  }
  return address;
}
