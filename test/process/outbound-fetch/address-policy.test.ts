import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  isSameAddress,
  judgeAddress,
  parseIssuerNetwork,
} from '../../../src/process/outbound-fetch/address-policy.ts';
import { FORBIDDEN_IPV4, FORBIDDEN_IPV6 } from '../../support/control/hostile-urls.ts';
import { networks } from '../../support/control/issuers-fixture.ts';

const kindOf = (address: string, ...cidrs: readonly string[]) =>
  judgeAddress(address, networks(...cidrs)).kind;

describe('addresses', () => {
  it.each([
    '1.1.1.1',
    '8.8.8.8',
    '9.255.255.255',
    '11.0.0.0',
    '93.184.215.14',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.0',
    '168.63.129.15',
    '169.253.255.255',
    '169.255.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '192.0.1.0',
    '192.167.255.255',
    '192.169.0.0',
    '198.17.255.255',
    '198.20.0.0',
    '203.0.112.255',
    '223.255.255.255',
    '2001:200::1',
    '2003::1',
    '2600::1',
    '2606:4700:4700::1111',
    '2a00:1450:4001:830::200e',
    '2001:4860:4860::8888',
  ])('%s is public', (address) => {
    expect(kindOf(address)).toBe('allowed');
  });

  it.each([...FORBIDDEN_IPV4, ...FORBIDDEN_IPV6])('%s is not', (address) => {
    expect(kindOf(address)).toBe('forbidden');
  });

  it.each([
    '',
    'localhost',
    '1.1.1',
    '1.1.1.1.1',
    '01.1.1.1',
    '0x1.1.1.1',
    '16843009',
    ' 1.1.1.1',
    '1.1.1.1 ',
    '1.1.1.1/32',
    '2606:4700::1%eth0',
    '[2606:4700::1]',
    '2606:4700:::1',
    '::ffff:1.1.1.1',
    '2606:4700::1.1.1.1.1',
  ])('%j is none that may be connected to', (address) => {
    expect(kindOf(address)).toBe('forbidden');
  });

  it('outside 2000::/3 nothing is public, whatever its bits', () => {
    const group = fc.integer({ min: 0, max: 0xffff });
    fc.assert(
      fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
        const first = groups[0] ?? 0;
        fc.pre(first < 0x2000 || first > 0x3fff);
        return kindOf(groups.map((part) => part.toString(16)).join(':')) === 'forbidden';
      }),
    );
  });

  it('an IPv4 address inside a 6to4, NAT64, mapped or Teredo address never makes it public', () => {
    const byte = fc.integer({ min: 0, max: 255 });
    fc.assert(
      fc.property(byte, byte, byte, byte, (a, b, c, d) => {
        const hex = [(a << 8) | b, (c << 8) | d].map((part) => part.toString(16)).join(':');
        return [
          `2002:${hex}::1`,
          `64:ff9b::${hex}`,
          `64:ff9b:1::${hex}`,
          `::ffff:${hex}`,
          `2001:0:${hex}::1`,
          `::${hex}`,
        ].every((address) => kindOf(address) === 'forbidden');
      }),
    );
  });
});

describe('a range opened on purpose', () => {
  it.each([
    ['10.20.0.0/16', '10.20.255.255', '10.21.0.0'],
    ['127.0.0.1/32', '127.0.0.1', '127.0.0.2'],
    ['fd00:1::/32', 'fd00:1::5', 'fd00:2::5'],
    ['::1/128', '::1', '::2'],
    ['64:ff9b::/96', '64:ff9b::808:808', '64:ff9b:1::1'],
  ])('%s opens %s, not %s', (cidr, inside, outside) => {
    expect(kindOf(inside, cidr)).toBe('allowed');
    expect(kindOf(outside, cidr)).toBe('forbidden');
  });

  it('is of its own family, and never opens a mapped or zoned spelling', () => {
    expect(kindOf('::ffff:127.0.0.1', '127.0.0.0/8', '::/0')).toBe('forbidden');
    expect(kindOf('::127.0.0.1', '127.0.0.0/8')).toBe('forbidden');
    expect(kindOf('fe80::1%lo', 'fe80::/10')).toBe('forbidden');
    expect(kindOf('127.0.0.1', '::/0')).toBe('forbidden');
  });

  it('takes nothing away', () => {
    expect(kindOf('1.1.1.1', '10.0.0.0/8')).toBe('allowed');
  });

  it.each([
    '',
    '10.0.0.0',
    '10.0.0.0/',
    '10.0.0.0/33',
    '10.0.0.1/8',
    '10/8',
    '0x0a000000/8',
    '010.0.0.0/8',
    'fd00::/129',
    'fd00::1/16',
    'fe80::%lo/10',
    '10.0.0.0/08',
    '10.0.0.0/8/8',
    '10.0.0.0/-1',
    '10.0.0.0/8 ',
    'issuer.example/8',
  ])('is not %j', (text) => {
    expect(parseIssuerNetwork(text)).toBeUndefined();
  });
});

describe('two spellings', () => {
  it('of one address are the same address', () => {
    expect(isSameAddress('::1', '0:0:0:0:0:0:0:1')).toBe(true);
    expect(isSameAddress('2606:4700:0::1', '2606:4700::0001')).toBe(true);
  });

  it('of two addresses are not, nor is what is no address', () => {
    expect(isSameAddress('::1', '::2')).toBe(false);
    expect(isSameAddress('::ffff:1.1.1.1', '1.1.1.1')).toBe(false);
    expect(isSameAddress('localhost', 'localhost')).toBe(false);
  });
});
