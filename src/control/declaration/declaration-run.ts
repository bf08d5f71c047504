/**
 * Runs the steps of a declaration inside one transaction, each by the operation that the API offers for it. The site is
 * checked once, at the end.
 */

import type { Access } from '../../protocol/access.ts';
import { Brokers } from '../configuration/brokers.ts';
import { type ClientReplacement, Clients, type GrantReplacement, Grants } from '../configuration/clients.ts';
import { Environments, Fleets } from '../configuration/environments.ts';
import { OAuthIssuers } from '../configuration/oauth-issuers.ts';
import {
  type RouteReplacement,
  RouteSources,
  Routes,
  type SourcesOfRoute,
  type SourcesReplacement,
} from '../configuration/routes.ts';
import { type CreateSiteKeys, Sites } from '../configuration/sites.ts';
import { Targets } from '../configuration/targets.ts';
import type {
  DeclarationResult,
  DeclaredPolicy,
  DeclaredSource,
  SiteDeclaration,
} from '../contract/declaration-contract.ts';
import type { SiteChange } from '../contract/hierarchy-contract.ts';
import type { OAuthIssuerDefinition } from '../contract/oauth-issuers-contract.ts';
import type {
  AllowedSources,
  BrokerReplacement,
  NewClient,
  NewRoute,
  RouteDefinition,
} from '../contract/routes-contract.ts';
import type {
  EnrollmentPolicyChange,
  SourceChange,
  SourceRevisionChange,
} from '../contract/sources-contract.ts';
import { isDraft } from '../domain/source-states.ts';
import { EnrollmentPolicies } from '../enrollment/policies.ts';
import { requireRow, type SiteCheck } from '../resource/change.ts';
import { JoinedStore } from '../resource/joined-store.ts';
import type { Operation } from '../resource/operation.ts';
import type { RevisionName } from '../sources/source-changes.ts';
import { SourceDrafts } from '../sources/source-drafts.ts';
import { SourceLifecycle } from '../sources/source-lifecycle.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import type { CurrentSource } from './current-site.ts';

export interface DeclarationRunOptions {
  readonly tx: Transaction;
  readonly operation: Operation;
  readonly siteId: string;
  readonly environmentId: string | undefined;
  readonly fleetId: string | undefined;
  /** The revision of each source that exists, by name. */
  readonly revisions: ReadonlyMap<string, RevisionName>;
  /** One time for all steps. */
  readonly nowMs: number;
  readonly siteCheck: SiteCheck;
  readonly createSiteKeys: CreateSiteKeys;
}

/** Methods that run a step. */
type StepMethod = Exclude<keyof DeclarationRun, 'audit' | 'tokens' | 'activated' | 'writeMany' | 'finish'>;

/** A method of {@link DeclarationRun} with its arguments. */
export type RunCall = {
  [M in StepMethod]: readonly [M, ...Parameters<DeclarationRun[M]>];
}[StepMethod];

export function runCall(run: DeclarationRun, [method, ...args]: RunCall): Promise<unknown> {
  return Reflect.apply(run[method], run, args);
}

export class DeclarationRun {
  readonly #options: DeclarationRunOptions;
  readonly #store: JoinedStore;
  readonly #services: ReturnType<typeof openServices>;
  #environmentId: string | undefined;
  #fleetId: string | undefined;
  #mustCheck = false;
  #many = noRows();
  /** The revision of each source that matches the declaration, or will, by name. */
  readonly #revisions: Map<string, RevisionName>;
  /** Revisions whose activation began. */
  readonly activated: (RevisionName & { readonly name: string })[] = [];
  readonly tokens: DeclarationResult['tokens'] = [];

