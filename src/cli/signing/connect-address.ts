/** The value of `--connect-to`: where to connect instead of the URL's host and port. */
import type { ConnectAddress } from '../../caller/sign/send-request.ts';
import { usageError } from '../../process/program/errors.ts';
import { MAX_PORT } from '../../protocol/limits.ts';

/** `127.0.0.1:10000`, `[::1]:10000`, `localhost:10000`. */
export function parseConnectAddress(text: string | undefined): ConnectAddress | undefined {
  if (text === undefined) return undefined;
  const [, bracketed, plain, portText] =
    /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]/\s]+)):([1-9][0-9]{0,4})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(portText);
  if (host === undefined || port > MAX_PORT)
    throw usageError('bad_address', '--connect-to must be HOST:PORT');
  return { host, port };
}
