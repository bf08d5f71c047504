/**
 * What there is inside a transaction: one small repository for each kind of record. A repository belongs to its
 * transaction and is of no use after it.
 */
import type { Database } from './database.ts';
import type { Notice } from './notice.ts';
import { AuditTrail } from './repositories/audit.ts';
import { SiteChanges } from './repositories/changes.ts';
import { Clients } from './repositories/clients.ts';
import { Distribution } from './repositories/distribution.ts';
import { Enrollments } from './repositories/enrollments.ts';
import { Hierarchy } from './repositories/hierarchy.ts';
import { Keys } from './repositories/keys.ts';
import { Operators } from './repositories/operators.ts';
import { Policies } from './repositories/policies.ts';
import { Propagation } from './repositories/propagation.ts';
import { Publication } from './repositories/publication.ts';
import { Routes } from './repositories/routes.ts';
import { SigningKeys } from './repositories/signing-keys.ts';
import { Sources } from './repositories/sources.ts';
import { Targets } from './repositories/targets.ts';

export class Transaction {
  /** Environments, fleets, sites. */
  readonly hierarchy: Hierarchy;
  readonly signingKeys: SigningKeys;
  readonly targets: Targets;
  /** Clients and their grants; brokers. */
  readonly clients: Clients;
  /** Routes and route sources. */
  readonly routes: Routes;
  readonly sources: Sources;
  readonly policies: Policies;
  /** Challenges and enrollments. */
  readonly enrollments: Enrollments;
  /** Derived keys, and what was revoked or blocked. */
  readonly keys: Keys;
  /** What is not published yet. */
  readonly changes: SiteChanges;
  /** What is published. */
  readonly distribution: Distribution;
  /** What publishing reads of many records at once. */
  readonly publication: Publication;
  /** How far publications have come. */
  readonly propagation: Propagation;
  /** Role grants, tokens, sessions. */
  readonly operators: Operators;
  readonly audit: AuditTrail;
  readonly #notices: Notice[] = [];

  /** @param holdSite waits for a site's lock, unless this transaction has it already */
  constructor(db: Database, holdSite: (siteId: string) => Promise<void>) {
    this.hierarchy = new Hierarchy(db);
    this.signingKeys = new SigningKeys(db);
    this.targets = new Targets(db);
    this.clients = new Clients(db);
    this.routes = new Routes(db);
    this.sources = new Sources(db);
    this.policies = new Policies(db);
    this.enrollments = new Enrollments(db);
    this.keys = new Keys(db);
    this.changes = new SiteChanges(db, holdSite);
    this.distribution = new Distribution(db);
    this.publication = new Publication(db);
    this.propagation = new Propagation(db);
    this.operators = new Operators(db);
    this.audit = new AuditTrail(db);
  }

  /** Tells everybody, on every instance, once this transaction is committed; nobody when it is not. */
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
