/**
 * Challenges without a store: time and random bytes under a MAC. A challenge proves that a signature is fresh and for this
 * broker. It may be used again until it expires: the answer is a passport for the same holder key, and useless without it.
 * Source: docs/operate/broker.md "Challenges".
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { decodeBase64url } from '../protocol/base64url.ts';
import type { ChallengeKeys } from './broker-ports.ts';
import { BrokerProblem } from './broker-problems.ts';

export const CHALLENGE_TTL_MS = 60_000;
/** Maximum time that another replica's clock may be ahead. */
const MAX_AHEAD_MS = 5000;

const TIME_BYTES = 6;
const RANDOM_BYTES = 16;
const CONTENT_BYTES = TIME_BYTES + RANDOM_BYTES;
const MAC_BYTES = 32;

export interface Challenge {
  readonly challenge: string;
  readonly expiresAtMs: number;
}

export interface Challenges {
  create(): Challenge;
  /** @throws BrokerProblem `challenge_invalid`, `challenge_expired` */
  check(challenge: string): void;
}

export function createChallenges(publicUrl: string, keys: ChallengeKeys, nowMs: () => number): Challenges {
  // The broker's URL is in the MAC, so that brokers that share a key by mistake take only their own challenges.
  const macOf = (key: Uint8Array, content: Uint8Array) =>
    createHmac('sha256', key)
      .update(`proofgate-broker-challenge-v1\n${publicUrl}\n`)
      .update(content)
      .digest();
  return {
    create() {
      const now = nowMs();
      const content = Buffer.concat([Buffer.alloc(TIME_BYTES), randomBytes(RANDOM_BYTES)]);
      content.writeUIntBE(now, 0, TIME_BYTES);
      const challenge = Buffer.concat([content, macOf(keys()[0], content)]).toString('base64url');
      return { challenge, expiresAtMs: now + CHALLENGE_TTL_MS };
    },
    check(challenge) {
      const bytes = decodeBase64url(challenge);
      if (bytes?.length !== CONTENT_BYTES + MAC_BYTES) throw new BrokerProblem('challenge_invalid');
      const [content, mac] = [bytes.subarray(0, CONTENT_BYTES), bytes.subarray(CONTENT_BYTES)];
      if (!keys().some((key) => timingSafeEqual(macOf(key, content), mac))) {
        throw new BrokerProblem('challenge_invalid');
      }
      const ageMs = nowMs() - content.readUIntBE(0, TIME_BYTES);
      if (ageMs < -MAX_AHEAD_MS)
        throw new BrokerProblem('challenge_invalid', 'made in the future; check the clocks');
      if (ageMs >= CHALLENGE_TTL_MS) throw new BrokerProblem('challenge_expired');
    },
  };
}
