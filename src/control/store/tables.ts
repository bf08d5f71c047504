/**
 * The database as the code sees it: one interface a table, one member a column. Columns are snake_case in SQL and
 * camelCase here. The same on SQLite and PostgreSQL: text, integers and bytes only; JSON is text; flags are 0 and 1;
 * moments say their unit.
 */
import type { ColumnType, Generated } from 'kysely';
import type { Approval, EnrollmentState, PolicyState } from '../domain/enrollment.ts';
import type { Role, ScopeKind } from '../domain/roles.ts';
import type { Access, TargetState } from '../domain/runtime.ts';
import type { KeyPolicy, SourceKind, SourceState } from '../domain/source.ts';

/** JSON as text: parsed where it is read. */
type JsonText = string;
type Flag = 0 | 1;
type Fixed<T> = ColumnType<T, T, never>;

/** What can be edited carries a version, which is its ETag. */
interface Versioned {
  version: number;
  createdAtMs: Fixed<number>;
  updatedAtMs: number;
}

export interface InstallationTable {
  /** Always 1: the one row, which mutations outside any site lock. */
  id: Fixed<number>;
  bootstrapTokenHash: string | null;
  /** Names the master key that sealed what is in here; null before the first start. */
  masterKeyId: string | null;
}

export interface EnvironmentTable extends Versioned {
  id: Fixed<string>;
  name: string;
}

export interface FleetTable extends Versioned {
  id: Fixed<string>;
  environmentId: Fixed<string>;
  name: string;
}

/** An Auth Site: its identifier is what transcripts name. */
export interface SiteTable extends Versioned {
  id: Fixed<string>;
  /** Never another site's, as the identifier may be once the site is deleted. */
  uid: Fixed<string>;
  fleetId: Fixed<string>;
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
  /** The newest published revision, 0 before the first; with its head. */
  revision: number;
  head: string | null;
  /** The newest whole bundle's revision, 0 before the first. */
  baseRevision: number;
  /** Publish above this: the highest revision that any target told of. */
  floorRevision: number;
  /** Whether the next publication must be a whole bundle whatever changed. */
  wholeNeeded: Flag;
  /** The newest published revision that changed anything but derived keys, 0 before the first. */
  policyRevision: Generated<number>;
}

/** A broker: signs passports for others. `definition`: JSON as in the bundle's `issuers`. */
export interface BrokerTable extends Versioned {
  siteId: Fixed<string>;
  issuer: Fixed<string>;
  definition: JsonText;
}

export interface SigningKeyTable {
  id: Fixed<string>;
  siteId: Fixed<string>;
  purpose: Fixed<'bundle' | 'freshness'>;
  state: 'active' | 'retiring' | 'retired';
  publicJwk: Fixed<JsonText>;
  thumbprint: Fixed<string>;
  /** PKCS#8, encrypted under the master key. */
  sealedPrivateKey: string;
  createdAtMs: Fixed<number>;
  /** When a retiring key stops signing. */
  retireAtMs: number | null;
}

export interface TargetTable extends Versioned {
  id: Fixed<string>;
  siteId: Fixed<string>;
  name: string;
  state: TargetState;
  tokenHash: string;
  /** The token before the last rotation, good until `previousTokenEndsAtMs`. */
  previousTokenHash: string | null;
  previousTokenEndsAtMs: number | null;
  /** Newest revision that it took. */
  ackedRevision: number | null;
  ackedHead: string | null;
  ackedAtMs: number | null;
  /** The last one that it refused, and why. */
  refusedRevision: number | null;
  refusedCode: string | null;
  refusedDetail: string | null;
  refusedAtMs: number | null;
  lastSeenAtMs: number | null;
  /** The revision that the target reported while no published step leads on from it, and since when. */
  aheadRevision: number | null;
  aheadSinceMs: number | null;
  /** Revisions by which it has made its site's floor rise, in all. */
  raisedRevisions: Generated<number>;
}

export interface ClientTable extends Versioned {
  siteId: Fixed<string>;
  clientId: Fixed<string>;
  subject: string;
  /** JSON object, string to string. */
  context: JsonText;
}

export interface GrantTable {
  siteId: Fixed<string>;
  clientId: Fixed<string>;
  resource: Fixed<string>;
  access: Access;
  createdAtMs: number;
}

/** `definition`: JSON as in the bundle's `routes`, without `route_id`. */
export interface RouteTable extends Versioned {
  siteId: Fixed<string>;
  routeId: Fixed<string>;
  definition: JsonText;
}

