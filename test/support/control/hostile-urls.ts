/**
 * Issuer and JWKS URIs that an attacker or a mistake could enter. `PORT` is a port on which every address of the test machine
 * accepts and counts connections.
 */
import type { FetchFailureCode } from '../../../src/process/outbound-fetch/fetch-failures.ts';

export interface HostileUrl {
  readonly url: string;
  readonly code: FetchFailureCode;
  /** DNS answer for the host, if it is a name. */
  readonly addresses?: readonly string[];
}

const words = (text: string): readonly string[] => text.trim().split(/\s+/);

/** One address of each non-public range, and easily missed range ends. */
export const FORBIDDEN_IPV4 = words(`
  0.0.0.0 0.1.2.3 0.255.255.255
  10.0.0.1 10.255.255.255
  100.64.0.1 100.100.100.200 100.127.255.255
  127.0.0.1 127.0.0.2 127.1.2.3 127.255.255.255
  168.63.129.16
  169.254.0.1 169.254.169.254 169.254.170.2
  172.16.0.1 172.17.0.1 172.31.255.255
  192.0.0.1 192.0.0.192 192.0.2.1 192.0.2.2 192.31.196.1 192.52.193.1 192.88.99.1
  192.168.0.1 192.168.255.255 192.175.48.1
  198.18.0.1 198.19.255.255 198.51.100.1
  203.0.113.1
  224.0.0.1 239.255.255.250
  240.0.0.1 255.255.255.255
`);

export const FORBIDDEN_IPV6 = [
  // unspecified, loopback, IPv4-compatible, mapped, translated (RFC 2765)
  ...words('::  ::1  ::2  ::7f00:1  ::a00:1'),
  ...words('::ffff:7f00:1  ::ffff:a00:1  ::ffff:a9fe:a9fe  ::ffff:808:808  ::ffff:0:7f00:1'),
  // NAT64, with embedded private and public addresses
  ...words('64:ff9b::7f00:1  64:ff9b::a9fe:a9fe  64:ff9b::808:808  64:ff9b:1::a00:1  64:ff9b:1:ffff::1'),
  // discard only, Teredo, benchmarking, AMT, AS112, ORCHID, drones, the rest of 2001::/23, documentation, 6to4
  ...words('100::1  2001::1  2001:0:a9fe:a9fe::1  2001:2::1  2001:3::1  2001:4:112::1  2001:10::1'),
  ...words('2001:20::1  2001:30::1  2001:1ff:ffff::1  2001:db8::1'),
  ...words('2002:7f00:1::1  2002:a00:1::1  2002:a9fe:a9fe::1  2002:808:808::1'),
  // AS112, documentation (RFC 9637), segment routing, unassigned
  ...words('2620:4f:8000::1  3fff::1  3fff:fff::1  5f00::1  4000::1  8000::1  e000::1'),
  // unique local, cloud metadata within it, link-local, site-local, multicast
  ...words('fc00::1  fd00::2  fd00:ec2::254  fdff:ffff::1'),
  ...words('fe80::1  febf::1  fec0::1  feff::1  ff02::1  ff0e::1'),
  // ISATAP (RFC 5214) on a public prefix
  ...words('2a00:1450::5efe:7f00:1  2a00:1450::200:5efe:a00:1'),
];

/** Spellings of one address that some parser accepts. None is the canonical form in a URL. */
const DISGUISES = [
  ...words('2130706433  0x7f000001  0x7F000001  017700000001  127.1  127.0.1  0x7f.1  0177.0.0.1  0177.1'),
  ...words('127.0.0.01  127.0.0.0x1  0x7f.0x0.0x0.0x1  0  0x0  00'),
  ...words('2852039166  0xa9fea9fe  0251.0376.0251.0376  169.254.43518'),
  ...words('10.1  0xa.0.0.1  167772161  3232235521  127.0.0.1.'),
  ...words('①②⑦.0.0.1  127。0。0。1  %31%32%37.0.0.1  127.0.0.%31'),
  ...words('[::ffff:127.0.0.1]  [0:0:0:0:0:0:0:1]  [::0001]  [0000::1]  [::FFFF:7F00:1]  [::127.0.0.1]'),
  ...words('[64:ff9b::127.0.0.1]  [2002:7F00:1::]  [FE80::1]'),
];

