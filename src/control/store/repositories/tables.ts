/**
 * TypeScript types of the database's tables: one member per column. Columns are snake_case in
 * SQL and camelCase here. Both databases use only text, integers and bytes. JSON is text, flags are 0 and 1, and names
 * of time columns end with their unit.
 */
import type { ColumnType, Generated, Transaction } from 'kysely';
import type { Access } from '../../../protocol/access.ts';
import type {
  Approval,
  EnrollmentState,
  KeyPolicy,
  PolicyState,
  Role,
  ScopeKind,
  SourceKind,
  SourceState,
} from '../../contract/vocabulary.ts';
import type { TargetState } from '../../domain/runtime-states.ts';

/** JSON as text: parsed where it is read. */
type JsonText = string;
type Flag = 0 | 1;
type Fixed<T> = ColumnType<T, T, never>;
/** Of a member that bundles may hold. `withheld`: left out because a target does not know it. */
export type MemberPublished = 'none' | 'published' | 'withheld';

interface SignedEnds {
  /** Of `expires_at` and the head's skew. */
  expiresEndSeconds: number;
  /** Of `issued_at` or `as_of` and the longest staleness of the head's bounded routes. */
  boundedEndSeconds: number;
  /** As `boundedEndSeconds`, of realtime routes. */
  realtimeEndSeconds: number;
  /** Of `issued_at` and `as_of`. */
  freshSeconds: number;
  /** Of the skew. */
  skewSeconds: number;
}

/** Editable rows carry a version, which is their ETag. */
interface Versioned {
  version: number;
  createdAtMs: Fixed<number>;
  updatedAtMs: number;
}

export interface Tables {
  installation: {
    /** Always 1: the only row, which mutations outside sites lock. */
    id: Fixed<number>;
    bootstrapTokenHash: string | null;
    /** ID of the master key that encrypts; null before the first start. */
    masterKeyId: string | null;
    /** ID of the previous master key; null before the first rotation. */
    previousMasterKeyId: string | null;
    /** 1 while secrets may still be encrypted with the previous key. */
    masterKeyRotating: Generated<Flag>;
  };

  environment: Versioned & {
    id: Fixed<string>;
    name: string;
  };

  fleet: Versioned & {
    id: Fixed<string>;
    environmentId: Fixed<string>;
    name: string;
  };

  /** An Auth Site. Transcripts name its identifier. */
  site: Versioned & {
    id: Fixed<string>;
    /** Never reused, unlike the identifier after the site is deleted. */
    uid: Fixed<string>;
    fleetId: Fixed<string>;
    /** Environment of the fleet; null in a row that 0.3.0 or an earlier version created after the migration. */
    environmentId: Fixed<string | null>;
    displayName: string;
    trustDomain: string;
    /** `iss` of the passports that derived keys sign. */
    issuerUrl: string;
    /** JSON list of `scheme://authority`. */
    origins: JsonText;
    skewSeconds: number;
    singleVerifier: Flag;
    bundleLifetimeSeconds: number;
    sourceCapacity: number;
    /** The newest published revision, 0 before the first, and its head. */
    revision: number;
    head: string | null;
    /** The newest whole bundle's revision, 0 before the first. */
    baseRevision: number;
    /** The next revision must be above this: the highest one that any target reported. */
    floorRevision: number;
    /** Whether the next publication must be a whole bundle, whatever changed. */
    wholeNeeded: Flag;
    /** The newest published revision that changed anything but derived keys, 0 before the first. */
    policyRevision: Generated<number>;
    /** Whether bundles list blocked callers; stays set from the first time that every attached target knew the member. */
    blockedPublished: Generated<Flag>;
    /** When the observation of requests that no route matches ends or ended; null when they are denied. */
    unmatchedUntilSeconds: number | null;
    /** Of the newest whole bundle. */
    observations: Generated<MemberPublished>;
    /** Of the newest whole bundle. */
    acceptedProofs: Generated<MemberPublished>;
    /** Whether several replay stores are on purpose. */
    replayStores: Generated<'one' | 'per_region'>;
  };