/** `allowedSources`: JSON list as in the bundle's `route_sources`. */
export interface RouteSourcesTable extends Versioned {
  siteId: Fixed<string>;
  routeId: Fixed<string>;
  allowedSources: JsonText;
}

export interface SourceTable extends Versioned {
  id: Fixed<string>;
  siteId: Fixed<string>;
  kind: Fixed<SourceKind>;
  displayName: string;
  onSuspend: KeyPolicy;
  onRetire: KeyPolicy;
}

export interface SourceRevisionTable extends Versioned {
  sourceId: Fixed<string>;
  revision: Fixed<number>;
  siteId: Fixed<string>;
  state: SourceState;
  issuer: string;
  jwksUri: string;
  audience: string;
  /** Outputs of validation. */
  fingerprint: string | null;
  detectedScope: string | null;
  validatedAtMs: number | null;
  /** Why the last validation or check failed: a stable code and a line. */
  failureCode: string | null;
  failureDetail: string | null;
  /** The bundle revision that every target must acknowledge before `publishing` ends; null until it is published. */
  awaitedRevision: number | null;
  stateSinceMs: number;
}

/** An audience belongs to one Auth Site. */
export interface AudienceTable {
  audience: Fixed<string>;
  siteId: Fixed<string>;
}

/** The key set of a source revision as last fetched. */
export interface KeySetTable {
  sourceId: Fixed<string>;
  revision: Fixed<number>;
  jwks: JsonText;
  fetchedAtMs: number;
}

export interface EnrollmentPolicyTable extends Versioned {
  id: Fixed<string>;
  siteId: Fixed<string>;
  reference: Fixed<string>;
  displayName: string;
  sourceId: Fixed<string>;
  sourceRevision: number;
  clientId: Fixed<string>;
  approval: Approval;
  maxKeyLifetimeSeconds: number;
  verifiedSubject: Fixed<string>;
  verifiedIssuer: Fixed<string>;
  maxKeysPerToken: number;
  state: PolicyState;
}

/** The challenge itself is not kept: it is derived from its row and a secret. */
export interface ChallengeTable {
  id: Fixed<string>;
  siteId: Fixed<string>;
  policyId: Fixed<string>;
  publicJwk: Fixed<JsonText>;
  thumbprint: Fixed<string>;
  createdAtMs: Fixed<number>;
  expiresAtMs: Fixed<number>;
  /** Set once, when a valid signature has consumed it. */
  enrollmentId: string | null;
}

export interface EnrollmentTable extends Versioned {
  id: Fixed<string>;
  siteId: Fixed<string>;
  policyId: Fixed<string>;
  clientId: Fixed<string>;
  sourceId: Fixed<string>;
  sourceRevision: Fixed<number>;
  challengeId: Fixed<string>;
  /** SHA-256 of the submission's canonical body: the same submission finds its enrollment again. */
  submissionHash: Fixed<string>;
  publicJwk: Fixed<JsonText>;
  thumbprint: Fixed<string>;
  state: EnrollmentState;
  tokenHash: Fixed<string>;
  tokenExpiresAtSeconds: Fixed<number>;
  /** RFC 7638, of the issuer's key that signed the token; null in rows of 0.2.4 and before. */
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
}

export interface DerivedKeyTable extends Versioned {
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
  /** The bundle revision that first listed it, and the one that took it out; null until published. */
  listedRevision: number | null;
  revokedRevision: number | null;
  /** When every attached target had acknowledged the one, and the other; null until then. */
  listedEverywhereAtMs: number | null;
  revokedEverywhereAtMs: number | null;
}

/** Public keys that were revoked once: refused for ever, also after their rows are pruned. */
export interface RevokedPublicKeyTable {
  siteId: Fixed<string>;
  thumbprint: Fixed<string>;
  revokedAtMs: number;
}

export interface BlockedSubjectTable {
  siteId: Fixed<string>;
  issuer: Fixed<string>;
  subject: Fixed<string>;
  blockedAtMs: number;
  blockedBy: string;
}

/** What was changed and is not published yet, in the order of the changes. `policy` asks for a whole bundle. */
export interface ChangeTable {
  seq: Generated<number>;
  siteId: Fixed<string>;
  kind: Fixed<'client' | 'key' | 'policy'>;
  /** client_id or key_id; empty for `policy`. */
  reference: Fixed<string>;
  createdAtMs: Fixed<number>;
}

