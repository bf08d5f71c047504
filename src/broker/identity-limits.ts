/**
 * Limits per verified identity: requests per second, and distinct holder keys in five minutes. Each process counts alone.
 * Verifiers give every holder key a replay quota of its own, so an identity must not have any number of them.
 */
import { LRUCache } from 'lru-cache';
import type { BrokerLimits } from './broker-ports.ts';
import { BrokerProblem } from './broker-problems.ts';

const SECOND_MS = 1000;
export const HOLDER_WINDOW_MS = 300_000;
/** Bounds memory. Only identities with valid credentials are counted. */
const MAX_IDENTITIES = 100_000;

interface Identity {
  windowStartMs: number;
  requests: number;
  /** When each holder key was last seen, by thumbprint. */
  readonly holders: Map<string, number>;
}

export interface IdentityLimits {
  /** @throws BrokerProblem `rate_limited` */
  countRequest(trustDomain: string, subject: string): void;
  /** @throws BrokerProblem `holder_key_limit` */
  countHolder(trustDomain: string, subject: string, thumbprint: string): void;
}

export function createIdentityLimits(limits: BrokerLimits, nowMs: () => number): IdentityLimits {
  const identities = new LRUCache<string, Identity>({ max: MAX_IDENTITIES });
  const identityOf = (trustDomain: string, subject: string): Identity => {
    // A trust domain has no space.
    const name = `${trustDomain} ${subject}`;
    const known = identities.get(name);
    if (known !== undefined) return known;
    const fresh = { windowStartMs: nowMs(), requests: 0, holders: new Map<string, number>() };
    identities.set(name, fresh);
    return fresh;
  };
  return {
    countRequest(trustDomain, subject) {
      const identity = identityOf(trustDomain, subject);
      const now = nowMs();
      if (now - identity.windowStartMs >= SECOND_MS) {
        identity.windowStartMs = now;
        identity.requests = 0;
      }
      identity.requests += 1;
      if (identity.requests > limits.requestsPerSecondPerIdentity) {
        throw new BrokerProblem('rate_limited', undefined, { retryAfterSeconds: 1 });
      }
    },
    countHolder(trustDomain, subject, thumbprint) {
      const { holders } = identityOf(trustDomain, subject);
      const now = nowMs();
      for (const [known, seenMs] of holders) if (now - seenMs >= HOLDER_WINDOW_MS) holders.delete(known);
      if (!holders.has(thumbprint) && holders.size >= limits.holderKeysPerIdentity) {
        throw holderKeyLimit(limits.holderKeysPerIdentity, Math.min(...holders.values()), now);
      }
      holders.set(thumbprint, now);
    },
  };
}

function holderKeyLimit(limit: number, oldestMs: number, now: number): BrokerProblem {
  const retryAfterSeconds = Math.max(1, Math.ceil((oldestMs + HOLDER_WINDOW_MS - now) / SECOND_MS));
  const text = `this identity used ${limit} holder keys within five minutes; --max-holder-keys sets the limit`;
  return new BrokerProblem('holder_key_limit', text, { retryAfterSeconds });
}