  /** A broker: signs passports for others, one for each issuer and trust domain. */
  broker: Versioned & {
    siteId: Fixed<string>;
    issuer: Fixed<string>;
    trustDomain: Fixed<string>;
    /** URL from which operators' machines fetch its keys. */
    url: string | null;
    /** As in the bundle's `issuers`, but `keys` may be empty: then it is not published. */
    definition: JsonText;
    /** JSON object: when each of the keys was pinned, in milliseconds, by RFC 7638 thumbprint. */
    keyPins: JsonText;
  };

  /** An OAuth authorization server, whose access tokens count beside a DPoP proof. */
  oauthIssuer: Versioned & {
    siteId: Fixed<string>;
    issuer: Fixed<string>;
    /** As in the bundle's `oauth_issuers`, without `issuer` and `keys`, with `jwks_url`. */
    definition: JsonText;
    /** As in the bundle; null: it is not published. */
    keys: JsonText | null;
    /** When the last successful fetch began; null before the first with this `jwks_url`. */
    fetchedAtMs: number | null;
    /** When the last fetch began, or earlier, for the next one to come sooner; null when one is due. */
    attemptedAtMs: number | null;
    /** Of the last fetch; null when it succeeded. */
    failureCode: string | null;
  };

  signingKey: {
    id: Fixed<string>;
    siteId: Fixed<string>;
    purpose: Fixed<'bundle' | 'freshness' | 'receipt'>;
    state: 'active' | 'retiring' | 'retired';
    publicJwk: Fixed<JsonText>;
    thumbprint: Fixed<string>;
    /** PKCS#8, encrypted under the master key. */
    sealedPrivateKey: string;
    createdAtMs: Fixed<number>;
    /** When a retiring key stops signing. */
    retireAtMs: number | null;
  };

  target: Versioned & {
    id: Fixed<string>;
    siteId: Fixed<string>;
    name: string;
    state: TargetState;
    tokenHash: string;
    /** The token before the last rotation, good until `previousTokenEndsAtMs`. */
    previousTokenHash: string | null;
    previousTokenEndsAtMs: number | null;
    /** Newest accepted revision. */
    ackedRevision: number | null;
    ackedHead: string | null;
    ackedAtMs: number | null;
    /** The last rejected revision, and why. */
    refusedRevision: number | null;
    refusedCode: string | null;
    refusedDetail: string | null;
    refusedAtMs: number | null;
    lastSeenAtMs: number | null;
    /** The reported revision of a target that no published step continues from, and since when. */
    aheadRevision: number | null;
    aheadSinceMs: number | null;
    /** Total number of revisions by which it has raised its site's floor. */
    raisedRevisions: Generated<number>;
    /** Time of its last request that did not name the optional bundle member. */
    acceptedProofsLackedAtMs: number | null;
    blockedLackedAtMs: number | null;
    enforcementLackedAtMs: number | null;
    passportHeaderLackedAtMs: number | null;
    /** What it last said that it enforces although the bundle says observe, as in the request header; null for nothing. */
    enforcedObservations: string | null;
    /** Newest position that verifiers which sign nothing acknowledged, and until when the target waits for them. */
    unsignedRevision: number | null;
    unsignedHead: string | null;
    unsignedUntilMs: number | null;
    /** Oldest revision among instances that are not listed, and when the last of them denies everything; then those that came later. */
    unlistedRevision: number | null;
    unlistedUntilMs: number | null;
    nextUnlistedRevision: number | null;
    nextUnlistedUntilMs: number | null;
    /** When all of its verifiers deny everything unless they send another request; null while unknown. */
    freshUntilMs: number | null;
  };

  /** A verifier that reported itself with the target's token. */
  targetInstance: {
    targetId: Fixed<string>;
    instanceId: Fixed<string>;
    siteId: Fixed<string>;
    version: string;
    /** ID of its replay store, `memory` for one of its own; null while it does not know. */
    replayStore: string | null;
    /** That it has loaded; null before the first. */
    revision: number | null;
    /** How many observations it enforces. */
    enforcedObservations: number;
    firstSeenAtMs: number;
    lastSeenAtMs: number;
    /** Ed25519, base64url; null for a verifier that signs no acknowledgements. */
    publicKey: string | null;
    realtimeStalenessSeconds: number | null;
    breakGlass: Flag | null;
    /** Newest position that it acknowledged with its signature; null before the first. */
    ackedRevision: number | null;
    ackedHead: string | null;
    ackedAtMs: number | null;
    /** Time in that acknowledgement, by the verifier's clock. */
    signedAtMs: number | null;
    /** When it denies everything unless it sends another request; null while unknown. */
    freshUntilMs: number | null;
  };

