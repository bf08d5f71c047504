/** The console cannot read src/protocol: its list of reasons has each of them. */
import { expect, test } from '@jest/globals';
import { reasonStroke } from '../../src/console/parts/series-color.ts';
import { REASONS } from '../../src/protocol/reasons.ts';

test.each(['light', 'dark'] as const)('each reason has a color of its own: %s', (scheme) => {
  const unknown = reasonStroke('unknown', scheme).color;
  const colors = REASONS.map((reason) => reasonStroke(reason, scheme).color);
  expect(colors).not.toContain(unknown);
  expect(new Set(colors).size).toBe(REASONS.length);
});

test('what a route denied and what it only observed have other lines', () => {
  const [denied, observed] = ['denied', 'observed'].map((outcome) =>
    reasonStroke('jti_replay', 'light', outcome),
  );
  expect(observed).not.toEqual(denied);
});
