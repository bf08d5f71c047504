/**
 * Documents that are properly made and come from the wrong hands, at the wrong time or in the wrong place, at every way into
 * a verifier: none is taken. What was loaded serves until its freshness ends, and not a second longer.
 */
import { afterEach, describe, expect, it } from '@jest/globals';
import type { BundleLoader } from '../../../../src/verifier/loading/bundle-loader.ts';
import { misusedStatements, misusedSteps, misusedWholes } from './misuse.ts';
import { AS_OF_SECONDS, MAX_STALENESS_SECONDS, newSignedChain } from './signed-chain.ts';
import { loadedAfter } from './stations/directory-station.ts';
import {
  type Standing,
  standingByControl,
  standingByDirectory,
  standingByState,
} from './stations/standing.ts';
import { loadedOf, requestOutcome } from './stations/station.ts';

const chain = newSignedChain();
const STALE = 'stale_bundle_fail_closed/stale 503';

let standing: Standing | undefined;
afterEach(() => standing?.close());

describe.each([
  ['the local directory', standingByDirectory],
  ['a hostile Control', standingByControl],
] as const)('from %s', (_name, open) => {
  it('nothing that is not to be taken changes what is loaded, which serves until it is stale', async () => {
    const end = await loadedAfter(chain, 'freshness.jws');
    standing = await open(chain);
    let loader: BundleLoader | undefined;
    for (const step of misusedSteps(chain)) {
      loader = await standing.step(step);
      expect([step.why, loadedOf(loader.snapshot)]).toEqual([step.why, end]);
      expect([step.why, loader.status().problem?.error.code]).toEqual([step.why, step.code]);
    }
    for (const { bytes, code, why } of misusedWholes(chain)) {
      loader = await standing.whole(bytes);
      expect([why, loadedOf(loader.snapshot)]).toEqual([why, end]);
      expect([why, loader.status().problem?.error.code]).toEqual([why, code]);
    }
    for (const { bytes, code, why } of misusedStatements(chain)) {
      loader = await standing.statement(bytes);
      const { freshnessIgnored, freshnessProblem } = loader.status();
      expect([why, loadedOf(loader.snapshot)]).toEqual([why, end]);
      // The verifier also checks an earlier statement again and again, and may report that one instead.
      if (code !== undefined) expect([freshnessProblem?.error.code, freshnessIgnored]).toContain(code);
    }
    const last = AS_OF_SECONDS + MAX_STALENESS_SECONDS;
    expect(requestOutcome(chain, loader)).toBe('allowed');
    expect(requestOutcome(chain, loader, last)).toBe('allowed');
    expect(requestOutcome(chain, loader, last + 1)).toBe(STALE);
  });
});

describe('from the state directory', () => {
  it('a whole bundle in the place of the one that was kept is refused; nothing is decided', async () => {
    standing = await standingByState(chain);
    for (const { bytes, code, why } of misusedWholes(chain)) {
      const loader = await standing.whole(bytes);
      if (code === 'expired') {
        // Nothing else is loaded: the outcome says why the verifier serves no request.
        expect(requestOutcome(chain, loader)).toBe('stale_bundle_fail_closed/expired 503');
        continue;
      }
      expect([why, loader.status().problem?.error.code]).toEqual([why, code]);
      expect(requestOutcome(chain, loader)).toBe('bundle_policy_missing 503');
    }
  });

  it('a step after those that were kept is refused, and they serve', async () => {
    const end = await loadedAfter(chain, 'freshness.jws');
    standing = await standingByState(chain);
    for (const step of misusedSteps(chain).filter(
      ({ code, kind }) => code !== 'expired' && kind === 'delta',
    )) {
      const loader = await standing.step(step);
      expect([step.why, loadedOf(loader.snapshot)]).toEqual([step.why, end]);
      expect([step.why, loader.status().problem?.error.code]).toEqual([step.why, step.code]);
      expect(requestOutcome(chain, loader)).toBe('allowed');
    }
  });

  it('a statement makes nothing younger than it is', async () => {
    standing = await standingByState(chain);
    const [older, ...others] = misusedStatements(chain);
    const replayed = (await standing.statement(older?.bytes ?? Buffer.alloc(0))).snapshot;
    expect(replayed?.freshAsOfSeconds).toBeLessThan(AS_OF_SECONDS);
    for (const { bytes, code, why } of others) {
      const loader = await standing.statement(bytes);
      const { freshnessIgnored, freshnessProblem } = loader.status();
      expect([why, freshnessProblem?.error.code ?? freshnessIgnored]).toEqual([why, code]);
      expect(loadedOf(loader.snapshot)).toEqual(await loadedAfter(chain, 'link-4.jws'));
    }
  });
});
