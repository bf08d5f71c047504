/**
 * Every row of the table of bindings attacked, at least 200 attacks on each format, each with the code that it gets: `codes/`. After a
 * change of the lists `PROOFGATE_TEST_WRITE_RESULTS=1` writes the codes again; read the difference.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Snapshot } from '../../../../src/bundle/compile/snapshot.ts';
import { NOW_SECONDS } from '../../../support/fixtures/bundle-content.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../../../support/fixtures/test-verifier.ts';
import { type Attack, BINDINGS, factsOfSent, type Sent } from './attack.ts';
import { DPOP_ATTACKS, DPOP_CONTROLS, DPOP_NONCES } from './dpop-attacks.ts';
import { HTTP_SIGNATURE_ATTACKS, HTTP_SIGNATURE_CONTROLS } from './http-signature-attacks.ts';
import { attackedSite } from './requests.ts';
import { TRANSCRIPT_ATTACKS, TRANSCRIPT_CONTROLS } from './transcript-attacks.ts';

const FORMATS: readonly (readonly [string, readonly Attack[], readonly Sent[]])[] = [
  ['transcript-v1', TRANSCRIPT_ATTACKS, TRANSCRIPT_CONTROLS],
  ['http-message-signatures', HTTP_SIGNATURE_ATTACKS, HTTP_SIGNATURE_CONTROLS],
  ['dpop', DPOP_ATTACKS, DPOP_CONTROLS],
];
const WRITES = process.env.PROOFGATE_TEST_WRITE_RESULTS === '1';

let snapshot: Snapshot;
beforeAll(async () => {
  snapshot = await attackedSite();
});

/** Outcomes of requests at one verifier, and the claims that reached its replay store. */
function decide(requests: readonly Sent[]) {
  const { internalErrors, store, verifier } = createTestVerifier({
    ...{ snapshot, nowSeconds: NOW_SECONDS },
    dpopNonces: DPOP_NONCES,
  });
  const outcomes = requests.map((sent) => outcomeOf(checkNow(verifier, factsOfSent(sent))));
  expect(internalErrors).toEqual([]);
  return { outcomes, claims: store.claims.length };
}

describe.each(FORMATS)('%s', (format, attacks, controls) => {
  it('allows what the attacks change', () => {
    for (const control of controls) expect(decide([control]).outcomes).toEqual(['allowed']);
  });

  it('denies every attack with its code, and only replays reach the store', () => {
    const codes: [string, string][] = [];
    const wrong: unknown[] = [];
    for (const { binding, make, name } of attacks) {
      const requests = make();
      const { claims, outcomes } = decide(requests);
      const [outcome = '', ...before] = outcomes.reverse();
      const expectedClaims = before.length + (outcome === 'jti_replay 403' ? 1 : 0);
      const isFault = outcome === 'allowed' || before.some((one) => one !== 'allowed');
      if (isFault || claims !== expectedClaims) wrong.push({ name, outcome, before, claims });
      codes.push([`${binding} | ${name}`, outcome]);
    }
    expect(wrong).toEqual([]);
    const file = new URL(`codes/${format}.json`, import.meta.url);
    if (WRITES) writeFileSync(file, `${JSON.stringify(Object.fromEntries(codes), undefined, 2)}\n`);
    expect(Object.fromEntries(codes)).toEqual(JSON.parse(readFileSync(file, 'utf8')));
  });

  it('has at least 200 attacks, of every row, no two with one name or one request', () => {
    expect(attacks.length).toBeGreaterThanOrEqual(200);
    // A route with signed headers takes DPoP only where it gives them up (compile-dpop.ts).
    const rows = BINDINGS.filter((row) => format !== 'dpop' || row !== 'headers');
    expect(rows.filter((row) => !attacks.some(({ binding }) => binding === row))).toEqual([]);
    const [names, requests] = [new Set<string>(), new Map<string, string>()];
    const repeated: unknown[] = [];
    for (const { make, name } of attacks) {
      const bytes = JSON.stringify(make());
      const same = requests.get(bytes);
      if (same !== undefined || names.has(name)) repeated.push([name, same]);
      names.add(name);
      requests.set(bytes, name);
    }
    expect(repeated).toEqual([]);
  });
});
