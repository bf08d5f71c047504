import { describe, expect, it } from '@jest/globals';
import {
  type Credentials,
  type HeaderLookup,
  holdsPassport,
  type RequestHeaders,
  readCredentials,
} from '../../src/protocol/credentials.ts';
import { type Passport, parsePassport, passportSha256 } from '../../src/protocol/passport.ts';
import { type Denial, isDenial } from '../../src/protocol/reasons.ts';
import { signTranscript } from '../../src/protocol/signing.ts';
import { formatTranscript } from '../../src/protocol/transcript.ts';
import type { PassportHeader } from '../../src/protocol/wire-names.ts';
import {
  claimsDraft,
  headerDraft,
  jwsOf,
  TEST_2,
  TRANSCRIPT,
  VALID_JWS,
} from '../support/protocol/fixtures.ts';

const PROOF = signTranscript(TRANSCRIPT, TEST_2);

type Lookups = { [name: string]: HeaderLookup };

function single(value: string): HeaderLookup {
  return { kind: 'single', value };
}
const AMBIGUOUS: HeaderLookup = { kind: 'ambiguous' };
const ABSENT: HeaderLookup = { kind: 'absent' };

function validHeaders(): Lookups {
  return {
    authorization: single(`Passport ${VALID_JWS}`),
    'x-proofgate-transcript': single(PROOF.transcript),
    'x-proofgate-signature': single(PROOF.signature),
  };
}

function read(
  changes: Lookups,
  known: (sha256: string) => Passport | undefined = () => undefined,
  passportHeader: PassportHeader = 'authorization',
): Credentials | Denial {
  const lookups = { ...validHeaders(), ...changes };
  const headers: RequestHeaders = {
    lookup: (name) => lookups[name] ?? ABSENT,
    values: (name) => {
      const lookup = lookups[name];
      return lookup?.kind === 'single' ? [lookup.value] : [];
    },
    names: () => Object.keys(lookups),
    lines: () => [],
  };
  return readCredentials(headers, passportHeader, known);
}

/** The detail of the denial, which is always the same reason. */
function detailOf(result: Credentials | Denial): string | undefined {
  if (!isDenial(result)) return undefined;
  expect(result).toMatchObject({ reason: 'invalid_request_proof', status: 401 });
  return result.detail;
}

describe('readCredentials with the passport in a header of its own', () => {
  const there = (changes: Lookups) =>
    read(
      { authorization: ABSENT, 'x-proofgate-passport': single(VALID_JWS), ...changes },
      undefined,
      'x-proofgate-passport',
    );

  it.each<[string, Lookups]>([
    ['no Authorization', {}],
    ['a bearer token', { authorization: single('Bearer 1') }],
    [
      'commas, which Envoy may have joined',
      { authorization: single('Digest username="a", realm="Passport x"') },
    ],
    ['a scheme that begins so', { authorization: single('Passports 1') }],
  ])('reads it beside %s', (_, changes) => {
    expect(there(changes)).toMatchObject({ passport: parsePassport(VALID_JWS) });
  });

  it.each<[string, string, Lookups]>([
    ['authorization_missing', 'it is absent', { 'x-proofgate-passport': ABSENT }],
    [
      'authorization_missing',
      'it is in Authorization instead',
      { 'x-proofgate-passport': ABSENT, authorization: single(`Passport ${VALID_JWS}`) },
    ],
    ['passport_malformed', 'it has several lines', { 'x-proofgate-passport': AMBIGUOUS }],
    ['passport_malformed', 'it has a scheme', { 'x-proofgate-passport': single(`Passport ${VALID_JWS}`) }],
    ['passport_malformed', 'it is empty', { 'x-proofgate-passport': single('') }],
    ['passport_malformed', 'it is too long', { 'x-proofgate-passport': single('A'.repeat(8193)) }],
    ...[
      `Passport ${VALID_JWS}`,
      'pASSPORT x',
      'Passport',
      'Passport\tx',
      '\t Passport x',
      'Bearer 1,Passport x',
      'Bearer 1 ,\tpassport,Basic x',
    ].map((value): [string, string, Lookups] => [
      'passport_repeated',
      `Authorization is ${JSON.stringify(value.slice(0, 24))}`,
      { authorization: single(value) },
    ]),
    ['proof_missing', 'there is no proof', { 'x-proofgate-signature': ABSENT }],
  ])('%s: %s', (detail, _, changes) => {
    expect(detailOf(there(changes))).toBe(detail);
  });

  it('looks at every line of Authorization', () => {
    const lines = (name: string) => (name === 'authorization' ? ['Bearer 1', 'Passport x'] : []);
    const headers: RequestHeaders = {
      lookup: (name) => (name === 'x-proofgate-passport' ? single(VALID_JWS) : AMBIGUOUS),
      values: lines,
      names: () => [],
      lines: () => [],
    };
    expect(detailOf(readCredentials(headers, 'x-proofgate-passport', () => undefined))).toBe(
      'passport_repeated',
    );
  });
});

