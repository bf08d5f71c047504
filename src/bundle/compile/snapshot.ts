/**
 * The snapshot: a bundle compiled to the value that a verifier decides from. `compile.ts` builds it. A request may keep
 * its snapshot until it ends. Everything in it is immutable except the key table, in which deltas replace one whole
 * entry at a time: see `key-table.ts`.
 * Source: docs/design/bundle.md "Content" and "Life in the verifier".
 */
import type { Access } from '../../protocol/access.ts';
import type { AccessTokenType } from '../../protocol/access-token.ts';
import type { BodyRule } from '../../protocol/body-binding.ts';
import type { KeyBinding } from '../../protocol/identifiers.ts';
import type { Attributes } from '../../protocol/passport.ts';
import type { ProofFormat, UnboundPart } from '../../protocol/proof-format.ts';
import type { PublicKey } from '../../protocol/public-key.ts';
import type { TokenKey } from '../../protocol/token-key.ts';
import type { PassportHeader } from '../../protocol/wire-names.ts';
import type { BundleFault } from '../format/bundle-error.ts';

export interface Snapshot {
  readonly authSite: string;
  readonly revision: number;
  /** base64url SHA-256 that identifies this revision and all before it. */
  readonly head: string;
  readonly issuedAtSeconds: number;
  readonly expiresAtSeconds: number;
  /**
   * Time up to which this content is known to be the latest, seconds: the later of `issued_at` and the `as_of` of the
   * newest accepted freshness statement.
   */
  readonly freshAsOfSeconds: number;
  /** The statement of `--break-glass-file`, which may be of another revision or time: see `break-glass-statement.ts`. */
  readonly breakGlass: BreakGlassStatement | undefined;
  /** Maximum clock skew in both directions, 1 to 60. */
  readonly skewSeconds: number;
  /** Whether a single verifier process serves the site, so that the in-memory replay store is allowed. */
  readonly singleVerifier: boolean;
  /** Excludes routes of an unknown class, which always deny. */
  readonly routesByFreshness: readonly FreshnessGroup[];
  readonly routes: RouteTable;
  /** Whether a route accepts DPoP proofs. */
  readonly acceptsDpop: boolean;
  /** Whether a route requires nonces in them. */
  readonly needsDpopNonces: boolean;
  /** When denied requests that no route matches no longer pass, if the verifier allows them to; undefined: they never do. */
  readonly unmatchedUntilSeconds: number | undefined;
  readonly keys: KeyTable;
  /** OAuth authorization servers by issuer, each with its own namespace of keys. */
  readonly oauthIssuers: ReadonlyMap<string, OAuthIssuer>;
  /** Undefined when the bundle blocks no caller. */
  readonly blocked: BlockedCallers | undefined;
  /** Rules and clients of the whole bundle that match no caller, at most 20. */
  readonly warnings: readonly BundleFault[];
}

/** "Between these moments, this revision with this head may be of any age." Times are whole seconds since the epoch. */
export interface BreakGlassStatement {
  readonly revision: number;
  /** base64url SHA-256. */
  readonly head: string;
  readonly fromSeconds: number;
  /** The first second that it does not cover. */
  readonly untilSeconds: number;
}

export interface RouteTable {
  readonly size: number;
  /**
   * Finds the one route of a request. The cost does not depend on the number of routes.
   * @param origin `scheme://authority`, canonical
   * @param path canonical path without query
   */
  match(method: string, origin: string, path: string): RouteMatch;
  /** Every route once, in no particular order. Too slow for the request path. */
  all(): readonly Route[];
  /** Searches all routes, so it is too slow for the request path. */
  find(routeId: string): Route | undefined;
}

export type RouteMatch =
  | { readonly kind: 'route'; readonly route: Route }
  | { readonly kind: 'no_route'; readonly detail: 'origin' | 'no_match' };

export interface Route {
  readonly routeId: string;
  readonly method: string;
  readonly pathTemplate: string;
  readonly audience: string;
  readonly freshness: FreshnessRule;
  /** The grant that a derived key's client must have. */
  readonly resource: string;
  readonly access: Access;
  /** Each `scheme://authority` that requests may be signed for. */
  readonly origins: ReadonlySet<string>;
  /** Headers that every transcript must sign, lower case, sorted. */
  readonly signedHeaders: readonly string[];
  readonly body: BodyRule;
  readonly requiredProvenance: readonly RequiredAttribute[];
  readonly requiredContext: readonly RequiredAttribute[];
  /** Upgrade that the reverse proxy passes on. */
  readonly upgrade: 'websocket' | undefined;
  /** Header that carries the passport. */
  readonly passportHeader: PassportHeader;
  /** Whether the upstream receives the passport. */
  readonly forwardAuthorization: boolean;
  /** Formats of proofs that the route accepts; undefined: transcript-v1 alone. */
  readonly acceptedProofs: ReadonlySet<ProofFormat> | undefined;
  /** What requests with a DPoP proof may have unbound; empty where no such proof is accepted. */
  readonly unbound: ReadonlySet<UnboundPart>;
  /** Whether a DPoP proof must have a nonce of the verifier. */
  readonly needsDpopNonce: boolean;
  /** Whether a `realtime` route accepts access tokens, which nothing ends before their time. */
  readonly acceptsUnrevocable: boolean;
  /** When denied requests no longer pass, if the verifier allows them to; undefined: they never do. */
  readonly observeUntilSeconds: number | undefined;
  readonly sources: readonly SourceRule[];
}

