/** Break-glass statements: which bytes are one, and which bundle and time one applies to. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  type BreakGlassIgnored,
  isBreakGlassInForce,
  MAX_BREAK_GLASS_SECONDS,
  openBreakGlass,
  whyIgnored,
} from '../../../src/bundle/compile/break-glass-statement.ts';
import type { BreakGlassStatement, Snapshot } from '../../../src/bundle/compile/snapshot.ts';
import { BundleError } from '../../../src/bundle/format/bundle-error.ts';
import { breakGlassContent, breakGlassDocument } from '../../support/bundle/break-glass.ts';
import { AUTH_SITE, NOW_SECONDS, newSigningKey } from '../../support/fixtures/bundle-content.ts';
import { compileSite, newSiteKeys, siteContent } from '../../support/fixtures/snapshot.ts';

const key = newSigningKey();
const snapshot: Snapshot = await compileSite(siteContent(newSiteKeys()));
const { head, revision } = snapshot;
const options = {
  file: 'break-glass.jws',
  authSite: AUTH_SITE,
  signers: { keys: [key.publicKey], threshold: 1 },
};
const open = (bytes: Buffer) => openBreakGlass(bytes, options);
const valid = { authSite: AUTH_SITE, revision, head, fromSeconds: NOW_SECONDS };
const document = breakGlassDocument(breakGlassContent(valid), [key]);

describe('a document', () => {
  it('is a statement of one revision, its times in seconds', () => {
    expect(open(document)).toEqual({
      revision,
      head,
      fromSeconds: NOW_SECONDS,
      untilSeconds: NOW_SECONDS + 3600,
      signers: [key.publicKey.thumbprint],
    });
  });

  it.each([
    [1, true],
    [MAX_BREAK_GLASS_SECONDS, true],
    [MAX_BREAK_GLASS_SECONDS + 1, false],
    [0, false],
    [-1, false],
  ])('may last %i s: %p', (durationSeconds, isValid) => {
    const untilSeconds = NOW_SECONDS + durationSeconds;
    const bytes = breakGlassDocument(breakGlassContent({ ...valid, untilSeconds }), [key]);
    if (isValid) expect(open(bytes).untilSeconds).toBe(untilSeconds);
    else expect(() => open(bytes)).toThrow(expect.objectContaining({ code: 'time_order', path: '/until' }));
  });

  it('with a changed byte is none, or still says the same', () => {
    const said = open(document);
    const at = fc.integer({ min: 0, max: document.length - 1 });
    fc.assert(
      fc.property(at, fc.integer({ min: 1, max: 255 }), (index, mask) => {
        const changed = Buffer.from(document);
        changed[index] = (changed[index] ?? 0) ^ mask;
        try {
          // Such as white space at the end.
          expect(open(changed)).toEqual(said);
        } catch (error) {
          if (!(error instanceof BundleError)) throw error;
        }
      }),
      { numRuns: 500 },
    );
  });
});

const statement: BreakGlassStatement = {
  revision,
  head,
  fromSeconds: NOW_SECONDS,
  untilSeconds: NOW_SECONDS + 60,
};

it.each<[string, Partial<BreakGlassStatement>, number, BreakGlassIgnored | undefined]>([
  ['the next revision', { revision: revision + 1 }, 0, 'other_revision'],
  ['the revision before', { revision: revision - 1 }, 0, 'other_revision'],
  ['another head', { head: 'A'.repeat(43) }, 0, 'other_head'],
  ['a second before', {}, -1, 'not_started'],
  ['its first second', {}, 0, undefined],
  ['its last second', {}, 59, undefined],
  ['the second after', {}, 60, 'ended'],
  ['a start before the freshness statement', { fromSeconds: snapshot.freshAsOfSeconds - 1 }, 0, 'superseded'],
  ['a start with the freshness statement', { fromSeconds: snapshot.freshAsOfSeconds }, 0, undefined],
  ['no number as start', { fromSeconds: Number.NaN }, 0, 'not_started'],
  ['no number as end', { untilSeconds: Number.NaN }, 0, 'ended'],
  ['no number as time', {}, Number.NaN, 'not_started'],
])('of %s', (_what, changes, afterSeconds, why) => {
  const changed = { ...statement, ...changes };
  const nowSeconds = NOW_SECONDS + afterSeconds;
  expect(whyIgnored(changed, snapshot, nowSeconds)).toBe(why);
  const stated = { ...snapshot, breakGlass: changed };
  expect(isBreakGlassInForce(stated, nowSeconds)).toBe(why === undefined);
});

it('is in force nowhere without one', () => {
  expect(isBreakGlassInForce(snapshot, NOW_SECONDS)).toBe(false);
});