/** Published steps of a site's chain. A whole bundle's row is a link, once there is something before it. */
export interface BundleStepTable {
  siteId: Fixed<string>;
  revision: Fixed<number>;
  kind: Fixed<'bundle' | 'delta' | 'link'>;
  head: Fixed<string>;
  previousHead: Fixed<string | null>;
  /** The JWS as text; empty for `bundle`, whose text is a file. */
  document: Fixed<string>;
  bytes: Fixed<number>;
  publishedAtMs: Fixed<number>;
}

/** Files of whole bundles: `bundle.jws` and shards. */
export interface BundleFileTable {
  siteId: Fixed<string>;
  revision: Fixed<number>;
  name: Fixed<string>;
  sha256: Fixed<string>;
  bytes: Fixed<number>;
  /** Of a shard: how many keys it lists, and the first key ID that belongs to it; null for `bundle.jws`. */
  keys: Fixed<number | null>;
  firstKey: Fixed<string | null>;
}

/** File contents, by their SHA-256: shards that did not change are kept once. */
export interface BundleBlobTable {
  siteId: Fixed<string>;
  sha256: Fixed<string>;
  content: Fixed<Uint8Array>;
}

export interface FreshnessTable {
  siteId: Fixed<string>;
  revision: number;
  head: string;
  asOfSeconds: number;
  document: string;
}

export interface RoleGrantTable {
  id: Fixed<string>;
  /** `oidc:<issuer>|<subject>` or `group:<name>`. */
  principal: Fixed<string>;
  role: Fixed<Role>;
  scopeKind: Fixed<ScopeKind>;
  scopeId: Fixed<string>;
  createdAtMs: Fixed<number>;
  createdBy: Fixed<string>;
}

/** Automation's scoped tokens. */
export interface AccessTokenTable extends Versioned {
  id: Fixed<string>;
  name: string;
  tokenHash: string;
  role: Fixed<Role>;
  scopeKind: Fixed<ScopeKind>;
  scopeId: Fixed<string>;
  expiresAtMs: number | null;
  lastUsedAtMs: number | null;
}

/** Operators who are signed in. */
export interface SessionTable {
  tokenHash: Fixed<string>;
  principal: Fixed<string>;
  displayName: Fixed<string>;
  /** JSON list of names. */
  groups: Fixed<JsonText>;
  createdAtMs: Fixed<number>;
  expiresAtMs: number;
}

/** A sign-in that is under way. `sealed`: what must come back with the code, encrypted. */
export interface SignInTable {
  stateHash: Fixed<string>;
  sealed: Fixed<string>;
  expiresAtMs: Fixed<number>;
}

export interface IdempotencyTable {
  actor: Fixed<string>;
  key: Fixed<string>;
  /** SHA-256 of method, path and body. */
  requestHash: Fixed<string>;
  status: Fixed<number>;
  /** The answer without what is shown once. */
  body: Fixed<JsonText>;
  headers: Fixed<JsonText>;
  createdAtMs: Fixed<number>;
}

export interface AuditEventTable {
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
  /** The site's `uid`; null when it was gone already. */
  siteUid: Fixed<string | null>;
  /** JSON objects; null where there is nothing before, or after. */
  before: Fixed<JsonText | null>;
  after: Fixed<JsonText | null>;
  requestId: Fixed<string | null>;
}

export interface Tables {
  installation: InstallationTable;
  environment: EnvironmentTable;
  fleet: FleetTable;
  site: SiteTable;
  broker: BrokerTable;
  signingKey: SigningKeyTable;
  target: TargetTable;
  client: ClientTable;
  clientGrant: GrantTable;
  route: RouteTable;
  routeSources: RouteSourcesTable;
  source: SourceTable;
  sourceRevision: SourceRevisionTable;
  audience: AudienceTable;
  keySet: KeySetTable;
  enrollmentPolicy: EnrollmentPolicyTable;
  challenge: ChallengeTable;
  enrollment: EnrollmentTable;
  derivedKey: DerivedKeyTable;
  revokedPublicKey: RevokedPublicKeyTable;
  blockedSubject: BlockedSubjectTable;
  siteChange: ChangeTable;
  bundleStep: BundleStepTable;
  bundleFile: BundleFileTable;
  bundleBlob: BundleBlobTable;
  freshness: FreshnessTable;
  roleGrant: RoleGrantTable;
  accessToken: AccessTokenTable;
  operatorSession: SessionTable;
  signIn: SignInTable;
  idempotency: IdempotencyTable;
  auditEvent: AuditEventTable;
}
