/** A passport whose signature was verified before is judged as if it came for the first time. */
import { describe, expect, it } from '@jest/globals';
import type { Snapshot } from '../../../src/bundle/compile/snapshot.ts';
import { passportSha256 } from '../../../src/protocol/passport.ts';
import { decide } from '../../../src/verifier/decision/decide.ts';
import {
  createPassportCache,
  type PassportCache,
} from '../../../src/verifier/decision/facts/passport-cache.ts';
import { CONSUMED } from '../../../src/verifier/replay/store.ts';
import { requestWith, snapshotWith, TABLE_CALLERS } from '../../support/cases/faulty-site.ts';
import { faultsOf } from '../../support/cases/one-fault.ts';
import { scriptedReplayStore } from '../../support/fakes/replay-store.ts';
import { NOW_SECONDS, newSigningKey } from '../../support/fixtures/bundle-content.ts';
import {
  type RequestEdits,
  type SignedRequest,
  signRequest,
  withHeader,
} from '../../support/fixtures/signed-request.ts';
import {
  compileSite,
  KEY_ID,
  newSiteKeys,
  type SiteContent,
  siteContent,
} from '../../support/fixtures/snapshot.ts';
import {
  checkNow,
  createTestVerifier,
  outcomeOf,
  REALTIME_STALENESS_SECONDS,
} from '../../support/fixtures/test-verifier.ts';

const keys = newSiteKeys();
const site = await compileSite(siteContent(keys));

async function siteWith(change: (content: SiteContent) => void): Promise<Snapshot> {
  const content = siteContent(keys);
  change(content);
  return compileSite(content);
}

/** A verifier that has allowed the request once; its replay store does not deny the repetition. */
function warmVerifier(request: SignedRequest) {
  let snapshot: Snapshot | undefined = site;
  const store = scriptedReplayStore(() => CONSUMED);
  const { verifier } = createTestVerifier({ currentSnapshot: () => snapshot, store });
  const outcome = (): string => outcomeOf(checkNow(verifier, request.facts));
  expect(outcome()).toBe('allowed');
  return {
    outcome,
    swap: (next: Snapshot | undefined) => {
      snapshot = next;
    },
  };
}

describe('after a bundle was swapped', () => {
  it('a passport does not outlive the key behind its kid', async () => {
    const request = signRequest(keys, { caller: 'broker', route: 'orders-read', holder: newSigningKey() });
    const verifier = warmVerifier(request);
    const otherKey = newSigningKey();
    verifier.swap(
      await siteWith((content) => {
        for (const issuer of content.issuers ?? []) {
          for (const key of issuer.keys) if (key.kid === KEY_ID.broker) key.jwk = otherKey.publicKey.jwk;
        }
      }),
    );
    expect(verifier.outcome()).toBe('invalid_request_proof/passport_signature 401');
    verifier.swap(site);
    expect(verifier.outcome()).toBe('allowed');
  });

  it('a key that was revoked is refused', async () => {
    const verifier = warmVerifier(signRequest(keys, { caller: 'billing', route: 'orders-read' }));
    verifier.swap(
      await siteWith((content) => {
        for (const key of content.derived_keys ?? []) key.status = 'revoked';
      }),
    );
    expect(verifier.outcome()).toBe('invalid_request_proof/key_revoked 401');
  });

  it('a broker may say less', async () => {
    const verifier = warmVerifier(signRequest(keys, { caller: 'broker', route: 'orders-read' }));
    verifier.swap(
      await siteWith((content) => {
        for (const issuer of content.issuers ?? []) issuer.key_binding = 'software';
      }),
    );
    expect(verifier.outcome()).toBe('invalid_request_proof/claims_not_allowed 401');
  });

  const changedBundles = TABLE_CALLERS.flatMap((caller) =>
    faultsOf(caller)
      .filter(({ content, request }) => content !== undefined && request === undefined)
      .map((fault) => ({ caller, fault, name: `${caller}: ${fault.outcome}` })),
  );

  it.each(changedBundles)('$name', async ({ caller, fault }) => {
    const verifier = warmVerifier(requestWith(keys, caller, []));
    verifier.swap(await snapshotWith(keys, [fault]));
    expect(verifier.outcome()).toBe(fault.outcome);
  });
});

