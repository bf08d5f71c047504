/** Which addresses `--http-trusted-proxy` trusts. */
import { expect, it } from '@jest/globals';
import { parseTrustedPeers } from '../../../src/enforcement/ext-authz-http/trusted-peers.ts';

it.each<readonly [string, string | undefined, boolean]>([
  ['10.0.0.0/8', '10.1.2.3', true],
  ['10.0.0.0/8', '::ffff:10.1.2.3', true],
  ['10.0.0.0/8', '11.0.0.1', false],
  ['10.0.0.0/8', '::ffff:11.0.0.1', false],
  ['10.0.0.7/32', '10.0.0.8', false],
  ['0.0.0.0/1', '::1', false],
  ['fd00::/64', 'fd00::1', true],
  ['fd00::/64', 'fd00:0:0:1::1', false],
  ['127.0.0.1/32', undefined, false],
  ['127.0.0.1/32', '', false],
])('%s, %s: %s', (network, address, expected) => {
  const peers = parseTrustedPeers([network, '192.0.2.1/32']);
  if (!('includes' in peers)) throw new Error(`${peers.invalid} is refused`);
  expect(peers.includes(address)).toBe(expected);
});

it.each([
  '',
  '10.0.0.0',
  '0.0.0.0/0',
  '::/0',
  '10.0.0.0/33',
  '10.0.0.0/-1',
  '10.0.0.0/08',
  '10.0.0/8',
  'fd00::/129',
  '10.0.0.0/8/8',
  'localhost/32',
  '10.0.0.0/ 8',
])('refuses %j', (network) => {
  expect(parseTrustedPeers(['192.0.2.1/32', network])).toEqual({ invalid: network });
});