export type FreshnessRule =
  | { readonly kind: 'bounded'; readonly maxStalenessSeconds: number }
  | { readonly kind: 'realtime'; readonly maxStalenessSeconds: number | undefined }
  | { readonly kind: 'unknown'; readonly freshnessClass: string };

/** Routes with the same freshness rule. */
export interface FreshnessGroup {
  readonly rule: Exclude<FreshnessRule, { kind: 'unknown' }>;
  readonly routeIds: readonly string[];
}

/** The attributes of a route are sorted by name, in byte order. */
export interface RequiredAttribute {
  readonly name: string;
  readonly allowed: ReadonlySet<string>;
}

export interface SourceRule {
  /** Position in the route's `allowed_sources`, from 0; identifies the matched rule in audit events. */
  readonly index: number;
  readonly issuer: string;
  readonly trustDomain: string;
  readonly subject: SubjectRule;
  readonly requiredKeyBinding: KeyBinding;
}

interface SubjectRule {
  readonly kind: 'exact' | 'prefix';
  readonly value: string;
  /** False for a SPIFFE ID that is not canonical: such a rule matches no caller. */
  readonly isCanonical: boolean;
}

export interface KeyTable {
  readonly size: number;
  /** @param keyId `kid` of an issuer's key or `key_id` of a derived key; the two share one namespace */
  get(keyId: string): BundleKey | undefined;
}

/** By the passport's issuer. */
export type BlockedCallers = ReadonlyMap<string, BlockedAtIssuer>;

interface BlockedAtIssuer {
  readonly subjects: ReadonlySet<string>;
  /** RFC 7638 thumbprints of holder keys. */
  readonly holders: ReadonlySet<string>;
}

export type BundleKey = IssuerKey | DerivedKey;

/** A broker's key: signs passports for others. */
export interface IssuerKey {
  readonly kind: 'issuer_key';
  readonly keyId: string;
  readonly key: PublicKey;
  readonly notBeforeSeconds: number | undefined;
  readonly notAfterSeconds: number | undefined;
  readonly issuer: IssuerEntry;
}

export interface IssuerEntry {
  readonly issuer: string;
  readonly trustDomain: string;
  /** Prefixes of the subjects that its keys may speak for; the empty prefix allows any. */
  readonly subjectPrefixes: readonly string[];
  /** The strongest class that its keys may attest. */
  readonly keyBinding: KeyBinding;
  readonly maxPassportTtlSeconds: number;
}

/** An authorization server whose access tokens count beside a DPoP proof; its callers are always of class `software`. */
export interface OAuthIssuer {
  readonly issuer: string;
  readonly trustDomain: string;
  readonly tokenTypes: ReadonlySet<AccessTokenType>;
  /** The claim that names a caller. */
  readonly subjectClaim: string;
  /** What tokens of client credentials alone have; undefined: all tokens count. */
  readonly serviceMarker: { readonly claim: string; readonly value: string } | undefined;
  /** Claims that become context. */
  readonly contextClaims: readonly string[];
  readonly maxTokenTtlSeconds: number;
  /** Tokens of before are refused. */
  readonly notBeforeSeconds: number | undefined;
  /** By `kid`. */
  readonly keys: ReadonlyMap<string, TokenKey>;
}

/** A key that Control derived for a workload: signs its own passports, always of class `software`. */
export interface DerivedKey {
  readonly kind: 'derived_key';
  readonly keyId: string;
  readonly key: PublicKey;
  readonly status: 'active' | 'revoked';
  readonly expiresAtSeconds: number;
  readonly clientId: string;
  /** The current client: a delta may replace it while the rest of the key stays. */
  readonly client: ClientEntry;
  readonly provenance: Attributes;
}

export interface ClientEntry {
  readonly clientId: string;
  readonly issuer: string;
  readonly trustDomain: string;
  readonly subject: string;
  readonly context: Attributes;
  /** Strongest access granted, by resource; `write` includes `read`. */
  readonly grants: ReadonlyMap<string, Access>;
}
