/** Requires addresses that are reachable only from this machine. */
import { usageError } from '../../../process/program/errors.ts';
import { parseHostAndPort, parseSocketAddress } from '../../../process/settings/listen-address.ts';
import { isLoopback } from '../../../protocol/loopback.ts';

/**
 * Every program that can connect to the signer can sign as its identity.
 * @throws CliError `bad_address`, `listen_not_loopback`
 */
export function localAddress(flag: string, address: string): string {
  const listen = parseSocketAddress(flag, address);
  if (listen.startsWith('unix:') || isLoopback(parseHostAndPort(flag, listen).host)) return listen;
  throw usageError(
    'listen_not_loopback',
    `--${flag} must be unix:PATH or a loopback address: every program that reaches it can sign`,
  );
}
