/** Tests the difference between two bundle contents: each kind of entry added, removed and changed, and nothing else. */
import { describe, expect, it } from '@jest/globals';
import { type Difference, diffContents } from '../../../src/bundle/authoring/content-diff.ts';
import { contentOfDraft } from '../../../src/bundle/authoring/site-content.ts';
import type { BundleContent } from '../../../src/bundle/format/schema.ts';
import { asContent } from '../../../src/bundle/format/shape.ts';
import { rejection } from '../../support/bundle/rejection.ts';
import {
  bundleContent,
  type Edit,
  edited,
  newSigningKey,
  newTestKeys,
} from '../../support/fixtures/bundle-content.ts';

const keys = newTestKeys();
const other = newSigningKey('ES256').publicKey;
const whole = bundleContent(keys);
const oauthIssuer = {
  issuer: 'https://login.shop.example',
  trust_domain: 'shop.example',
  keys: [{ kid: 'key-1', alg: 'ES256', jwk: other.jwk }],
};

const siteOf = (content: BundleContent) => contentOfDraft(content, content.derived_keys ?? [], 'bundle.yaml');
const changed = (...edits: Edit[]) => siteOf(asContent('bundle', edited(whole, ...edits), 'bundle.yaml'));
const shown = ({ change, kind, name, members }: Difference) => ({
  what: `${change} ${kind} ${name.join(' ')}`,
  members: Object.fromEntries(members.map(({ member, before, after }) => [member, [before, after]])),
});
const diff = (before: ReturnType<typeof siteOf>, after: ReturnType<typeof siteOf>) =>
  diffContents(before, after).map(shown);

