/** X509-SVID sections 2 to 5: what a leaf and its path must be. Each case has one fault. */
import { describe, expect, test } from '@jest/globals';
import { GeneralName, KeyUsageFlags, Name } from '@peculiar/asn1-x509';
import type { SpiffeProblemCode } from '../../src/spiffe/spiffe-problem.ts';
import { verifyX509Svid } from '../../src/spiffe/x509-svid.ts';
import {
  bundlesOf,
  CA_USAGE,
  type CertificateContent,
  extension,
  LEAF_USAGE,
  SpiffeAuthority,
} from '../support/fakes/spiffe-authority.ts';

const HOUR_MS = 3_600_000;
const authority = SpiffeAuthority.create('shop.example');
const partner = SpiffeAuthority.create('partner.example');
const bundles = bundlesOf(authority, partner);

function verify(chainDer: readonly Uint8Array[], nowMs = Date.now(), trusted = bundles) {
  return verifyX509Svid(chainDer, trusted, nowMs);
}

function codeOf(
  chainDer: readonly Uint8Array[],
  nowMs = Date.now(),
  trusted = bundles,
): SpiffeProblemCode | 'svid' {
  const result = verify(chainDer, nowMs, trusted);
  return result.kind === 'svid' ? 'svid' : result.code;
}

describe('an X.509-SVID', () => {
  test.each(['P-256', 'P-384', 'Ed25519', 'RSA-2048'] as const)(
    'with a key of kind %s is accepted',
    (key) => {
      const svid = authority.issueSvid('/orders', { key });
      const result = verify(svid.chainDer);
      expect(result).toMatchObject({
        kind: 'svid',
        spiffeId: 'spiffe://shop.example/orders',
        trustDomain: 'shop.example',
      });
    },
  );

  test('through two intermediates is accepted, and ends with the first of them to end', () => {
    const notAfterMs = Math.floor((Date.now() + 60_000) / 1000) * 1000;
    const intermediate = authority.issueIntermediate({ notAfterMs }).issueIntermediate();
    const svid = intermediate.issueSvid('/orders');
    expect(svid.chainDer).toHaveLength(3);
    expect(verify(svid.chainDer)).toMatchObject({ kind: 'svid', notAfterMs: notAfterMs + 999 });
  });

  test('with its root at the end of the chain is accepted', () => {
    expect(codeOf([...authority.issueSvid('/orders').chainDer, authority.certificateDer])).toBe('svid');
  });

  test('of a root that was prepared beside the old one is accepted', () => {
    const prepared = SpiffeAuthority.create('shop.example');
    const both = bundlesOf();
    const update = both.addSource(['rotated.example']);
    update([
      {
        ...authority.bundle,
        trustDomain: 'rotated.example',
        x509Authorities: [...authority.bundle.x509Authorities, ...prepared.bundle.x509Authorities],
      },
    ]);
    expect(codeOf(prepared.issueSvid('spiffe://rotated.example/orders').chainDer, Date.now(), both)).toBe(
      'svid',
    );
  });
});

const LEAF_FAULTS: readonly (readonly [string, CertificateContent, SpiffeProblemCode])[] = [
  ['that is a CA', { isCa: true }, 'svid_not_leaf'],
  ['that may sign certificates', { keyUsage: LEAF_USAGE | KeyUsageFlags.keyCertSign }, 'svid_not_leaf'],
  ['that may sign revocation lists', { keyUsage: LEAF_USAGE | KeyUsageFlags.cRLSign }, 'svid_not_leaf'],
  ['without key usage', { keyUsage: null }, 'svid_key_usage'],
  ['whose key usage is not critical', { keyUsageCritical: false }, 'svid_key_usage'],
  ['that may not sign', { keyUsage: KeyUsageFlags.keyEncipherment }, 'svid_key_usage'],
  ['for servers only', { purposes: ['1.3.6.1.5.5.7.3.1'] }, 'svid_key_usage'],
  ['for signing code', { purposes: ['1.3.6.1.5.5.7.3.3'] }, 'svid_key_usage'],
  ['with a short RSA key', { key: 'RSA-1024' }, 'svid_key_usage'],
  ['signed over SHA-1', { digest: 'sha1' }, 'svid_key_usage'],
  ['without a URI', { uris: [] }, 'svid_names'],
  ['with a DNS name in place of a URI', { uris: [], dnsNames: ['shop.example'] }, 'svid_names'],
  ['with two URIs', { uris: ['spiffe://shop.example/a', 'spiffe://shop.example/b'] }, 'svid_names'],
  ['with another URI', { uris: ['spiffe://shop.example/a', 'https://shop.example/'] }, 'svid_names'],
  ['that has expired', { notAfterMs: Date.now() - 5_000 }, 'svid_expired'],
  ['that is not valid yet', { notBeforeMs: Date.now() + HOUR_MS / 2 }, 'svid_not_yet_valid'],
  [
    'with an unknown critical extension',
    { extensions: [extension('1.2.3.4', new GeneralName({ dNSName: 'x' }), true)] },
    'svid_constraints',
  ],
  [
    'with an extension twice',
    { extensions: [extension('2.5.29.37', new GeneralName({ dNSName: 'x' }), false)] },
    'svid_untrusted',
  ],
];