  /**
   * Until when a verifier may use what was signed for the site, over every head up to `revision`: the greatest of each value, seconds
   * since the epoch. Source: `src/control/publishing/signed-bounds.ts`.
   */
  signedBound: SignedEnds & {
    siteId: Fixed<string>;
    revision: number;
    /** Longest time from `issued_at` to `expires_at`. */
    lifetimeSeconds: number;
    /** Longest staleness of the newest whole bundle's bounded and of its realtime routes. */
    boundedSeconds: number;
    realtimeSeconds: number;
    /** Longest `--realtime-staleness` that a verifier ever reported; 0 before the first. */
    longestRealtimeSeconds: number;
    /** When a verifier that reports no limit, or may have a break-glass statement, last sent a request; 0 for never. */
    unlimitedSeenSeconds: number;
  };

  /** A copy of `signedBound` of before the revision, for each revision that revokes keys. */
  revocationBound: SignedEnds & {
    siteId: Fixed<string>;
    revision: Fixed<number>;
  };

  /** Decisions that a target reported. */
  decisionSummary: {
    /** 60 or 3600. */
    spanSeconds: Fixed<number>;
    startSeconds: Fixed<number>;
    targetId: Fixed<string>;
    siteId: Fixed<string>;
    /** Sums of `summary`. */
    allowed: number;
    denied: number;
    observed: number;
    dropped: number;
    /** JSON of `decision-summary.ts`. */
    summary: JsonText;
  };

  client: Versioned & {
    siteId: Fixed<string>;
    clientId: Fixed<string>;
    subject: string;
    /** JSON object, string to string. */
    context: JsonText;
  };

  clientGrant: {
    siteId: Fixed<string>;
    clientId: Fixed<string>;
    resource: Fixed<string>;
    access: Access;
    createdAtMs: number;
  };

  /** `definition`: JSON as in the bundle's `routes`, without `route_id`. */
  route: Versioned & {
    siteId: Fixed<string>;
    routeId: Fixed<string>;
    definition: JsonText;
    /** `observe_until` of an observed route; null otherwise. */
    observeUntilSeconds: number | null;
  };

  /** `allowedSources`: JSON list as in the bundle's `route_sources`. */
  routeSources: Versioned & {
    siteId: Fixed<string>;
    routeId: Fixed<string>;
    allowedSources: JsonText;
  };

  source: Versioned & {
    id: Fixed<string>;
    siteId: Fixed<string>;
    kind: Fixed<SourceKind>;
    displayName: string;
    onSuspend: KeyPolicy;
    onRetire: KeyPolicy;
  };

  sourceRevision: Versioned & {
    sourceId: Fixed<string>;
    revision: Fixed<number>;
    siteId: Fixed<string>;
    state: SourceState;
    issuer: string;
    jwksUri: string;
    audience: string;
    discovery: 'checked' | 'skipped';
    /** Outputs of validation. */
    fingerprint: string | null;
    detectedScope: string | null;
    validatedAtMs: number | null;
    /** Why the last validation failed: a stable code and one line of detail. */
    failureCode: string | null;
    failureDetail: string | null;
    /** The bundle revision that every target must acknowledge before `publishing` ends; null until it is published. */
    awaitedRevision: number | null;
    stateSinceMs: number;
  };

  /** An audience belongs to one Auth Site. */
  audience: {
    audience: Fixed<string>;
    siteId: Fixed<string>;
  };

  /** The key set of a source revision as last fetched. */
  keySet: {
    sourceId: Fixed<string>;
    revision: Fixed<number>;
    jwks: JsonText;
    fetchedAtMs: number;
    /** The last failed fetch since the first key set; null when none failed. */
    failedAtMs: number | null;
    failureCode: string | null;
  };

  enrollmentPolicy: Versioned & {
    id: Fixed<string>;
    siteId: Fixed<string>;
    reference: Fixed<string>;
    displayName: string;
    sourceId: Fixed<string>;
    sourceRevision: number;
    /** The revision to which it moves when that is active; null when none is declared. */
    nextSourceRevision: number | null;
    clientId: Fixed<string>;
    approval: Approval;
    maxKeyLifetimeSeconds: number;
    verifiedSubject: Fixed<string>;
    verifiedIssuer: Fixed<string>;
    maxKeysPerToken: number;
    state: PolicyState;
  };

