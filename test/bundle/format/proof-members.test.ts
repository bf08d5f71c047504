/** What routes accept for verifiers that do not know each format of a proof: never more than before. */
import { expect, test } from '@jest/globals';
import { keepProofFormats } from '../../../src/bundle/format/proof-members.ts';
import { PROOF_FORMATS } from '../../../src/protocol/proof-format.ts';

const KEYED = ['http-message-signatures'];
const EITHER = ['transcript-v1', 'http-message-signatures'];
const OF_DPOP = { unbound: ['route', 'site', 'query'], dpop_nonce: 'required' };
const CONTENT = {
  origins: ['https://api.shop.example'],
  routes: [
    { route_id: 'default', freshness_class: 'bounded' },
    { route_id: 'keyed', freshness_class: 'bounded', accepted_proofs: KEYED },
    { route_id: 'either', freshness_class: 'realtime', accepted_proofs: EITHER },
    { route_id: 'dpop', freshness_class: 'bounded', accepted_proofs: ['dpop'], ...OF_DPOP },
    {
      route_id: 'also-dpop',
      freshness_class: 'bounded',
      accepted_proofs: ['transcript-v1', 'dpop'],
      ...OF_DPOP,
    },
    { route_id: 'written', freshness_class: 'realtime', accepted_proofs: ['transcript-v1'] },
  ],
};

test('all is kept for verifiers that know the formats', () => {
  expect(keepProofFormats(CONTENT, () => true)).toEqual(CONTENT);
});

test('without the member, a route accepts transcripts alone, or nothing when it did not accept these', () => {
  expect(keepProofFormats(CONTENT, () => false)).toEqual({
    origins: CONTENT.origins,
    routes: [
      { route_id: 'default', freshness_class: 'bounded' },
      { route_id: 'keyed', freshness_class: 'withheld' },
      { route_id: 'either', freshness_class: 'realtime' },
      { route_id: 'dpop', freshness_class: 'withheld' },
      { route_id: 'also-dpop', freshness_class: 'bounded' },
      { route_id: 'written', freshness_class: 'realtime' },
    ],
  });
  expect(keepProofFormats({ origins: [] }, () => false)).toEqual({ origins: [] });
});

test('no route accepts a format that it did not accept before, whichever formats are known', () => {
  const subsets = [0, 1, 2, 3, 4, 5, 6, 7].map((bits) =>
    PROOF_FORMATS.filter((_, index) => bits & (1 << index)),
  );
  for (const known of subsets) {
    const { routes } = keepProofFormats(CONTENT, (format) => known.includes(format));
    for (const [index, route] of (routes as typeof CONTENT.routes).entries()) {
      const before = CONTENT.routes[index]?.accepted_proofs ?? ['transcript-v1'];
      const after = route.freshness_class === 'withheld' ? [] : (route.accepted_proofs ?? ['transcript-v1']);
      expect(before).toEqual(expect.arrayContaining([...after]));
      expect('unbound' in route).toBe(after.includes('dpop'));
    }
  }
});
