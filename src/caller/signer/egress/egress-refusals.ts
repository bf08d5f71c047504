/** Requests that the egress proxy never signs, whatever the profiles allow. */
import type { ClientRequest } from '../../../process/http-proxy/client-exchange.ts';
import { isCanonicalTarget, normalizeAuthority } from '../../../protocol/request-target.ts';
import { BROWSER_REQUEST, isOfBrowser, type Refusal } from '../signing-refusals.ts';

const TARGET_NOT_CANONICAL: Refusal = {
  code: 'target_not_canonical',
  message: 'the target must be a path in canonical form: the signer is a base URL, not a forward proxy',
};
export const ROUTE_UNKNOWN: Refusal = { code: 'route_unknown', message: 'no --route has this path' };

/** @param hosts canonical authorities of the listener; another name may be a DNS rebinding attack by a web page */
export function refusalOf(
  { authority, rawHeaders, target }: ClientRequest,
  hosts: ReadonlySet<string>,
): Refusal | undefined {
  if (isOfBrowser(rawHeaders.filter((_text, at) => at % 2 === 0))) return BROWSER_REQUEST;
  if (!hosts.has(normalizeAuthority('http', authority))) {
    return { code: 'host_not_allowed', message: `Host must be ${[...hosts].join(' or ')}` };
  }
  return isCanonicalTarget(target) ? undefined : TARGET_NOT_CANONICAL;
}

/** @param address on which the proxy listens, with the actual port */
export function hostsOf(address: string): ReadonlySet<string> {
  if (address.startsWith('unix:')) return new Set(['localhost']);
  const port = /:\d+$/.exec(address)?.[0] ?? '';
  const hosts = [address, `localhost${port}`, `127.0.0.1${port}`, `[::1]${port}`];
  return new Set(hosts.map((host) => normalizeAuthority('http', host.toLowerCase())));
}