describe('readCredentials', () => {
  it('reads passport and proof', () => {
    const credentials = read({});
    expect(credentials).toEqual({
      format: 'transcript-v1',
      passport: parsePassport(VALID_JWS),
      proof: {
        transcript: TRANSCRIPT,
        transcriptBytes: Buffer.from(formatTranscript(TRANSCRIPT)),
        signature: Buffer.from(PROOF.signature, 'base64url'),
      },
    });
  });

  it.each(['Passport', 'passport', 'PASSPORT', 'pAsSpOrT'])('reads the scheme %s', (scheme) => {
    expect(detailOf(read({ authorization: single(`${scheme} ${VALID_JWS}`) }))).toBeUndefined();
  });

  it.each<[string, string, Lookups]>([
    ['authorization_missing', 'no Authorization', { authorization: ABSENT }],
    ['authorization_scheme', 'a bearer token', { authorization: single(`Bearer ${VALID_JWS}`) }],
    ['authorization_scheme', 'the JWS alone', { authorization: single(VALID_JWS) }],
    ['authorization_scheme', 'an empty value', { authorization: single('') }],
    ['authorization_scheme', 'no space', { authorization: single(`Passport${VALID_JWS}`) }],
    ['authorization_scheme', 'a tab', { authorization: single(`Passport\t${VALID_JWS}`) }],
    [
      'authorization_scheme',
      'another scheme that begins so',
      { authorization: single(`Passports ${VALID_JWS}`) },
    ],
    [
      'authorization_scheme',
      'the scheme with a long s',
      { authorization: single(`Pa\u017fsport ${VALID_JWS}`) },
    ],
    [
      'authorization_scheme',
      'the scheme behind a space',
      { authorization: single(` Passport ${VALID_JWS}`) },
    ],
    ['passport_malformed', 'Authorization on several lines', { authorization: AMBIGUOUS }],
    ['passport_malformed', 'the scheme alone', { authorization: single('Passport') }],
    ['passport_malformed', 'the scheme alone, in capitals', { authorization: single('PASSPORT') }],
    ['passport_malformed', 'nothing behind the scheme', { authorization: single('Passport ') }],
    ['passport_malformed', 'two spaces', { authorization: single(`Passport  ${VALID_JWS}`) }],
    ['passport_malformed', 'a space behind', { authorization: single(`Passport ${VALID_JWS} `) }],
    [
      'passport_malformed',
      'two passports',
      { authorization: single(`Passport ${VALID_JWS}, Passport ${VALID_JWS}`) },
    ],
    ['passport_malformed', 'a parameter', { authorization: single(`Passport jws=${VALID_JWS}`) }],
    [
      'passport_malformed',
      'a JWT of another kind',
      { authorization: single(`Passport ${jwsOf({ typ: 'JWT' }, {})}`) },
    ],
    ['proof_missing', 'no transcript', { 'x-proofgate-transcript': ABSENT }],
    ['proof_missing', 'no signature', { 'x-proofgate-signature': ABSENT }],
    ['proof_missing', 'neither', { 'x-proofgate-transcript': ABSENT, 'x-proofgate-signature': ABSENT }],
    [
      'proof_missing',
      'two transcripts and no signature',
      { 'x-proofgate-transcript': AMBIGUOUS, 'x-proofgate-signature': ABSENT },
    ],
    ['proof_malformed', 'two transcripts', { 'x-proofgate-transcript': AMBIGUOUS }],
    ['proof_malformed', 'two signatures', { 'x-proofgate-signature': AMBIGUOUS }],
    ['proof_malformed', 'an empty transcript', { 'x-proofgate-transcript': single('') }],
    ['proof_malformed', 'an empty signature', { 'x-proofgate-signature': single('') }],
    [
      'proof_malformed',
      'a transcript as text',
      { 'x-proofgate-transcript': single(formatTranscript(TRANSCRIPT)) },
    ],
    ['proof_malformed', 'a padded transcript', { 'x-proofgate-transcript': single(`${PROOF.transcript}=`) }],
    ['proof_malformed', 'a padded signature', { 'x-proofgate-signature': single(`${PROOF.signature}==`) }],
    ['proof_malformed', 'a signature of 63 bytes', { 'x-proofgate-signature': single('A'.repeat(84)) }],
    ['proof_malformed', 'a signature of 65 bytes', { 'x-proofgate-signature': single('A'.repeat(87)) }],
    [
      'proof_malformed',
      'a signature as a structured field',
      { 'x-proofgate-signature': single(`sig=:${PROOF.signature}:`) },
    ],
  ])('%s: %s', (detail, _, changes) => {
    expect(detailOf(read(changes))).toBe(detail);
  });

  it('tells a fault of the passport before one of the proof', () => {
    const noProof = { 'x-proofgate-transcript': ABSENT, 'x-proofgate-signature': ABSENT };
    expect(detailOf(read({ ...noProof, authorization: ABSENT }))).toBe('authorization_missing');
    expect(detailOf(read({ ...noProof, authorization: single('Basic YTpi') }))).toBe('authorization_scheme');
    expect(detailOf(read({ ...noProof, authorization: single('Passport x') }))).toBe('passport_malformed');
    expect(detailOf(read(noProof))).toBe('proof_missing');
  });
});