  /** The challenge itself is not stored; it is derived from its row and the master key. */
  challenge: {
    id: Fixed<string>;
    siteId: Fixed<string>;
    policyId: Fixed<string>;
    publicJwk: Fixed<JsonText>;
    thumbprint: Fixed<string>;
    createdAtMs: Fixed<number>;
    expiresAtMs: Fixed<number>;
    /** Set once, when the challenge is consumed. */
    enrollmentId: string | null;
  };

  enrollment: Versioned & {
    id: Fixed<string>;
    siteId: Fixed<string>;
    policyId: Fixed<string>;
    clientId: Fixed<string>;
    sourceId: Fixed<string>;
    sourceRevision: Fixed<number>;
    challengeId: Fixed<string>;
    /** SHA-256 of the submission's canonical body, by which a repeated submission finds its enrollment. */
    submissionHash: Fixed<string>;
    publicJwk: Fixed<JsonText>;
    thumbprint: Fixed<string>;
    state: EnrollmentState;
    tokenHash: Fixed<string>;
    tokenExpiresAtSeconds: Fixed<number>;
    /** RFC 7638 thumbprint of the issuer key that signed the token; null in rows of 0.2.4 and before. */
    tokenKeyThumbprint: Fixed<string | null>;
    keyExpiresAtSeconds: Fixed<number>;
    verifiedIssuer: Fixed<string>;
    verifiedSubject: Fixed<string>;
    /** JSON object, string to string. */
    provenance: Fixed<JsonText>;
    denialCode: string | null;
    decidedBy: string | null;
    decidedAtMs: number | null;
    keyId: string | null;
  };

  derivedKey: Versioned & {
    keyId: Fixed<string>;
    siteId: Fixed<string>;
    clientId: Fixed<string>;
    policyId: Fixed<string>;
    enrollmentId: Fixed<string>;
    sourceId: Fixed<string>;
    sourceRevision: Fixed<number>;
    publicJwk: Fixed<JsonText>;
    thumbprint: Fixed<string>;
    status: 'active' | 'revoked';
    expiresAtSeconds: Fixed<number>;
    verifiedIssuer: Fixed<string>;
    verifiedSubject: Fixed<string>;
    provenance: Fixed<JsonText>;
    revokedAtMs: number | null;
    revokedBy: string | null;
    revokedReason: string | null;
    /** The bundle revisions that first listed the key and that revoked it; null until published. */
    listedRevision: number | null;
    revokedRevision: number | null;
    /** When every attached target had acknowledged each of the two; null until then. */
    listedEverywhereAtMs: number | null;
    revokedEverywhereAtMs: number | null;
  };

  /** When a target last saw a derived key in use, as it reported. */
  keyUse: {
    keyId: Fixed<string>;
    targetId: Fixed<string>;
    /** Start of a minute. */
    usedAtSeconds: number;
  };

  /** Revoked public keys: rejected permanently, also after their key rows are pruned. */
  revokedPublicKey: {
    siteId: Fixed<string>;
    thumbprint: Fixed<string>;
    revokedAtMs: number;
  };

  blockedSubject: {
    siteId: Fixed<string>;
    issuer: Fixed<string>;
    subject: Fixed<string>;
    blockedAtMs: number;
    blockedBy: string;
  };

  /** Callers that bundles deny on every route. Exactly one of `subject` and `holderThumbprint` is set. */
  blockedCaller: {
    siteId: Fixed<string>;
    /** Issuer, selector and its value: the position in lists. */
    name: Fixed<string>;
    issuer: Fixed<string>;
    subject: Fixed<string | null>;
    holderThumbprint: Fixed<string | null>;
    blockedAtMs: Fixed<number>;
    blockedBy: Fixed<string>;
  };

  /** Unpublished changes, in order. `policy` requests a whole bundle. */
  siteChange: {
    seq: Generated<number>;
    siteId: Fixed<string>;
    kind: Fixed<'client' | 'key' | 'policy'>;
    /** client_id or key_id; empty for `policy`. */
    reference: Fixed<string>;
    createdAtMs: Fixed<number>;
  };

