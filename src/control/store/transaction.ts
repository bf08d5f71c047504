/**
 * A transaction's repositories, one for each kind of record. Do not use a repository after its transaction ends.
 */
import type { Database } from './database.ts';
import type { Notice } from './notice.ts';
import { AuditTrail } from './repositories/audit-repository.ts';
import { SiteChanges } from './repositories/changes-repository.ts';
import { Clients } from './repositories/clients-repository.ts';
import { Distribution } from './repositories/distribution-repository.ts';
import { Enrollments } from './repositories/enrollments-repository.ts';
import { Hierarchy, Sites } from './repositories/hierarchy-repository.ts';
import { Keys } from './repositories/keys-repository.ts';
import { Operators } from './repositories/operators-repository.ts';
import { Policies } from './repositories/policies-repository.ts';
import { Propagation } from './repositories/propagation-repository.ts';
import { Publication } from './repositories/publication-repository.ts';
import { SigningKeys } from './repositories/signing-keys-repository.ts';
import { Sources } from './repositories/sources-repository.ts';
import { Targets } from './repositories/targets-repository.ts';
import { VersionedTable } from './repositories/versioned-table.ts';

export class Transaction {
  readonly environments: VersionedTable<'environment'>;
  readonly fleets: VersionedTable<'fleet'>;
  readonly sites: Sites;
  /** Finds places of environments, fleets and sites. */
  readonly hierarchy: Hierarchy;
  readonly signingKeys: SigningKeys;
  readonly targets: Targets;
  /** Clients and their grants. */
  readonly clients: Clients;
  readonly brokers: VersionedTable<'broker'>;
  readonly routes: VersionedTable<'route'>;
  readonly routeSources: VersionedTable<'routeSources'>;
  /** Trust Anchor Sources, and the key sets of their revisions. */
  readonly sources: Sources;
  readonly sourceRevisions: VersionedTable<'sourceRevision'>;
  readonly policies: Policies;
  /** Challenges and enrollments. */
  readonly enrollments: Enrollments;
  /** Derived keys, revoked public keys and blocked subjects. */
  readonly keys: Keys;
  /** Unpublished changes. */
  readonly changes: SiteChanges;
  /** Published documents. */
  readonly distribution: Distribution;
  /** Bulk reads for publishing. */
  readonly publication: Publication;
  /** How far publications have spread. */
  readonly propagation: Propagation;
  readonly accessTokens: VersionedTable<'accessToken'>;
  /** Role grants, token usage, sessions. */
  readonly operators: Operators;
  readonly audit: AuditTrail;
  readonly #notices: Notice[] = [];

  /** @param holdSite waits for a site's lock, unless this transaction holds it already */
  constructor(db: Database, holdSite: (siteId: string) => Promise<void>) {
    this.environments = new VersionedTable(db, 'environment');
    this.fleets = new VersionedTable(db, 'fleet');
    this.sites = new Sites(db);
    this.hierarchy = new Hierarchy(db);
    this.signingKeys = new SigningKeys(db);
    this.targets = new Targets(db);
    this.clients = new Clients(db);
    this.brokers = new VersionedTable(db, 'broker');
    this.routes = new VersionedTable(db, 'route');
    this.routeSources = new VersionedTable(db, 'routeSources');
    this.sources = new Sources(db);
    this.sourceRevisions = new VersionedTable(db, 'sourceRevision');
    this.policies = new Policies(db);
    this.enrollments = new Enrollments(db);
    this.keys = new Keys(db);
    this.changes = new SiteChanges(db, holdSite);
    this.distribution = new Distribution(db);
    this.publication = new Publication(db);
    this.propagation = new Propagation(db);
    this.accessTokens = new VersionedTable(db, 'accessToken');
    this.operators = new Operators(db);
    this.audit = new AuditTrail(db);
  }

  /** Sends the notice to all instances after the commit; a rollback discards it. */
  notify(notice: Notice): void {
    const known = this.#notices.some(
      ({ topic, reference }) => topic === notice.topic && reference === notice.reference,
    );
    if (!known) this.#notices.push(notice);
  }

  get notices(): readonly Notice[] {
    return this.#notices;
  }
}