describe('two contents', () => {
  it('that are one differ in nothing', () => {
    expect(diff(siteOf(whole), siteOf(whole))).toEqual([]);
  });

  it('differ neither by their place in a chain, nor by order, nor by what is said or left out as the default', () => {
    const otherWords = changed(
      { at: '/revision', put: 9 },
      { at: '/previous_head', put: 'A'.repeat(43) },
      { at: '/issued_at', put: '2026-11-22T04:00:00Z' },
      { at: '/skew_seconds', put: 5 },
      { at: '/single_verifier', put: false },
      { at: '/issuers/0/max_passport_ttl_seconds', put: 300 },
      { at: '/routes/0/access', put: 'read' },
      { at: '/routes/1/access', put: 'write' },
      { at: '/routes/0/body', put: 'bound' },
      { at: '/routes', put: [whole.routes[1], whole.routes[0]] },
      { at: '/route_sources', put: [whole.route_sources[1], whole.route_sources[0]] },
      { at: '/route_sources/1/allowed_sources', put: whole.route_sources[0]?.allowed_sources.toReversed() },
    );
    expect(diff(siteOf(whole), otherWords)).toEqual([]);
  });

  it.each<[what: string, edits: Edit[], expected: readonly string[]]>([
    ['a setting', [{ at: '/skew_seconds', put: 7 }], ['changed setting skew_seconds']],
    ['its end', [{ at: '/expires_at', put: '2027-01-01T00:00:00Z' }], ['changed setting expires_at']],
    [
      'its origins',
      [{ at: '/origins', put: ['https://a.example'] }],
      ['added setting origins https://a.example', 'removed setting origins https://api.shop.example'],
    ],
    [
      'an issuer',
      [{ at: '/issuers/0/key_binding', put: 'software' }],
      ['changed issuer https://broker.shop.example shop.example'],
    ],
    [
      'an issuer’s key',
      [
        { at: '/issuers/0/keys/0/jwk', put: other.jwk },
        { at: '/issuers/0/keys/0/alg', put: 'ES256' },
      ],
      ['changed issuer_key https://broker.shop.example broker-1'],
    ],
    [
      'an authorization server and its key',
      [{ at: '/oauth_issuers', put: [oauthIssuer] }],
      [
        'added oauth_issuer https://login.shop.example',
        'added oauth_issuer_key https://login.shop.example key-1',
      ],
    ],
    [
      'a blocked subject and a blocked key',
      [
        {
          at: '/blocked',
          put: [
            { issuer: 'https://broker.shop.example', subject: 'ci:a' },
            { issuer: 'https://broker.shop.example', holder_thumbprint: 'A'.repeat(43) },
          ],
        },
      ],
      [
        `added blocked issuer https://broker.shop.example holder_thumbprint ${'A'.repeat(43)}`,
        'added blocked issuer https://broker.shop.example subject ci:a',
      ],
    ],
    ['a client', [{ at: '/clients/0/subject', put: 'client:b' }], ['changed client billing']],
    ['a client’s context', [{ at: '/clients/0/context', put: {} }], ['changed client billing']],
    ['a grant', [{ at: '/clients/0/grants/0/access', put: 'read' }], ['changed grant billing orders']],
    [
      'another grant',
      [{ at: '/clients/0/grants/-', put: { resource: 'x', access: 'read' } }],
      ['added grant billing x'],
    ],
    ['a derived key', [{ at: '/derived_keys/0/status', put: 'revoked' }], ['changed derived_key dk_billing']],
    ['no derived key', [{ at: '/derived_keys', put: [] }], ['removed derived_key dk_billing']],
    ['a route', [{ at: '/routes/0/max_staleness_seconds', put: 60 }], ['changed route orders-read']],
    [
      'a source',
      [{ at: '/route_sources/1/allowed_sources/0/required_key_binding', put: 'attested_workload' }],
      [
        'added route_source orders-write issuer https://control.shop.example/sites/shop-eu-1 trust_domain shop.example subject_exact client:billing attested_workload',
        'removed route_source orders-write issuer https://control.shop.example/sites/shop-eu-1 trust_domain shop.example subject_exact client:billing software',
      ],
    ],
    [
      'an observation of unmatched requests',
      [
        { at: '/unmatched', put: 'observe' },
        { at: '/unmatched_until', put: '2027-01-01T00:00:00Z' },
      ],
      ['added setting unmatched', 'added setting unmatched_until'],
    ],
    [
      'a trust anchor source',
      [{ at: '/trust_anchor_sources', put: [{ id: 'tas_1', revision: 3, fingerprint: 'f' }] }],
      ['added trust_anchor_source tas_1'],
    ],
  ])('differ in %s', (_what, edits, expected) => {
    expect(diff(siteOf(whole), changed(...edits)).map(({ what }) => what)).toEqual(expected);
  });

  it('tell both values of a member, and of a key its thumbprint alone', () => {
    const after = changed(
      { at: '/derived_keys/0/jwk', put: other.jwk },
      { at: '/derived_keys/0/status', put: 'revoked' },
    );
    const [found] = diff(siteOf(whole), after);
    expect(found?.members).toEqual({
      status: ['"active"', '"revoked"'],
      thumbprint: [`"${keys.derived.publicKey.thumbprint}"`, `"${other.thumbprint}"`],
    });
    expect(JSON.stringify(diff(siteOf(whole), after))).not.toContain(other.jwk.x);
  });

  it('do not differ in an end that one of them does not name', () => {
    const after = changed({ at: '/expires_at', put: '2027-01-01T00:00:00Z' });
    expect(diffContents(siteOf(whole), after, { comparesExpiry: false })).toEqual([]);
  });

  it('with two entries of one name are refused: one of them would not be looked at', async () => {
    const twice = changed({ at: '/routes/-', put: whole.routes[0] });
    expect(await rejection(() => diffContents(siteOf(whole), twice))).toMatchObject({
      code: 'duplicate',
    });
    expect(
      await rejection(() => changed({ at: '/derived_keys/-', put: whole.derived_keys?.[0] })),
    ).toMatchObject({ code: 'duplicate' });
  });
});
