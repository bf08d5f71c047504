/**
 * The identity that a request claims. Issuer, trust domain, subject and key binding come from the passport before
 * verification: enough to deny on, never to allow on (docs/design/protocol.md, under the table). Provenance and context of a derived
 * key come from the bundle.
 */
import type { BundleKey, ClientEntry, DerivedKey, KeyTable } from '../../../bundle/compile/snapshot.ts';
import type { KeyBinding } from '../../../protocol/identifiers.ts';
import type { Attributes, Passport, PassportClaims } from '../../../protocol/passport.ts';

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
  /** The immutable object that source rules compare: the client with these claims, or the claims. */
  readonly identity: ClientEntry | PassportClaims;
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