const READ_EXTENSIONS = [
  ['basic constraints', '2.5.29.19'],
  ['key usage', '2.5.29.15'],
  ['extended key usage', '2.5.29.37'],
  ['subject alternative name', '2.5.29.17'],
  ['name constraints', '2.5.29.30'],
] as const;

describe('bytes that readers see differently', () => {
  const nameConstraints = { permitted: [new GeneralName({ uniformResourceIdentifier: 'shop.example' })] };
  const content = { nameConstraints, purposes: ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2'] };

  test('are not in the certificates of these tests', () => {
    expect(codeOf(authority.issueIntermediate(content).issueSvid('/orders', content).chainDer)).toBe('svid');
  });

  test.each(READ_EXTENSIONS)('behind the value of %s are refused', (_name, trailingBytesIn) => {
    const faulty = { ...content, trailingBytesIn };
    expect(codeOf(authority.issueSvid('/orders', faulty).chainDer)).toBe('svid_malformed');
    const signer = authority.issueIntermediate(faulty);
    expect(codeOf(signer.issueSvid('/orders').chainDer)).toBe('svid_malformed');
    const root = SpiffeAuthority.create('shop.example', faulty);
    expect(() => bundlesOf(root)).toThrow();
  });

  test.each([0, 1] as const)('as extensions of version %i + 1 are refused', (version) => {
    expect(codeOf(authority.issueSvid('/orders', { version }).chainDer)).toBe('svid_malformed');
    const signer = authority.issueIntermediate({ version });
    expect(['svid_malformed', 'svid_untrusted']).toContain(codeOf(signer.issueSvid('/orders').chainDer));
    expect(() => bundlesOf(SpiffeAuthority.create('shop.example', { version }))).toThrow();
  });
});

test.each(LEAF_FAULTS)('a leaf %s is refused', (_name, content, code) => {
  expect(codeOf(authority.issueSvid('/orders', content).chainDer)).toBe(code);
});

test.each([
  ['spiffe://shop.example', 'svid_id'],
  ['spiffe://shop.example/', 'svid_id'],
  ['spiffe://shop.example/a/', 'svid_id'],
  ['spiffe://shop.example/a//b', 'svid_id'],
  ['spiffe://shop.example/a/./b', 'svid_id'],
  ['spiffe://shop.example/a/../b', 'svid_id'],
  ['spiffe://shop.example/a%2fb', 'svid_id'],
  ['spiffe://shop.example/a?b', 'svid_id'],
  ['spiffe://shop.example/a#b', 'svid_id'],
  ['spiffe://Shop.example/a', 'svid_id'],
  ['SPIFFE://shop.example/a', 'svid_id'],
  ['spiffe://shop.example:443/a', 'svid_id'],
  ['spiffe://user@shop.example/a', 'svid_id'],
  ['spiffe://shop.example/a b', 'svid_id'],
  ['spiffe://shop.example/a\u0000', 'svid_id'],
  ['https://shop.example/a', 'svid_id'],
  ['spiffe://shop.example/spire', 'svid_reserved_id'],
  ['spiffe://shop.example/spire/server', 'svid_reserved_id'],
  ['spiffe://shop.example/spire/agent/x', 'svid_reserved_id'],
  ['spiffe://shop.example/spirewise', 'svid'],
  ['spiffe://other.example/a', 'trust_domain_unknown'],
])('the ID %j gives %s', (spiffeId, code) => {
  expect(codeOf(authority.issueSvid(spiffeId).chainDer)).toBe(code);
});

test('an ID of more than 2048 bytes is refused', () => {
  expect(codeOf(authority.issueSvid(`/${'a'.repeat(2048)}`).chainDer)).toBe('svid_id');
});

describe('a path', () => {
  test("from another trust domain's authority is refused, although that authority is trusted for its own", () => {
    expect(codeOf(partner.issueSvid('spiffe://shop.example/orders').chainDer)).toBe('svid_untrusted');
    expect(codeOf(partner.issueSvid('/orders').chainDer)).toBe('svid');
  });

  test('of an authority with the same name and another key is refused', () => {
    const [named, impostor] = [1, 2].map(() =>
      SpiffeAuthority.create('shop.example', { commonName: 'root' }),
    );
    if (named === undefined || impostor === undefined) throw new Error('unreachable');
    expect(codeOf(impostor.issueSvid('/orders').chainDer, Date.now(), bundlesOf(named))).toBe(
      'svid_untrusted',
    );
    expect(
      codeOf(
        [...impostor.issueSvid('/orders').chainDer, impostor.certificateDer],
        Date.now(),
        bundlesOf(named),
      ),
    ).toBe('svid_untrusted');
  });

  test('without its intermediate, or with another order, is refused', () => {
    const svid = authority.issueIntermediate().issueIntermediate().issueSvid('/orders');
    const [leaf, lower, upper] = svid.chainDer;
    if (leaf === undefined || lower === undefined || upper === undefined) throw new Error('unreachable');
    expect(codeOf([leaf, upper])).toBe('svid_untrusted');
    expect(codeOf([leaf, upper, lower])).toBe('svid_untrusted');
    expect(codeOf([leaf, lower, upper])).toBe('svid');
  });

  test('through a leaf that signs is refused', () => {
    const svid = authority.issueIntermediate({ isCa: false, keyUsage: LEAF_USAGE }).issueSvid('/orders');
    expect(codeOf(svid.chainDer)).toBe('svid_untrusted');
  });

  test.each<readonly [string, CertificateContent, SpiffeProblemCode]>([
    ['that is no CA', { isCa: false, keyUsage: CA_USAGE }, 'svid_constraints'],
    ['without key usage', { keyUsage: null }, 'svid_constraints'],
    ['that has expired', { notAfterMs: Date.now() - 5_000 }, 'svid_expired'],
    ['for servers only', { purposes: ['1.3.6.1.5.5.7.3.1'] }, 'svid_constraints'],
    ['with the ID of a workload', { uris: ['spiffe://shop.example/orders'] }, 'svid_constraints'],
    ['signed over SHA-1', { digest: 'sha1' }, 'svid_key_usage'],
    ['with a short RSA key', { key: 'RSA-1024' }, 'svid_untrusted'],
  ])('through an intermediate %s is refused', (_name, content, code) => {
    expect(codeOf(authority.issueIntermediate(content).issueSvid('/orders').chainDer)).toBe(code);
  });

  test('longer than a signer allows is refused', () => {
    const signer = authority.issueIntermediate({ pathLength: 0 });
    expect(codeOf(signer.issueSvid('/orders').chainDer)).toBe('svid');
    expect(codeOf(signer.issueIntermediate().issueSvid('/orders').chainDer)).toBe('svid_constraints');
  });

  test('under a root that has expired is refused', () => {
    const expired = SpiffeAuthority.create('shop.example', { notAfterMs: Date.now() - 5_000 });
    expect(codeOf(expired.issueSvid('/orders').chainDer, Date.now(), bundlesOf(expired))).toBe(
      'svid_expired',
    );
  });

  test('at its last second is accepted, and one millisecond later refused', () => {
    const notAfterMs = Math.floor(Date.now() / 1000) * 1000 + 60_000;
    const { chainDer } = authority.issueSvid('/orders', { notAfterMs });
    expect(codeOf(chainDer, notAfterMs + 999)).toBe('svid');
    expect(codeOf(chainDer, notAfterMs + 1_000)).toBe('svid_expired');
    expect(codeOf(chainDer, Number.NaN)).toBe('svid_not_yet_valid');
  });
});

const uri = (uniformResourceIdentifier: string) => new GeneralName({ uniformResourceIdentifier });
const directory = new GeneralName({ directoryName: new Name() });
const dns = (dNSName: string) => new GeneralName({ dNSName });

test.each([
  ['a permitted trust domain', { permitted: [uri('shop.example')] }, {}, 'svid'],
  ['another permitted trust domain', { permitted: [uri('partner.example')] }, {}, 'svid_constraints'],
  ['permitted trust domains below', { permitted: [uri('.example')] }, {}, 'svid'],
  ['permitted trust domains below its own', { permitted: [uri('.shop.example')] }, {}, 'svid_constraints'],
  ['an excluded trust domain', { excluded: [uri('shop.example')] }, {}, 'svid_constraints'],
  ['another excluded trust domain', { excluded: [uri('partner.example')] }, {}, 'svid'],
  ['a permitted DNS name', { permitted: [dns('shop.example')] }, { dnsNames: ['a.shop.example'] }, 'svid'],
  [
    'another permitted DNS name',
    { permitted: [dns('shop.example')] },
    { dnsNames: ['myshop.example'] },
    'svid_constraints',
  ],
  [
    'permitted e-mail addresses, which it has none of',
    { permitted: [new GeneralName({ rfc822Name: 'shop.example' })] },
    {},
    'svid',
  ],
  [
    'a permitted directory, which holds its subject or not',
    { permitted: [directory] },
    {},
    'svid_constraints',
  ],
] as const)(
  '%s in name constraints gives the result of RFC 5280',
  (_name, nameConstraints, content, code) => {
    const signer = authority.issueIntermediate({ nameConstraints });
    expect(codeOf(signer.issueSvid('/orders', content).chainDer)).toBe(code);
  },
);

describe('name constraints that equal no host', () => {
  test.each([
    'spiffe://shop.example',
    'spiffe://shop.example/',
    'https://shop.example/a',
    'shop.example/a',
    'shop.example:443',
    'shop.example.',
    '*.example',
    '..example',
    'shop example',
  ])('%s: refused, permitted or excluded, as URI or DNS name, at an intermediate or the root', (base) => {
    for (const name of [uri(base), dns(base)]) {
      for (const nameConstraints of [{ permitted: [name] }, { excluded: [name] }]) {
        const signer = authority.issueIntermediate({ nameConstraints });
        expect(codeOf(signer.issueSvid('/orders').chainDer)).toBe('svid_constraints');
        const root = SpiffeAuthority.create('shop.example', { nameConstraints });
        expect(codeOf(root.issueSvid('/orders').chainDer, Date.now(), bundlesOf(root))).toBe(
          'svid_constraints',
        );
      }
    }
  });

  test('an empty URI is one of them, an empty DNS name holds all', () => {
    const codeWith = (excluded: GeneralName) =>
      codeOf(
        authority.issueIntermediate({ nameConstraints: { excluded: [excluded] } }).issueSvid('/orders')
          .chainDer,
      );
    expect([codeWith(uri('')), codeWith(dns(''))]).toEqual(['svid_constraints', 'svid']);
  });
});

describe('bytes that are no chain', () => {
  const [leaf = Buffer.alloc(0)] = authority.issueSvid('/orders').chainDer;
  test.each([
    ['nothing', []],
    ['an empty certificate', [Buffer.alloc(0)]],
    ['text', [Buffer.from('-----BEGIN CERTIFICATE-----')]],
    ['a byte too many', [Buffer.concat([leaf, Buffer.alloc(1)])]],
    ['a byte too few', [leaf.subarray(0, -1)]],
    ['a broken intermediate', [leaf, Buffer.alloc(3)]],
    ['nine certificates', Array.from({ length: 9 }, () => leaf)],
    ['a huge one', [Buffer.alloc(20_000)]],
  ])('%s is refused', (_name, chain) => {
    expect(codeOf(chain)).toBe('svid_malformed');
  });
});
