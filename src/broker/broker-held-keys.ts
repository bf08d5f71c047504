/**
 * Holder keys that live in the broker's memory, one for each credential and audience, with the passport that names it.
 * They are never stored on disk.
 */
import { LRUCache } from 'lru-cache';
import { generateSigningKey, type SigningKey } from '../protocol/signing.ts';
import type { IssuedPassport } from './issue-passport.ts';
import type { VerifiedCaller } from './verified-caller.ts';

const MAX_HELD_KEYS = 10_000;
/** Share of a passport's lifetime after which it is renewed. */
const RENEW_AT = 2 / 3;

export interface HeldKey {
  readonly holder: SigningKey;
  readonly passport: IssuedPassport;
}

interface Entry {
  readonly holder: SigningKey;
  passport: IssuedPassport | undefined;
  renewAtSeconds: number;
}

export interface BrokerHeldKeys {
  /** @param issue called when there is no passport, or when it ends soon; several requests may call it at once */
  heldFor(
    caller: VerifiedCaller,
    audience: string,
    nowSeconds: number,
    issue: (holder: SigningKey) => Promise<IssuedPassport>,
  ): Promise<HeldKey>;
}

export function createBrokerHeldKeys(): BrokerHeldKeys {
  const entries = new LRUCache<string, Entry>({ max: MAX_HELD_KEYS });
  return {
    async heldFor(
      { credentialThumbprint = '-', keyBinding, subject, trustDomain },
      audience,
      nowSeconds,
      issue,
    ) {
      // Each credential has its own expiry and maximum lifetime. No part contains a space.
      const name = [keyBinding, trustDomain, subject, credentialThumbprint, audience].join(' ');
      let entry = entries.get(name);
      if (entry === undefined) {
        entry = { holder: generateSigningKey('Ed25519'), passport: undefined, renewAtSeconds: 0 };
        entries.set(name, entry);
      }
      const { holder } = entry;
      if (entry.passport !== undefined && nowSeconds < entry.renewAtSeconds)
        return { holder, passport: entry.passport };
      const passport = await issue(holder);
      entry.passport = passport;
      entry.renewAtSeconds = nowSeconds + Math.floor((passport.expiresAtSeconds - nowSeconds) * RENEW_AT);
      return { holder, passport };
    },
  };
}