describe('what is remembered', () => {
  function decideWith(passports: PassportCache, request: SignedRequest): string {
    const inputs = {
      nowSeconds: NOW_SECONDS,
      realtimeStalenessSeconds: REALTIME_STALENESS_SECONDS,
      passports,
    };
    const verdict = decide(request.facts, site, inputs, {});
    return verdict.kind === 'denied' ? `${verdict.reason}/${verdict.detail}` : verdict.kind;
  }

  function recordingCache() {
    const cache = createPassportCache();
    const remembered: string[] = [];
    const passports: PassportCache = {
      get: (sha256) => cache.get(sha256),
      remember: (entry, nowSeconds) => {
        remembered.push(entry.passport.sha256);
        cache.remember(entry, nowSeconds);
      },
    };
    return { passports, remembered };
  }

  const read = { caller: 'broker', route: 'orders-read' } as const;

  it.each<[string, RequestEdits, string]>([
    ['a stranger’s passport', { passportKey: newSigningKey() }, 'invalid_request_proof/passport_signature'],
    [
      'one that is not well formed',
      { received: (request) => withHeader(request, 'authorization', (value) => `${value}.`) },
      'invalid_request_proof/passport_malformed',
    ],
    [
      'a passport of an unknown key',
      { joseHeader: (header) => void Object.assign(header, { kid: 'unknown' }) },
      'invalid_request_proof/key_unknown',
    ],
  ])('is not %s', (_, edits, expected) => {
    const { passports, remembered } = recordingCache();
    expect(decideWith(passports, signRequest(keys, read, edits))).toBe(expected);
    expect(remembered).toEqual([]);
  });

  const NOT_ALLOWED = 'invalid_request_proof/claims_not_allowed';
  it.each<[string, unknown, string]>([
    ['sub', 'client:other', 'source_subject_mismatch/undefined'],
    ['context', { more: 'x'.repeat(500) }, NOT_ALLOWED],
    ['cnf', { jwk: newSigningKey().publicKey.jwk }, NOT_ALLOWED],
  ])('is not what a derived key may not say: %s', (claim, value, expected) => {
    const { passports, remembered } = recordingCache();
    const edits: RequestEdits = { claims: (claims) => void Object.assign(claims, { [claim]: value }) };
    const request = signRequest(keys, { caller: 'billing', route: 'orders-read' }, edits);
    expect(decideWith(passports, request)).toBe(expected);
    expect(remembered).toEqual([]);
  });

  it.each(['broker', 'billing'] as const)('is a passport once, however often it comes: of %s', (caller) => {
    const { passports, remembered } = recordingCache();
    const request = signRequest(keys, { ...read, caller });
    for (let time = 0; time < 3; time += 1) expect(decideWith(passports, request)).toBe('verified');
    expect(remembered).toHaveLength(1);
  });

  it('is that a holder key was refused', () => {
    const { passports, remembered } = recordingCache();
    const smallOrder = { kty: 'OKP', crv: 'Ed25519', x: `AQ${'A'.repeat(41)}` };
    const request = signRequest(keys, read, {
      claims: (claims) => void Object.assign(claims, { cnf: { jwk: smallOrder } }),
    });
    for (let time = 0; time < 3; time += 1) {
      expect(decideWith(passports, request)).toBe('invalid_request_proof/claims_not_allowed');
    }
    expect(remembered).toHaveLength(1);
  });

  it('is removed once it has expired under any skew', () => {
    const passports = createPassportCache();
    const rememberAt = (request: SignedRequest, nowSeconds: number) => {
      expect(decideWith(passports, request)).toBe('verified');
      const { passport } = entryOf(request);
      passports.remember(entryOf(request), nowSeconds);
      return passport.claims.expiresAtSeconds;
    };
    const entryOf = (request: SignedRequest) => {
      const jws = request.wire.headers.find(({ name }) => name === 'authorization')?.value.slice(9) ?? '';
      const entry = passports.get(passportSha256(jws));
      if (entry === undefined) throw new Error('not remembered');
      return entry;
    };
    const [first, second] = [signRequest(keys, read), signRequest(keys, read)];
    const expiresAtSeconds = rememberAt(first, NOW_SECONDS);
    rememberAt(second, expiresAtSeconds + 59);
    expect(passports.size).toBe(2);
    const third = signRequest(keys, read);
    expect(decideWith(passports, third)).toBe('verified');
    passports.remember(entryOf(third), expiresAtSeconds + 59 + 30);
    // All three have the same times; what is remembered now stays until the next look.
    expect(passports.size).toBe(1);
  });

  it('is looked at every 30 seconds, and removed from the second on in which no skew makes it valid', () => {
    const passports = createPassportCache();
    const [first, second] = [signRequest(keys, read), signRequest(keys, read)].map((request) => {
      expect(decideWith(passports, request)).toBe('verified');
      const jws = request.wire.headers.find(({ name }) => name === 'authorization')?.value.slice(9) ?? '';
      return passports.get(passportSha256(jws));
    });
    if (first === undefined || second === undefined) throw new Error('not remembered');
    const uselessAt = first.passport.claims.expiresAtSeconds + 60;
    const sizeAfter = (nowSeconds: number) => {
      passports.remember(second, nowSeconds);
      return passports.size;
    };
    expect(sizeAfter(uselessAt - 1)).toBe(2);
    expect([uselessAt, uselessAt + 28].map(sizeAfter)).toEqual([2, 2]);
    expect(sizeAfter(uselessAt + 29)).toBe(1);
    passports.remember(first, uselessAt + 29);
    // A clock that goes back far enough starts a new interval.
    expect(sizeAfter(uselessAt)).toBe(2);
    expect(sizeAfter(uselessAt - 1)).toBe(2);
    passports.remember(first, uselessAt - 1);
    expect(sizeAfter(uselessAt + 29)).toBe(1);
    passports.remember(first, uselessAt - 30);
    expect(sizeAfter(uselessAt)).toBe(1);
  });

  it('is forgotten when there is too much of it', () => {
    const passports = createPassportCache(4_000);
    const requests = [signRequest(keys, read), signRequest(keys, read), signRequest(keys, read)];
    for (const request of requests) expect(decideWith(passports, request)).toBe('verified');
    expect(passports.size).toBe(2);
    for (const request of requests) expect(decideWith(passports, request)).toBe('verified');
  });
});
