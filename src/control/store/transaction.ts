import { AuditTrail } from './repositories/audit-repository.ts';
import { BlockedCallers } from './repositories/blocked-callers-repository.ts';
import { BrokerTable } from './repositories/brokers-repository.ts';
import { SiteChanges } from './repositories/changes-repository.ts';
import { Clients } from './repositories/clients-repository.ts';
import { DecisionSummaries } from './repositories/decision-summaries-repository.ts';
import { Distribution } from './repositories/distribution-repository.ts';
import { Enrollments } from './repositories/enrollments-repository.ts';
import { Hierarchy, Sites } from './repositories/hierarchy-repository.ts';
import { KeyUses } from './repositories/key-uses-repository.ts';
import { Keys } from './repositories/keys-repository.ts';
import { OAuthIssuerTable } from './repositories/oauth-issuers-repository.ts';
import { AccessTokenTable, Operators } from './repositories/operators-repository.ts';
import { Policies } from './repositories/policies-repository.ts';
import { Propagation } from './repositories/propagation-repository.ts';
import { Publication } from './repositories/publication-repository.ts';
import { SignedBounds } from './repositories/signed-bounds-repository.ts';
import { SigningKeys } from './repositories/signing-keys-repository.ts';
import { Sources } from './repositories/sources-repository.ts';
import type { Database } from './repositories/tables.ts';
import { TargetInstances } from './repositories/target-instances-repository.ts';
import { Targets } from './repositories/targets-repository.ts';
import { VersionedTable } from './repositories/versioned-table.ts';

/** Notices that reach other parts and instances after a commit. */
export type Topic = 'site_changed' | 'site_published' | 'enrollment_decided';

export interface Notice {
  readonly topic: Topic;
  /** Site ID; for `enrollment_decided` the enrollment's ID. */
  readonly reference: string;
}

/** A transaction's repositories, one for each kind of record. Do not use one after its transaction ends. */
export type Transaction = Readonly<ReturnType<typeof openTransaction>>;

/** Each waits for a lock, unless the transaction holds it already. */
export interface HeldLocks {
  holdSite(siteId: string): Promise<void>;
  /** Until it ends, no other transaction that calls this sees or changes which origins sites have. */
  holdOrigins(): Promise<void>;
}

/** For reads. */
export const NO_LOCKS: HeldLocks = { holdSite: async () => {}, holdOrigins: async () => {} };

export function openTransaction(db: Database, { holdOrigins, holdSite }: HeldLocks) {
  const notices: Notice[] = [];
  return {
    holdOrigins,
    environments: new VersionedTable(db, 'environment'),
    fleets: new VersionedTable(db, 'fleet'),
    sites: new Sites(db, 'site'),
    /** Finds places of environments, fleets and sites. */
    hierarchy: new Hierarchy(db),
    signingKeys: new SigningKeys(db),
    targets: new Targets(db, 'target'),
    targetInstances: new TargetInstances(db),
    /** What targets decided. */
    decisionSummaries: new DecisionSummaries(db),
    /** Clients and their grants. */
    clients: new Clients(db, 'client'),
    brokers: new BrokerTable(db, 'broker'),
    oauthIssuers: new OAuthIssuerTable(db, 'oauthIssuer'),
    routes: new VersionedTable(db, 'route'),
    routeSources: new VersionedTable(db, 'routeSources'),
    /** Trust Anchor Sources, and the key sets of their revisions. */
    sources: new Sources(db, 'source'),
    sourceRevisions: new VersionedTable(db, 'sourceRevision'),
    policies: new Policies(db, 'enrollmentPolicy'),
    /** Challenges and enrollments. */
    enrollments: new Enrollments(db, 'enrollment'),
    /** Derived keys, revoked public keys and blocked subjects. */
    keys: new Keys(db, 'derivedKey'),
    /** When derived keys were last used. */
    keyUses: new KeyUses(db),
    blockedCallers: new BlockedCallers(db),
    /** Unpublished changes. */
    changes: new SiteChanges(db, holdSite),
    /** Published documents. */
    distribution: new Distribution(db),
    /** Bulk reads for publishing. */
    publication: new Publication(db),
    /** Until when verifiers may use what was signed. */
    signedBounds: new SignedBounds(db),
    /** Propagation of publications. */
    propagation: new Propagation(db),
    accessTokens: new AccessTokenTable(db, 'accessToken'),
    /** Role grants, token usage, sessions. */
    operators: new Operators(db),
    audit: new AuditTrail(db),
    notices: notices as readonly Notice[],
    /** Sends the notice to all instances after the commit; a rollback discards it. */
    notify(notice: Notice): void {
      const known = notices.some(
        ({ topic, reference }) => topic === notice.topic && reference === notice.reference,
      );
      if (!known) notices.push(notice);
    },
  };
}