  constructor(options: DeclarationRunOptions) {
    const { tx, environmentId, fleetId, revisions } = options;
    this.#options = options;
    this.#store = new JoinedStore(tx);
    this.#environmentId = environmentId;
    this.#fleetId = fleetId;
    this.#revisions = new Map(revisions);
    this.#services = openServices(this.#store, options, async () => {
      this.#mustCheck = true;
    });
  }

  get audit(): JoinedStore['audit'] {
    return this.#store.audit;
  }

  /** Writes and checks what remains after the steps. @throws ApiProblem `definition_invalid` */
  async finish(): Promise<void> {
    const { siteCheck, siteId, tx } = this.#options;
    await this.writeMany();
    if (this.#mustCheck) await siteCheck(tx, siteId);
  }

  async createEnvironment(name: string): Promise<void> {
    const { view } = await this.#services.environments.create(this.#operation, name);
    this.#environmentId = view.environment_id;
  }

  async createFleet(name: string): Promise<void> {
    const { view } = await this.#services.fleets.create(
      this.#operation,
      requireRow(this.#environmentId),
      name,
    );
    this.#fleetId = view.fleet_id;
  }

  createSite(site: SiteDeclaration['site']) {
    const named = { ...site, display_name: site.display_name ?? site.site_id };
    return this.#services.sites.create(this.#operation, requireRow(this.#fleetId), named);
  }

  changeSite(version: number, change: SiteChange) {
    return this.#services.sites.change(this.#operation, this.#siteId, version, change);
  }

  putBroker(issuer: string, trustDomain: string, version: number | undefined, body: BrokerReplacement) {
    const name = { siteId: this.#siteId, issuer, trustDomain };
    return this.#services.brokers.put(this.#operation, name, version, body);
  }

  putOAuthIssuer(issuer: string, version: number | undefined, definition: OAuthIssuerDefinition) {
    const name = { siteId: this.#siteId, issuer };
    return this.#services.oauthIssuers.put(this.#operation, name, version, definition);
  }

  async createClient(client: NewClient): Promise<void> {
    this.#many.created.clients.push(client);
  }

  async changeClient(change: ClientReplacement): Promise<void> {
    this.#many.changed.clients.push(change);
  }

  async removeClient(row: RowOf<'client'>): Promise<void> {
    this.#many.removed.clients.push(row);
  }

  async createGrant(clientId: string, resource: string, access: Access): Promise<void> {
    this.#many.created.grants.push({ clientId, resource, access });
  }

  async changeGrant(row: RowOf<'clientGrant'>, access: Access): Promise<void> {
    this.#many.changed.grants.push({ row, access });
  }

  async removeGrant(row: RowOf<'clientGrant'>): Promise<void> {
    this.#many.removed.grants.push(row);
  }

  async createRoute(routeId: string, definition: RouteDefinition): Promise<void> {
    this.#many.created.routes.push({ route_id: routeId, definition });
  }

  async replaceRoute(route: RouteReplacement): Promise<void> {
    this.#many.changed.routes.push(route);
  }

  async removeRoute(row: RowOf<'route'>): Promise<void> {
    this.#many.removed.routes.push(row);
  }

  async createRouteSources(routeId: string, sources: AllowedSources): Promise<void> {
    this.#many.created.routeSources.push({ routeId, sources });
  }

  async changeRouteSources(change: SourcesReplacement): Promise<void> {
    this.#many.changed.routeSources.push(change);
  }

  /** Writes members together of which there may be thousands, because one by one they take milliseconds each. */
  async writeMany(): Promise<void> {
    const { removed, changed, created } = this.#many;
    this.#many = noRows();
    const [operation, siteId, services] = [this.#operation, this.#siteId, this.#services];
    const { clients, grants, routes, routeSources } = services;
    await routes.removeAll(operation, siteId, removed.routes);
    await grants.removeAll(operation, siteId, removed.grants);
    await clients.removeAll(operation, siteId, removed.clients);
    await clients.changeAll(operation, siteId, changed.clients);
    await grants.changeAll(operation, siteId, changed.grants);
    await routes.replaceAll(operation, siteId, changed.routes);
    await routeSources.changeAll(operation, siteId, changed.routeSources);
    await clients.createAll(operation, siteId, created.clients);
    await grants.createAll(operation, siteId, created.grants);
    await routes.createAll(operation, siteId, created.routes);
    await routeSources.createAll(operation, siteId, created.routeSources);
  }

  async createSource(source: DeclaredSource): Promise<void> {
    const { name, kind = 'oidc_jwks', expected_scope: _, ...members } = source;
    const creation = { kind, display_name: name, ...members };
    const { view } = await this.#services.drafts.create(this.#siteId, creation, this.#operation);
    this.#revisions.set(name, { sourceId: view.source_id, revision: 1 });
  }

  /** Coordinates of a draft are edited; those of a live revision make another draft beside it. */
  async changeSource(
    { row, compared }: CurrentSource,
    {
      settings,
      coordinates,
    }: {
      readonly settings: SourceChange | undefined;
      readonly coordinates: SourceRevisionChange | undefined;
    },
  ): Promise<void> {
    const { drafts } = this.#services;
    if (settings !== undefined) await drafts.change(row.id, settings, row.version, this.#operation);
    if (coordinates === undefined) return;
    if (isDraft(compared.state)) {
      await drafts.editRevision(compared, coordinates, compared.version, this.#operation);
      return;
    }
    const { view } = await drafts.addRevision(row.id, coordinates, this.#operation);
    this.#revisions.set(row.displayName, { sourceId: row.id, revision: view.revision });
  }

  async activateSource(name: string, expectedScope: string): Promise<void> {
    const { sourceId, revision } = requireRow(this.#revisions.get(name));
    await this.#services.lifecycle.declare({ sourceId, revision }, expectedScope, this.#operation);
    this.activated.push({ sourceId, revision, name });
  }

  async createPolicy({ name, source, client, ...members }: DeclaredPolicy, verifiedIssuer: string) {
    const { sourceId, revision } = requireRow(this.#revisions.get(source));
    const creation = {
      ...members,
      display_name: name,
      client_id: client,
      source_id: sourceId,
      source_revision: revision,
      verified_issuer: verifiedIssuer,
    };
    return this.#services.policies.create(this.#siteId, creation, this.#operation, true);
  }

  changePolicy(row: RowOf<'enrollmentPolicy'>, source: string, members: EnrollmentPolicyChange) {
    const { revision } = requireRow(this.#revisions.get(source));
    const change = { ...members, source_revision: revision };
    return this.#services.policies.change(row.id, change, row.version, this.#operation, true);
  }

  async createTarget(name: string): Promise<void> {
    const { view, shownOnce } = await this.#services.targets.create(this.#operation, this.#siteId, name);
    this.tokens.push({ target_id: view.target_id, name, token: requireRow(shownOnce?.token) });
  }

  removePolicy({ id, version }: RowOf<'enrollmentPolicy'>) {
    return this.#services.policies.delete(id, version, this.#operation);
  }

  removeBroker(row: RowOf<'broker'>) {
    return this.#services.brokers.remove(this.#operation, row, row.version);
  }

  removeOAuthIssuer(row: RowOf<'oauthIssuer'>) {
    return this.#services.oauthIssuers.remove(this.#operation, row, row.version);
  }

  removeSource({ row, revisions }: CurrentSource): Promise<unknown> {
    const { drafts, lifecycle } = this.#services;
    return revisions.every(({ state }) => isDraft(state))
      ? drafts.deleteSource(row.id, row.version, this.#operation)
      : lifecycle.retireSource(row.id, this.#operation);
  }

  get #siteId(): string {
    return this.#options.siteId;
  }

  get #operation(): Operation {
    return this.#options.operation;
  }
}

function noRows() {
  return {
    removed: {
      routes: [] as RowOf<'route'>[],
      grants: [] as RowOf<'clientGrant'>[],
      clients: [] as RowOf<'client'>[],
    },
    changed: {
      clients: [] as ClientReplacement[],
      grants: [] as GrantReplacement[],
      routes: [] as RouteReplacement[],
      routeSources: [] as SourcesReplacement[],
    },
    created: {
      clients: [] as NewClient[],
      grants: [] as { clientId: string; resource: string; access: Access }[],
      routes: [] as NewRoute[],
      routeSources: [] as SourcesOfRoute[],
    },
  };
}

function openServices(
  store: JoinedStore,
  { nowMs, createSiteKeys }: DeclarationRunOptions,
  siteCheck: SiteCheck,
) {
  const deps = { store, nowMs: () => nowMs, siteCheck, createSiteKeys };
  return {
    environments: new Environments(deps),
    fleets: new Fleets(deps),
    sites: new Sites(deps),
    brokers: new Brokers(deps),
    oauthIssuers: new OAuthIssuers(deps),
    clients: new Clients(deps),
    grants: new Grants(deps),
    routes: new Routes(deps),
    routeSources: new RouteSources(deps),
    drafts: new SourceDrafts(deps),
    lifecycle: new SourceLifecycle({ ...deps, validate: rejectNetwork, report: () => {} }),
    policies: new EnrollmentPolicies(deps),
    targets: new Targets(deps),
  };
}

/** Fetches nothing inside a transaction; the check runs after it. */
async function rejectNetwork(): Promise<never> {
  throw new Error('a transaction fetches nothing');
}
