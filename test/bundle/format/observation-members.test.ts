/** Which members of observations a content keeps. */
import { expect, test } from '@jest/globals';
import { keepObservations, withoutObservations } from '../../../src/bundle/format/observation-members.ts';

const CONTENT = {
  origins: ['https://api.shop.example'],
  unmatched: 'observe',
  unmatched_until: 'soon',
  routes: [
    { route_id: 'a', enforcement: 'observe', observe_until: 'soon' },
    { route_id: 'b', enforcement: 'observe', observe_until: 'late' },
    { route_id: 'c', enforcement: 'enforce' },
    { route_id: 'd', observe_until: 'soon' },
    { route_id: 'e' },
  ],
};
const ENFORCED = ['a', 'b', 'c', 'd', 'e'].map((route_id) => ({ route_id }));

test('keeps what is observed until an accepted end, and the rest of the content', () => {
  const [, ...others] = ENFORCED;
  const routes = [CONTENT.routes[0], ...others];
  expect(keepObservations(CONTENT, (until) => until === 'soon')).toEqual({ ...CONTENT, routes });
});

test('without observations, no member of them is left', () => {
  expect(withoutObservations(CONTENT)).toEqual({ origins: CONTENT.origins, routes: ENFORCED });
  expect(withoutObservations({ origins: [] })).toEqual({ origins: [] });
});