describe('sizes are bounded before anything is read', () => {
  it('of the passport: one that is too long is not even hashed', () => {
    const asked: string[] = [];
    const remember = (sha256: string) => {
      asked.push(sha256);
      return undefined;
    };
    const atLimit = `${VALID_JWS}${'A'.repeat(8192 - VALID_JWS.length)}`;
    expect(detailOf(read({ authorization: single(`Passport ${atLimit}A`) }, remember))).toBe(
      'passport_malformed',
    );
    expect(asked).toEqual([]);
    expect(detailOf(read({ authorization: single(`Passport ${atLimit}`) }, remember))).toBe(
      'passport_malformed',
    );
    expect(asked).toEqual([passportSha256(atLimit)]);
  });

  it('of the transcript: 8,192 characters of base64url as sent, so 6,144 bytes', () => {
    const rest = formatTranscript({ ...TRANSCRIPT, target: '/' }).length;
    const sent = (length: number) => {
      const target = `/${'a'.repeat(length - rest)}`;
      return read({
        'x-proofgate-transcript': single(signTranscript({ ...TRANSCRIPT, target }, TEST_2).transcript),
      });
    };
    expect(detailOf(sent(6_144))).toBeUndefined();
    expect(detailOf(sent(6_145))).toBe('proof_malformed');
  });

  it('of the signature: 128 characters', () => {
    expect(detailOf(read({ 'x-proofgate-signature': single('A'.repeat(1_000_000)) }))).toBe(
      'proof_malformed',
    );
  });
});

describe('a passport that was parsed before', () => {
  it('is taken as it is, found by the hash of its JWS', () => {
    const known = parsePassport(VALID_JWS);
    const credentials = read({}, (sha256) => (sha256 === passportSha256(VALID_JWS) ? known : undefined));
    expect(isDenial(credentials) ? undefined : credentials.passport).toBe(known);
  });

  it('does not stand for another', () => {
    const known = parsePassport(VALID_JWS);
    const changed = `${VALID_JWS.slice(0, -1)}${VALID_JWS.endsWith('A') ? 'Q' : 'A'}`;
    const credentials = read({ authorization: single(`Passport ${changed}`) }, (sha256) =>
      sha256 === known?.sha256 ? known : undefined,
    );
    expect(isDenial(credentials) ? undefined : credentials.passport.sha256).toBe(passportSha256(changed));
  });
});

describe('a passport in a value of Authorization', () => {
  const { nbf, provenance, context, ...claims } = claimsDraft();
  const shortest = jwsOf(
    { ...headerDraft(), kid: 'k' },
    {
      ...claims,
      ...{ iss: 'i', sub: 's', trust_domain: 't', aud: 'a', iat: 1, exp: 2, jti: 'j' },
      key_binding: 'software',
    },
  );

  it.each([
    ['the shortest that there is', shortest],
    ['a usual one', VALID_JWS],
  ])('is found: %s', (_, jws) => {
    expect(parsePassport(jws)).toBeDefined();
    expect(holdsPassport(`Bearer ${jws}`)).toBe(true);
    expect(holdsPassport(`Bearer a.b.c, DPoP ${jws}, x`)).toBe(true);
    expect(holdsPassport(`Bearer x${jws}`)).toBe(false);
  });
});