/** URLs that programs parse differently. */
const CROOKED: readonly (readonly [string, FetchFailureCode])[] = [
  ['', 'url_malformed'],
  ['issuer.example', 'url_malformed'],
  ['//127.0.0.1:PORT/', 'url_malformed'],
  ['/keys', 'url_malformed'],
  ['https://', 'url_malformed'],
  ['https://:PORT/', 'url_malformed'],
  ['https://127.0.0.1:99999/', 'url_malformed'],
  ['https://127.0.0.256:PORT/', 'url_malformed'],
  ['https://[::1/', 'url_malformed'],
  ['https://[fe80::1%25lo]:PORT/', 'url_malformed'],
  ['https://[::1%lo]:PORT/', 'url_malformed'],
  ['https://exam ple/', 'url_malformed'],
  ['https://127.0.0.1:PORT/\r\nHost: x', 'url_malformed'],
  ['https://127.0.0.1:PORT/\tkeys', 'url_malformed'],
  [' https://127.0.0.1:PORT/', 'url_malformed'],
  ['https://127.0.0.1:PORT/\u0000', 'url_malformed'],
  ['https://ⓛocalhost:PORT/', 'url_malformed'],
  [`https://127.0.0.1:PORT/${'a'.repeat(600)}`, 'url_malformed'],
  ['http://127.0.0.1:PORT/', 'url_not_https'],
  ['http://issuer.example/', 'url_not_https'],
  ['HTTP://127.0.0.1:PORT/', 'url_not_https'],
  ['ftp://127.0.0.1:PORT/keys', 'url_not_https'],
  ['file:///etc/passwd', 'url_not_https'],
  ['file://127.0.0.1/keys', 'url_not_https'],
  ['gopher://127.0.0.1:PORT/_GET', 'url_not_https'],
  ['ws://127.0.0.1:PORT/', 'url_not_https'],
  ['wss://127.0.0.1:PORT/', 'url_not_https'],
  ['unix:/var/run/docker.sock', 'url_not_https'],
  ['data:application/json,{"keys":[]}', 'url_not_https'],
  ['blob:https://issuer.example/1', 'url_not_https'],
  ['javascript:alert(1)', 'url_not_https'],
  ['ldap://127.0.0.1:PORT/', 'url_not_https'],
  ['https://issuer.example@127.0.0.1:PORT/', 'url_has_credentials'],
  ['https://user:password@127.0.0.1:PORT/', 'url_has_credentials'],
  ['https://:password@127.0.0.1:PORT/', 'url_has_credentials'],
  ['https://@127.0.0.1:PORT/', 'url_has_credentials'],
  ['https://:@127.0.0.1:PORT/', 'url_has_credentials'],
  ['https://issuer.example%40127.0.0.1@127.0.0.1:PORT/', 'url_has_credentials'],
  ['https://a@b@127.0.0.1:PORT/', 'url_has_credentials'],
  ['https://127.0.0.1:PORT/#', 'url_has_fragment'],
  ['https://127.0.0.1:PORT#@issuer.example/', 'url_has_fragment'],
  ['https://127.0.0.1:PORT/keys#/.well-known', 'url_has_fragment'],
  ['HTTPS://127.0.0.1:PORT/', 'url_not_canonical'],
  ['https:127.0.0.1:PORT/', 'url_not_canonical'],
  ['https:/127.0.0.1:PORT/', 'url_not_canonical'],
  ['https:///127.0.0.1:PORT/', 'url_not_canonical'],
  ['https:\\\\127.0.0.1:PORT\\', 'url_not_canonical'],
  ['https://127.0.0.1:PORT\\issuer.example/', 'url_not_canonical'],
  ['https://127.0.0.1:443/', 'url_not_canonical'],
  ['https://127.0.0.1:0/', 'url_not_canonical'],
  ['https://127.0.0.1:0443/', 'url_not_canonical'],
  ['https://127.0.0.1:/', 'url_not_canonical'],
  ['https://127.0.0.1:PORT/a/../keys', 'url_not_canonical'],
  ['https://127.0.0.1:PORT/%2e%2e/keys', 'url_not_canonical'],
  ['https://127.0.0.1:PORT/./keys', 'url_not_canonical'],
  ['https://Issuer.Example/', 'url_not_canonical'],
  ['https://issuer.example./', 'url_not_canonical'],
  ['https://LOCALHOST:PORT/', 'url_not_canonical'],
  ['https://localhost.:PORT/', 'url_not_canonical'],
  ['https://127.0.0.1:PORT/keys"', 'url_not_canonical'],
];