  /** Published steps of a site's chain. A whole bundle's row is a link if a document precedes it. */
  bundleStep: {
    siteId: Fixed<string>;
    revision: Fixed<number>;
    kind: Fixed<'bundle' | 'delta' | 'link'>;
    head: Fixed<string>;
    previousHead: Fixed<string | null>;
    /** The JWS as text; empty for `bundle`, whose text is a file. */
    document: Fixed<string>;
    bytes: Fixed<number>;
    publishedAtMs: Fixed<number>;
  };

  /** Files of whole bundles: `bundle.jws` and shards. */
  bundleFile: {
    siteId: Fixed<string>;
    revision: Fixed<number>;
    name: Fixed<string>;
    sha256: Fixed<string>;
    bytes: Fixed<number>;
    /** The number of keys in a shard, and its first key ID; null for `bundle.jws`. */
    keys: Fixed<number | null>;
    firstKey: Fixed<string | null>;
  };

  /** File contents by SHA-256, so that unchanged shards are stored once. */
  bundleBlob: {
    siteId: Fixed<string>;
    sha256: Fixed<string>;
    content: Fixed<Uint8Array>;
  };

  freshness: {
    siteId: Fixed<string>;
    revision: number;
    head: string;
    asOfSeconds: number;
    document: string;
  };

  roleGrant: {
    id: Fixed<string>;
    /** `oidc:<issuer>|<subject>` or `group:<name>`. */
    principal: Fixed<string>;
    role: Fixed<Role>;
    scopeKind: Fixed<ScopeKind>;
    scopeId: Fixed<string>;
    createdAtMs: Fixed<number>;
    createdBy: Fixed<string>;
    /** Environment of the scope; null if it has none. */
    environmentId: Fixed<string | null>;
    fleetId: Fixed<string | null>;
  };

  /** Scoped tokens for automation. */
  accessToken: Versioned & {
    id: Fixed<string>;
    name: string;
    tokenHash: string;
    role: Fixed<Role>;
    scopeKind: Fixed<ScopeKind>;
    scopeId: Fixed<string>;
    expiresAtMs: number | null;
    lastUsedAtMs: number | null;
    /** Null for a token from before this column whose audit event was pruned. */
    createdBy: Fixed<string | null>;
    /** Environment of the scope; null if it has none. */
    environmentId: Fixed<string | null>;
    fleetId: Fixed<string | null>;
  };

  /** Sessions of signed-in operators. */
  operatorSession: {
    tokenHash: Fixed<string>;
    principal: Fixed<string>;
    displayName: Fixed<string>;
    /** JSON list of names. */
    groups: Fixed<JsonText>;
    createdAtMs: Fixed<number>;
    expiresAtMs: number;
  };

  /** A pending sign-in. `sealed` holds the encrypted state of its current step. */
  signIn: {
    stateHash: Fixed<string>;
    sealed: string;
    expiresAtMs: Fixed<number>;
  };

  idempotency: {
    actor: Fixed<string>;
    key: Fixed<string>;
    /** SHA-256 of method, path and body. */
    requestHash: Fixed<string>;
    status: Fixed<number>;
    /** The response body, without secrets that are shown once. */
    body: Fixed<JsonText>;
    headers: Fixed<JsonText>;
    createdAtMs: Fixed<number>;
  };

  auditEvent: {
    seq: Generated<number>;
    id: Fixed<string>;
    atMs: Fixed<number>;
    /** `proofgate.control.<resource>.<verb>` */
    kind: Fixed<string>;
    actor: Fixed<string>;
    resourceKind: Fixed<string>;
    resourceId: Fixed<string>;
    environmentId: Fixed<string | null>;
    fleetId: Fixed<string | null>;
    siteId: Fixed<string | null>;
    /** The site's `uid`; null if the site was already deleted. */
    siteUid: Fixed<string | null>;
    /** JSON objects; null where the resource did not exist before or after. */
    before: Fixed<JsonText | null>;
    after: Fixed<JsonText | null>;
    requestId: Fixed<string | null>;
    /** The operator's reason. */
    reason: Fixed<string | null>;
  };
}

/** The database handle inside a transaction, which repositories use. */
export type Database = Transaction<Tables>;
