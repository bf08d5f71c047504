import { expect, it } from '@jest/globals';
import { CHALLENGE_TTL_MS, createChallenges } from '../../src/broker/challenges.ts';
import { BROKER_URL, NOW_MS } from '../support/broker/broker-fixture.ts';

const key = Buffer.alloc(32, 1);
const nextKey = Buffer.alloc(32, 2);

interface Broker {
  readonly url?: string;
  readonly keys?: readonly [Uint8Array, ...Uint8Array[]];
  readonly ageMs?: number;
}

/** The code with which one broker answers another's challenge. */
function checkedBy({ url = BROKER_URL, keys = [key], ageMs = 0 }: Broker, made: Broker = {}): string {
  const { challenge } = createChallenges(
    made.url ?? BROKER_URL,
    () => made.keys ?? [key],
    () => NOW_MS,
  ).create();
  return outcomeOf(challenge, { url, keys, ageMs });
}

function outcomeOf(challenge: string, { url = BROKER_URL, keys = [key], ageMs = 0 }: Broker = {}): string {
  const challenges = createChallenges(
    url,
    () => keys,
    () => NOW_MS + ageMs,
  );
  try {
    challenges.check(challenge);
    return 'accepted';
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'thrown';
  }
}

it('lives 60 seconds, at a replica too', () => {
  expect(checkedBy({ ageMs: CHALLENGE_TTL_MS - 1 })).toBe('accepted');
  expect(checkedBy({ ageMs: CHALLENGE_TTL_MS })).toBe('challenge_expired');
});

it('tolerates the clock of another replica for five seconds', () => {
  expect(checkedBy({ ageMs: -5000 })).toBe('accepted');
  expect(checkedBy({ ageMs: -5001 })).toBe('challenge_invalid');
});

it('belongs to one broker, even where two share a key', () => {
  expect(checkedBy({ url: 'https://other.shop.example' })).toBe('challenge_invalid');
});

it('survives a change of the key: new ones are made with the first key, old ones verify', () => {
  expect(checkedBy({ keys: [nextKey, key] })).toBe('accepted');
  expect(checkedBy({ keys: [nextKey] })).toBe('challenge_invalid');
  expect(checkedBy({ keys: [nextKey] }, { keys: [nextKey, key] })).toBe('accepted');
});

it('is no other text: every byte counts, and one spelling', () => {
  const { challenge } = createChallenges(
    BROKER_URL,
    () => [key],
    () => NOW_MS,
  ).create();
  const bytes = Buffer.from(challenge, 'base64url');
  for (const at of bytes.keys()) {
    const changed = Buffer.from(bytes);
    changed.writeUInt8(bytes.readUInt8(at) ^ 1, at);
    expect(outcomeOf(changed.toString('base64url'))).toBe('challenge_invalid');
  }
  for (const text of ['', 'AAAA', challenge.slice(1), `${challenge}AAAA`, `${challenge}=`]) {
    expect(outcomeOf(text)).toBe('challenge_invalid');
  }
});

it('never repeats', () => {
  const challenges = createChallenges(
    BROKER_URL,
    () => [key],
    () => NOW_MS,
  );
  const made = new Set(Array.from({ length: 1000 }, () => challenges.create().challenge));
  expect(made.size).toBe(1000);
});
