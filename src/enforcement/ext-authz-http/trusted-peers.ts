/** Networks whose connections are accepted (`--http-trusted-proxy`). */
import { BlockList, isIP } from 'node:net';

export interface TrustedPeers {
  /** @param address address of the connection's peer; undefined when it has disconnected */
  includes(address: string | undefined): boolean;
}

/** Excludes 0, because all addresses are not a network of proxies. */
const PREFIX_LENGTH = /^[1-9][0-9]{0,2}$/;

/** @param networks such as `10.0.0.0/24` or `2001:db8::/64` @returns the first network that is invalid, or the peers */
export function parseTrustedPeers(networks: readonly string[]): TrustedPeers | { readonly invalid: string } {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', length = '', ...rest] = network.split('/');
    const family = isIP(address);
    const bits = Number(length);
    const isValid = family !== 0 && PREFIX_LENGTH.test(length) && bits <= (family === 4 ? 32 : 128);
    if (!isValid || rest.length > 0) return { invalid: network };
    list.addSubnet(address, bits, family === 4 ? 'ipv4' : 'ipv6');
  }
  return { includes: (address) => address !== undefined && isListed(list, address) };
}

/** A dual-stack socket shows IPv4 peers as `::ffff:192.0.2.1`; BlockList compares those as IPv4. */
function isListed(list: BlockList, address: string): boolean {
  const family = isIP(address);
  return family !== 0 && list.check(address, family === 4 ? 'ipv4' : 'ipv6');
}
