/** Addresses of a Workload API. Source: SPIFFE_Workload_Endpoint section 4. */
import { isIPv4, isIPv6 } from 'node:net';

/** The standard variable that names the address. */
export const ENDPOINT_SOCKET_VARIABLE = 'SPIFFE_ENDPOINT_SOCKET';

export const WORKLOAD_SOCKET_RULE =
  'unix:///ABSOLUTE/PATH (or unix:/ABSOLUTE/PATH), or tcp://IP-ADDRESS:PORT';

/** Linux's `sun_path`, without its last byte. */
const MAX_PATH_BYTES = 107;

/** The address in the form of grpc-js; undefined when it does not follow {@link WORKLOAD_SOCKET_RULE}. */
export function workloadSocketTarget(address: string): string | undefined {
  const path = /^unix:(?:\/\/)?(\/(?!\/)[^?#]*[^?#/])$/.exec(address)?.[1];
  if (path !== undefined) return Buffer.byteLength(path) <= MAX_PATH_BYTES ? `unix:${path}` : undefined;
  const [, host = '', port] = /^tcp:\/\/(.+):([1-9][0-9]{0,4})$/.exec(address) ?? [];
  if (port === undefined || Number(port) > 65_535) return undefined;
  if (isIPv4(host)) return `ipv4:${host}:${port}`;
  const bare = /^\[(.+)\]$/.exec(host)?.[1] ?? '';
  return isIPv6(bare) ? `ipv6:[${bare}]:${port}` : undefined;
}