/** Names, and the DNS answers of a hostile name server. */
const NAMES: readonly (readonly [string, readonly string[]])[] = [
  ['localhost', ['127.0.0.1']],
  ['localhost6', ['::1']],
  ['a.localhost', ['127.0.0.1', '::1']],
  ['127.0.0.1.nip.example', ['127.0.0.1']],
  ['metadata.google.internal', ['169.254.169.254']],
  ['instance-data.ec2.internal', ['169.254.169.254']],
  ['imds6.example', ['fd00:ec2::254']],
  ['wire-server.example', ['168.63.129.16']],
  ['kubernetes.default.svc', ['10.96.0.1']],
  ['redis', ['172.17.0.2']],
  ['router.example', ['192.168.1.1']],
  ['any.example', ['0.0.0.0']],
  ['any6.example', ['::']],
  ['mapped.example', ['::ffff:127.0.0.1']],
  ['mapped-public.example', ['::ffff:93.184.215.14']],
  ['nat64.example', ['64:ff9b::7f00:1']],
  ['local-nat64.example', ['64:ff9b:1::a00:1']],
  ['6to4.example', ['2002:7f00:1::']],
  ['teredo.example', ['2001:0:4136:e378:8000:63bf:80ff:fffe']],
  ['isatap.example', ['2a00:1450::5efe:7f00:1']],
  ['compatible.example', ['::127.0.0.1']],
  ['zoned.example', ['fe80::1%lo']],
  ['zoned-loopback.example', ['::1%lo']],
  ['first-public.example', ['93.184.215.14', '127.0.0.1']],
  ['last-public.example', ['127.0.0.1', '93.184.215.14']],
  ['public-and-6to4.example', ['2606:2800:21f:cb07::1', '2002:a00:1::']],
  ['many.example', ['93.184.215.14', '93.184.215.15', '93.184.215.16', '10.0.0.1']],
  ['not-an-address.example', ['localhost']],
  ['octal-answer.example', ['0177.0.0.1']],
  ['empty-answer.example', ['']],
  ['xn--lcalhost-v4a.example', ['127.0.0.1']],
];

export const HOSTILE_URLS: readonly HostileUrl[] = [
  ...FORBIDDEN_IPV4.map((host): HostileUrl => ({ url: `https://${host}:PORT/`, code: 'address_forbidden' })),
  ...FORBIDDEN_IPV6.map(
    (host): HostileUrl => ({ url: `https://[${host}]:PORT/`, code: 'address_forbidden' }),
  ),
  ...DISGUISES.map(
    (host): HostileUrl => ({
      url: `https://${host}:PORT/`,
      code: /^[\x21-\x7e]+$/.test(host) ? 'url_not_canonical' : 'url_malformed',
    }),
  ),
  ...CROOKED.map(([url, code]): HostileUrl => ({ url, code })),
  ...NAMES.map(
    ([host, addresses]): HostileUrl => ({
      url: `https://${host}:PORT/`,
      code: 'address_forbidden',
      addresses,
    }),
  ),
  { url: 'https://nowhere.example:PORT/', code: 'name_not_found', addresses: [] },
];
