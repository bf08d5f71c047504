/**
 * Mutated certificates, tokens and forms. The attacker has everything but the keys of others: the holder key signs again over
 * what was changed, the SVID's key too. None is accepted, and none is an internal error.
 */
import { isDeepStrictEqual } from 'node:util';
import { beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { CallerProof } from '../../src/broker/broker-contract.ts';
import { isJsonObject, type JsonObject } from '../../src/protocol/strict-json.ts';
import {
  type JwtSvidProof,
  jwtSvidProof,
  signedForm,
  softwareKeyProof,
  softwareKeysYaml,
} from '../support/broker/broker-callers.ts';
import {
  AUDIENCE,
  newAuthority,
  type TestBroker,
  testBroker,
  VALID,
} from '../support/broker/broker-fixture.ts';
import { newSigningKey, TRUST_DOMAIN } from '../support/fixtures/bundle-content.ts';

const authority = newAuthority();
const nested = authority.issueIntermediate(VALID);
const svid = nested.issueSvid('/orders', VALID);
const holder = newSigningKey();
const registered = newSigningKey();
const fresh = newSigningKey('ES256');
const ID = `spiffe://${TRUST_DOMAIN}/orders`;

/** Of each of the four kinds; `make soak` makes 4,000. */
const mutants = Number(process.env.PROOFGATE_TEST_MUTANTS ?? 400);
const runs = { numRuns: mutants };
/** Two cores may be busy. */
const timeoutMs = 300_000 + mutants * 60;
let broker: TestBroker;
let challenge: string;
let token: JwtSvidProof;
let forms: readonly CallerProof[];

beforeAll(async () => {
  broker = await testBroker({ authorities: [authority], softwareKeys: softwareKeysYaml(registered) });
  challenge = await broker.challenge();
  token = await jwtSvidProof(challenge, authority, ID, holder);
  forms = [
    signedForm(challenge, svid, holder),
    token,
    softwareKeyProof(challenge, registered),
    softwareKeyProof(challenge, registered, fresh),
  ];
});

/** Asserts a refusal that the caller has caused. */
async function refuse(body: unknown): Promise<void> {
  const { status, code } = await broker.post('/v1/passports', body);
  expect({ status, code }).toEqual({ status: expect.any(Number), code: expect.any(String) });
  expect(Math.floor(status / 100)).toBe(4);
}

describe(`${mutants} mutants of each kind`, () => {
  it('are made of proofs that are accepted', async () => {
    for (const proof of forms) expect((await broker.passport(proof)).code).toBeUndefined();
  });

  it(
    'certificates, each signed for again by its holder',
    async () => {
      const which = fc.nat(svid.chainDer.length - 1);
      await fc.assert(
        fc.asyncProperty(which, anyEdits, async (at, edits) => {
          const original = svid.chainDer[at] ?? Buffer.alloc(0);
          const der = editedBytes(original, edits);
          fc.pre(!der.equals(original));
          const chainDer = svid.chainDer.map((one, i) => (i === at ? der : one));
          await refuse({ audience: AUDIENCE, proof: signedForm(challenge, { ...svid, chainDer }, holder) });
        }),
        runs,
      );
    },
    timeoutMs,
  );

  it(
    'tokens, each signed for again by the holder',
    async () => {
      const part = fc.nat(2);
      await fc.assert(
        fc.asyncProperty(part, anyEdits, fc.boolean(), async (at, edits, inText) => {
          const mutant = inText ? editedText(token.token, edits) : editedPart(token.token, at, edits);
          fc.pre(mutant !== token.token);
          const proof = await jwtSvidProof(challenge, authority, ID, holder, { token: mutant });
          await refuse({ audience: AUDIENCE, proof });
        }),
        runs,
      );
    },
    timeoutMs,
  );

  it(
    'values and members of forms',
    async () => {
      await fc.assert(
        fc.asyncProperty(fc.nat(3), fc.nat(), anyEdits, fc.nat(2), async (form, at, edits, how) => {
          const body = { audience: AUDIENCE, proof: forms[form] };
          const mutant = editedDocument(body, at, edits, how);
          fc.pre(!isDeepStrictEqual(mutant, body));
          await refuse(mutant);
        }),
        runs,
      );
    },
    timeoutMs,
  );

  it(
    'bytes of requests',
    async () => {
      await fc.assert(
        fc.asyncProperty(fc.nat(3), anyEdits, async (form, edits) => {
          const body = { audience: AUDIENCE, proof: forms[form] };
          const text = editedText(JSON.stringify(body), edits);
          fc.pre(!isDeepStrictEqual(parsed(text), body));
          await refuse(text);
        }),
        runs,
      );
    },
    timeoutMs,
  );
});

interface EditOfBytes {
  readonly at: number;
  readonly removed: number;
  readonly inserted: Uint8Array;
  /** XORed to the byte at the place. */
  readonly flipped: number;
}

const anyEdit: fc.Arbitrary<EditOfBytes> = fc.oneof(
  fc.record({
    at: fc.nat(),
    removed: fc.constant(0),
    inserted: fc.constant(new Uint8Array()),
    flipped: fc.nat(255),
  }),
  fc.record({
    at: fc.nat(),
    removed: fc.nat(6),
    inserted: fc.uint8Array({ maxLength: 6 }),
    flipped: fc.constant(0),
  }),
);
const anyEdits = fc.array(anyEdit, { minLength: 1, maxLength: 3 });

function editedBytes(bytes: Buffer, edits: readonly EditOfBytes[]): Buffer {
  return edits.reduce((current, { at, removed, inserted, flipped }) => {
    const place = at % (current.length + 1);
    const copy = Buffer.from(current);
    if (place < copy.length) copy.writeUInt8(copy.readUInt8(place) ^ flipped, place);
    return Buffer.concat([copy.subarray(0, place), inserted, copy.subarray(place + removed)]);
  }, bytes);
}

function editedText(text: string, edits: readonly EditOfBytes[]): string {
  return editedBytes(Buffer.from(text, 'latin1'), edits).toString('latin1');
}

/** Header, claims or signature, changed below its base64url. */
function editedPart(token: string, at: number, edits: readonly EditOfBytes[]): string {
  const parts = token.split('.');
  return parts
    .map((part, i) =>
      i === at ? editedBytes(Buffer.from(part, 'base64url'), edits).toString('base64url') : part,
    )
    .join('.');
}

/** One text replaced, one member removed, or one added, anywhere in the document. */
function editedDocument(document: object, at: number, edits: readonly EditOfBytes[], how: number): unknown {
  const copy: unknown = JSON.parse(JSON.stringify(document));
  const places = membersOf(copy);
  const place = places[at % places.length];
  if (place === undefined) return copy;
  const { owner, name } = place;
  const value = owner[name];
  if (how === 1) delete owner[name];
  else if (how === 2) owner[`${name}_2`] = value;
  else owner[name] = typeof value === 'string' ? editedText(value, edits) : null;
  return copy;
}

interface Place {
  readonly owner: Record<string, unknown>;
  readonly name: string;
}

function membersOf(value: unknown): readonly Place[] {
  if (Array.isArray(value)) return value.flatMap(membersOf);
  if (!isJsonObject(value)) return [];
  const owner = value as Record<string, unknown>;
  return Object.entries(owner).flatMap(([name, member]) => [{ owner, name }, ...membersOf(member)]);
}

function parsed(text: string): JsonObject | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
