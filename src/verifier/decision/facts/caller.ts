/**
 * The identity that a request claims. Issuer, trust domain, subject and key binding come from the passport before
 * verification: enough to deny on, never to allow on (docs/design/protocol.md, under the table). Provenance and context of a derived
 * key come from the bundle.
 */
import type {
  BundleKey,
  ClientEntry,
  DerivedKey,
  KeyTable,
  OAuthIssuer,
  Snapshot,
} from '../../../bundle/compile/snapshot.ts';
import type { AccessToken } from '../../../protocol/access-token.ts';
import { isIdentifier, type KeyBinding } from '../../../protocol/identifiers.ts';
import type { Attributes, Passport, PassportClaims } from '../../../protocol/passport.ts';
import type { JsonObject } from '../../../protocol/strict-json.ts';
import type { TokenKey } from '../../../protocol/token-key.ts';

export interface Caller {
  readonly issuer: string;
  readonly trustDomain: string;
  readonly subject: string;
  readonly keyId: string;
  readonly keyBinding: KeyBinding;
  readonly provenance: Attributes;
  readonly context: Attributes;
  /** Set for a derived key of the bundle. */
  readonly derivedKey: DerivedKey | undefined;
  /** The bundle's key that the passport's `kid` names; undefined when there is none. */
  readonly bundleKey: BundleKey | undefined;
  /** The immutable object that source rules compare: the client with these claims, the claims, or the access token. */
  readonly identity: ClientEntry | PassportClaims | AccessToken;
}

const NO_ATTRIBUTES: Attributes = new Map();

/** The client of a derived key that signs requests without a passport; undefined for any other key. */
export function callerOfKeyId(keys: KeyTable, keyId: string): Caller | undefined {
  const key = keys.get(keyId);
  if (key?.kind !== 'derived_key') return undefined;
  const { client } = key;
  return {
    issuer: client.issuer,
    trustDomain: client.trustDomain,
    subject: client.subject,
    keyId,
    keyBinding: 'software',
    provenance: key.provenance,
    context: client.context,
    derivedKey: key,
    bundleKey: key,
    identity: client,
  };
}

export function identifyCaller(keys: KeyTable, passport: Passport): Caller {
  const bundleKey = keys.get(passport.keyId);
  return bundleKey?.kind === 'derived_key'
    ? callerOfDerivedKey(bundleKey, passport.claims)
    : claimedCaller(passport, bundleKey);
}

function callerOfDerivedKey(key: DerivedKey, claims: PassportClaims): Caller {
  const { client } = key;
  const { issuer, trustDomain, subject, keyBinding } = claims;
  const isOwn =
    issuer === client.issuer &&
    trustDomain === client.trustDomain &&
    subject === client.subject &&
    keyBinding === 'software';
  return {
    issuer,
    trustDomain,
    subject,
    keyId: key.keyId,
    keyBinding,
    provenance: key.provenance,
    context: client.context,
    derivedKey: key,
    bundleKey: key,
    identity: isOwn ? client : claims,
  };
}

function claimedCaller({ keyId, claims }: Passport, bundleKey: BundleKey | undefined): Caller {
  return {
    issuer: claims.issuer,
    trustDomain: claims.trustDomain,
    subject: claims.subject,
    keyId,
    keyBinding: claims.keyBinding,
    provenance: claims.provenance ?? NO_ATTRIBUTES,
    context: claims.context ?? NO_ATTRIBUTES,
    derivedKey: undefined,
    bundleKey,
    identity: claims,
  };
}

/** Undefined for a token of another issuer, or without the claims that name a caller. */
export function callerOfToken(token: AccessToken, entry: OAuthIssuer | undefined): Caller | undefined {
  if (entry === undefined) return undefined;
  const { contextClaims, serviceMarker, subjectClaim, trustDomain } = entry;
  const { claims, issuer, keyId } = token;
  if (serviceMarker !== undefined && ownClaim(claims, serviceMarker.claim) !== serviceMarker.value)
    return undefined;
  const value = ownClaim(claims, subjectClaim);
  const subject = `${subjectClaim}:${String(value)}`;
  if (!isIdentifier(value) || !isIdentifier(subject)) return undefined;
  return {
    issuer,
    trustDomain,
    subject,
    keyId,
    keyBinding: 'software',
    provenance: NO_ATTRIBUTES,
    context: contextOf(claims, contextClaims),
    derivedKey: undefined,
    bundleKey: undefined,
    identity: token,
  };
}

/** The key of an authorization server that a caller's token names; undefined for other callers. */
export function tokenKeyOf(
  { issuer, keyId }: Pick<Caller, 'issuer' | 'keyId'>,
  snapshot: Pick<Snapshot, 'oauthIssuers'> | undefined,
): TokenKey | undefined {
  return snapshot?.oauthIssuers.get(issuer)?.keys.get(keyId);
}

function ownClaim(claims: JsonObject, name: string): unknown {
  return Object.hasOwn(claims, name) ? claims[name] : undefined;
}

/** `scope` may have several values (RFC 8693 section 4.2); no other attribute has a space. */
function contextOf(claims: JsonObject, names: readonly string[]): Attributes {
  const context = new Map<string, string>();
  for (const name of names) {
    const value = ownClaim(claims, name);
    const isSound = name === 'scope' ? isScope(value) : isIdentifier(value);
    if (isSound) context.set(name, String(value));
  }
  return context;
}

const SCOPE = /^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/;

function isScope(value: unknown): boolean {
  return typeof value === 'string' && SCOPE.test(value);
}
