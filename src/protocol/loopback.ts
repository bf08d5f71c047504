/** Loopback hosts, for which plain HTTP is allowed. */
import { isIPv4 } from 'node:net';

/** @param host a name or an address, IPv6 with or without brackets; not resolved */
export function isLoopback(host: string): boolean {
  if (host === 'localhost' || host === '::1' || host === '[::1]') return true;
  return isIPv4(host) && host.startsWith('127.');
}
