/**
 * Decides which addresses a program may connect to for a URL that someone else chose, such as an issuer's. Only public unicast addresses are
 * allowed; all others, known or unknown, are forbidden unless an administrator opened their range.
 *
 * An IPv6 address that embeds an IPv4 address (mapped, NAT64, 6to4, Teredo, ISATAP) is always forbidden, because the
 * network decides where it leads. A network-specific NAT64 prefix (RFC 6052 section 2.2) looks like any public address
 * and cannot be detected here.
 *
 * Source: IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890), RFC 4291, RFC 6052, RFC 8215, RFC 5214.
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

type Address = ReturnType<typeof ipaddr.parse>;

/** A range that an administrator opened. */
export interface IssuerNetwork {
  readonly cidr: string;
  readonly base: Address;
  readonly prefixBits: number;
}

export type AddressVerdict =
  | { readonly kind: 'allowed' }
  /** `range` names the kind of address for people, such as `private`. */
  | { readonly kind: 'forbidden'; readonly range: string };

const ALLOWED: AddressVerdict = { kind: 'allowed' };

/** `10.20.0.0/16` or `fd00:1::/32`; undefined unless it is a CIDR without bits behind its prefix. */
export function parseIssuerNetwork(text: string): IssuerNetwork | undefined {
  const [, address, prefix] = /^([0-9a-fA-F.:]+)\/(0|[1-9][0-9]{0,2})$/.exec(text) ?? [];
  if (address === undefined || isIP(address) === 0) return undefined;
  const base = ipaddr.parse(address);
  const prefixBits = Number(prefix);
  const bits = base.toByteArray().flatMap((byte) => [...byte.toString(2).padStart(8, '0')]);
  if (prefixBits > bits.length || bits.slice(prefixBits).includes('1')) return undefined;
  return { cidr: text, base, prefixBits };
}

/** @param text an address in the spelling of a resolver or a socket */
export function judgeAddress(text: string, opened: readonly IssuerNetwork[]): AddressVerdict {
  // A zone names a local link (RFC 4007), so such an address is never public.
  if (text.includes('%')) return forbidden('zoned');
  if (isIP(text) === 0) return forbidden('malformed');
  const address = ipaddr.parse(text);
  // Checked before the opened ranges, because two spellings of one address must not have different results.
  if (address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress()) return forbidden('ipv4Mapped');
  if (opened.some((network) => contains(network, address))) return ALLOWED;
  return address instanceof ipaddr.IPv6 ? judgeIpv6(address) : judgeIpv4(address);
}

/** Whether two texts spell the same address; sockets and resolvers spell IPv6 differently. */
export function isSameAddress(a: string, b: string): boolean {
  if (isIP(a) === 0 || isIP(b) === 0) return false;
  return ipaddr.parse(a).toNormalizedString() === ipaddr.parse(b).toNormalizedString();
}

/** Azure's platform agent answers every virtual machine on this public address and may reveal credentials. */
const PLATFORM_ADDRESSES: ReadonlySet<string> = new Set(['168.63.129.16']);

function judgeIpv4(address: ipaddr.IPv4): AddressVerdict {
  const range = address.range();
  if (range !== 'unicast') return forbidden(range);
  return PLATFORM_ADDRESSES.has(address.toString()) ? forbidden('metadata') : ALLOWED;
}

/** The only block from which IANA assigns global unicast addresses (RFC 4291 section 2.4). */
const GLOBAL_UNICAST = ipaddr.IPv6.parse('2000::');

function judgeIpv6(address: ipaddr.IPv6): AddressVerdict {
  const range = address.range();
  if (range !== 'unicast') return forbidden(range);
  if (!address.match(GLOBAL_UNICAST, 3)) return forbidden('reserved');
  return isIsatap(address) ? forbidden('isatap') : ALLOWED;
}

/** The interface identifier `0:5efe:a.b.c.d` (or `200:5efe:…`) carries an IPv4 address (RFC 5214 section 6.1). */
function isIsatap({ parts }: ipaddr.IPv6): boolean {
  return ((parts[4] ?? 0) & ~0x0200) === 0 && parts[5] === 0x5efe;
}

function contains(network: IssuerNetwork, address: Address): boolean {
  if (network.base instanceof ipaddr.IPv4) {
    return address instanceof ipaddr.IPv4 && address.match(network.base, network.prefixBits);
  }
  return address instanceof ipaddr.IPv6 && address.match(network.base, network.prefixBits);
}

function forbidden(range: string): AddressVerdict {
  return { kind: 'forbidden', range };
}
