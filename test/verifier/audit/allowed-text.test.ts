/** The text of an allowed request's event equals the JSON of its object, whatever its parts and however often they came before. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { DerivedKey, Route, Snapshot, SourceRule } from '../../../src/bundle/compile/snapshot.ts';
import type { AcceptedCredentials } from '../../../src/protocol/accepted-credentials.ts';
import type { AccessToken } from '../../../src/protocol/access-token.ts';
import type { Passport } from '../../../src/protocol/passport.ts';
import { describeDecision, type SeenRequest, textOfAllowed } from '../../../src/verifier/audit/describe.ts';
import type { Caller } from '../../../src/verifier/decision/facts/caller.ts';

/** Visible characters, quotes and backslashes among them. */
const identifier = fc.string({ unit: fc.constantFrom(...'a1"\\/{}<>'), minLength: 1, maxLength: 12 });

const passport = fc
  .record({
    issuer: identifier,
    subject: identifier,
    trustDomain: identifier,
    passportId: identifier,
    keyId: identifier,
  })
  .map(
    ({ keyId, ...claims }) =>
      ({ keyId, claims: { ...claims, keyBinding: 'software' } }) as unknown as Passport,
  );
const token = fc
  .record({ issuer: identifier, keyId: identifier }, { requiredKeys: ['issuer', 'keyId'] })
  .chain((parts) =>
    fc
      .option(identifier, { nil: undefined })
      .map((tokenId) => ({ ...parts, tokenId }) as unknown as AccessToken),
  );
const client = identifier.map((clientId) => ({ clientId }) as DerivedKey['client']);
const route = fc
  .record({ routeId: identifier, acceptsOthers: fc.boolean() })
  .map(({ acceptsOthers, routeId }) => {
    const acceptedProofs = acceptsOthers ? new Set(['dpop']) : undefined;
    return { routeId, method: 'GET', acceptedProofs } as unknown as Route;
  });
const snapshot = fc
  .record({ revision: fc.nat(), head: identifier })
  .map((parts) => ({ authSite: 'shop-eu-1', ...parts }) as unknown as Snapshot);

/** Few of each, so that they meet again in other combinations. */
const pool = fc.record({
  passports: fc.array(passport, { minLength: 1, maxLength: 3 }),
  tokens: fc.array(token, { minLength: 1, maxLength: 2 }),
  clients: fc.array(client, { minLength: 1, maxLength: 2 }),
  routes: fc.array(route, { minLength: 1, maxLength: 2 }),
  snapshots: fc.array(snapshot, { minLength: 1, maxLength: 2 }),
});

const choice = fc.record({
  format: fc.constantFrom('transcript', 'signature', 'keyed', 'dpop', 'token'),
  at: fc.nat({ max: 5 }),
  isOwn: fc.boolean(),
  isBreakGlass: fc.boolean(),
  traceparent: fc.option(fc.constant('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'), {
    nil: undefined,
  }),
  nowMs: fc.integer({ min: 0, max: 4e12 }),
  ruleIndex: fc.nat(),
});

type Pool = typeof pool extends fc.Arbitrary<infer T> ? T : never;
type Choice = typeof choice extends fc.Arbitrary<infer T> ? T : never;

function one<T>(list: readonly T[], at: number): T {
  const found = list[at % list.length];
  if (found === undefined) throw new Error('an empty pool');
  return found;
}

function credentialsOf({ at, format }: Choice, { passports, tokens }: Pool): AcceptedCredentials {
  const bytes = Buffer.from(`proof ${at}`);
  const credentials = {
    transcript: { format: 'transcript-v1', passport: one(passports, at), proof: { transcriptBytes: bytes } },
    signature: {
      format: 'http-message-signatures',
      passport: one(passports, at),
      signature: { params: 'params' },
    },
    keyed: { format: 'http-message-signatures', passport: undefined, signature: { params: 'params' } },
    dpop: { format: 'dpop', passport: one(passports, at), proof: { signingInput: bytes } },
    token: { format: 'dpop', passport: undefined, token: one(tokens, at), proof: { signingInput: bytes } },
  };
  return credentials[format] as unknown as AcceptedCredentials;
}

function seenOf(chosen: Choice, drawn: Pool): SeenRequest {
  const { at, isBreakGlass, isOwn, nowMs, ruleIndex, traceparent } = chosen;
  const credentials = credentialsOf(chosen, drawn);
  const { passport: ofPassport } = credentials;
  const derivedKey = { client: one(drawn.clients, at) } as DerivedKey;
  const caller = {
    ...(ofPassport?.claims ?? { issuer: 'i', subject: 's', trustDomain: 't', keyBinding: 'software' }),
    keyId: ofPassport?.keyId ?? 'k',
    derivedKey: isOwn ? derivedKey : undefined,
    identity: isOwn ? derivedKey.client : (ofPassport?.claims ?? {}),
  } as unknown as Caller;
  const facts = {
    method: 'GET',
    headers: {
      lookup: () => (traceparent === undefined ? { kind: 'absent' } : { kind: 'single', value: traceparent }),
    },
  } as unknown as SeenRequest['facts'];
  const matchedRule = { index: ruleIndex } as SourceRule;
  return {
    nowMs,
    facts,
    call: undefined,
    snapshot: one(drawn.snapshots, at),
    evidence: {
      route: one(drawn.routes, at),
      credentials,
      caller,
      matchedRule,
      ...(isBreakGlass ? { isBreakGlass: true } : {}),
    },
  };
}

describe('textOfAllowed', () => {
  it('is the JSON of describeDecision', () => {
    fc.assert(
      fc.property(pool, fc.array(choice, { minLength: 1, maxLength: 12 }), (drawn, choices) => {
        for (const chosen of choices) {
          const seen = seenOf(chosen, drawn);
          const decided = {
            decisionId: '1b4e28ba-2fa1-41d2-883f-0016d3cca427',
            durationUs: chosen.ruleIndex,
          };
          const event = describeDecision(seen, {
            ...decided,
            callerVerified: true,
            outcome: 'allowed',
            denial: undefined,
          });
          expect(textOfAllowed(seen, decided)).toBe(JSON.stringify(event));
        }
      }),
    );
  });
});
