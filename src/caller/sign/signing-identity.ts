/** The identity that a signer uses, with the passports that it keeps for its requests. */
import { ClientError } from '../../protocol/client-error.ts';
import type { SigningKey } from '../../protocol/signing.ts';
import type { RouteProfile, SigningProfiles } from '../../protocol/signing-profile.ts';
import {
  type PassportTimes,
  readBrokerPassport,
  type SigningPassport,
  signOwnPassport,
} from './signing-passport.ts';

/** A key with its profiles and passports. It is replaced as a whole, so that key and passport always match. */
export interface SigningIdentity {
  /** The holder key that the passports name. */
  readonly key: SigningKey;
  /** Signing profile files; at most one of them may fit a request. */
  readonly files: readonly SigningProfiles[];
  /** A broker's passports, as compact JWS, by audience; undefined when the key signs its own. */
  readonly passports: ReadonlyMap<string, string> | undefined;
  /** When a key that signs its own passports expires; absent if unknown. */
  readonly expiresAtMs?: number | undefined;
}

/** Share of a passport's lifetime after which it is renewed. */
const RENEWAL_SHARE = 2 / 3;

/** How passports that the key signs itself are made. */
export interface OwnPassportOptions {
  readonly newJti: () => string;
  readonly passportTtlSeconds: number;
}

interface CachedPassport {
  readonly passport: SigningPassport;
  readonly fromSeconds: number;
  readonly untilSeconds: number;
}

/** An identity with its passports, which are reused while valid, because verifiers cache them. */
export class IdentityInUse {
  readonly identity: SigningIdentity;
  /** Passports by profile file, whose coordinates they name, and by audience. */
  readonly #cache = new Map<SigningProfiles, Map<string, CachedPassport>>();

  constructor(identity: SigningIdentity) {
    this.identity = identity;
  }

  /** @throws ClientError as `signOwnPassport` and `readBrokerPassport`, or `passport_required`, `passport_expired` */
  passportFor(
    profiles: SigningProfiles,
    { audience }: RouteProfile,
    nowSeconds: number,
    options: OwnPassportOptions,
  ): SigningPassport {
    const byAudience = this.#cache.get(profiles) ?? new Map<string, CachedPassport>();
    this.#cache.set(profiles, byAudience);
    const cached = byAudience.get(audience);
    if (cached && nowSeconds >= cached.fromSeconds && nowSeconds < cached.untilSeconds) {
      return cached.passport;
    }
    const created =
      this.identity.passports === undefined
        ? this.#signOwn(profiles, audience, nowSeconds, options)
        : this.#readFromBroker(profiles, audience, nowSeconds);
    byAudience.set(audience, created);
    return created.passport;
  }

  #signOwn(
    { coordinates }: SigningProfiles,
    audience: string,
    nowSeconds: number,
    { newJti: newPassportId, passportTtlSeconds }: OwnPassportOptions,
  ): CachedPassport {
    const times: PassportTimes = {
      issuedAtSeconds: nowSeconds,
      expiresAtSeconds: nowSeconds + passportTtlSeconds,
    };
    const { key } = this.identity;
    const passport = signOwnPassport({ key, coordinates, audience, passportId: newPassportId(), ...times });
    const untilSeconds = nowSeconds + Math.max(1, Math.floor(passportTtlSeconds * RENEWAL_SHARE));
    return { passport, fromSeconds: nowSeconds, untilSeconds };
  }

  #readFromBroker({ coordinates }: SigningProfiles, audience: string, nowSeconds: number): CachedPassport {
    const jws = this.identity.passports?.get(audience);
    if (jws === undefined) {
      throw new ClientError('passport_required', `there is no passport for the audience ${audience}`);
    }
    const holderThumbprint = this.identity.key.publicKey.thumbprint;
    const passport = readBrokerPassport(jws, { coordinates, audience, holderThumbprint });
    if (!(nowSeconds < passport.expiresAtSeconds)) {
      throw new ClientError('passport_expired', 'the passport has expired');
    }
    return { passport, fromSeconds: 0, untilSeconds: passport.expiresAtSeconds };
  }
}
