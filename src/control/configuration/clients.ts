/** Clients of a site. Their passports carry the site's issuer and trust domain. */

import { MAX_CLIENTS, MAX_GRANTS } from '../../bundle/format/bundle-limits.ts';
import type { Access } from '../../protocol/access.ts';
import { isCanonicalSubject, SPIFFE_ID_RULE, subjectLiesInTrustDomain } from '../../protocol/spiffe-id.ts';
import { isJsonObject } from '../../protocol/strict-json.ts';
import type { ClientChange, ClientView, GrantView, NewClient } from '../contract/routes-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import {
  audited,
  type CheckOne,
  checkNamed,
  checkUnnamed,
  momentOf,
  mutateEach,
  newVersion,
  placeInSite,
  publishChange,
  requireRow,
  versionOf,
} from '../resource/change.ts';
import type { Created, Operation } from '../resource/operation.ts';
import {
  type Consequences,
  type ResourceDeps,
  siteLock,
  VersionedResource,
} from '../resource/versioned-resource.ts';
import type { AuditEntry, Mutated, Transactions } from '../store/port.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

interface ClientName {
  readonly siteId: string;
  readonly clientId: string;
}

/** A client as read, and its replacement. */
export interface ClientReplacement {
  readonly row: RowOf<'client'>;
  readonly subject: string;
  readonly context: { readonly [name: string]: string };
}

export class Clients extends VersionedResource<'client', 'client', ClientView> {
  constructor(deps: ResourceDeps) {
    super(deps, {
      audited: 'client',
      table: (tx) => tx.clients,
      lock: siteLock,
      place: (tx, { siteId }) => placeInSite(tx, siteId),
      id: ({ clientId }) => clientId,
      views: clientViews,
      publishes: ({ clientId }) => ({ kind: 'client', clientId }),
    });
  }

  list(siteId: string, page: Page): Promise<readonly ClientView[]> {
    return this.listRows((tx) => tx.clients.list({ siteId }, page));
  }

  /** @throws ApiProblem `already_exists`, `definition_invalid` */
  create(operation: Operation, siteId: string, client: NewClient): Promise<Created<ClientView, never>> {
    const { client_id: clientId } = client;
    return this.createRow(operation, siteLock([siteId]), async (tx, nowMs) => {
      if ((await tx.clients.find(siteId, clientId)) !== undefined) throw new ApiProblem('already_exists');
      await tx.clients.addAll(await newClients(tx, siteId, [client], nowMs, checkUnnamed));
      return { name: [siteId, clientId] };
    });
  }

  /** Creates many clients that do not exist. @throws ApiProblem `definition_invalid`, naming the client */
  createAll(operation: Operation, siteId: string, clients: readonly NewClient[]): Promise<void> {
    return this.createRows(operation, siteId, clients, async (tx, nowMs) => ({
      rows: await newClients(tx, siteId, clients, nowMs, checkNamed),
    }));
  }

  /**
   * @throws ApiProblem `not_found`, `precondition_failed`, `definition_invalid`; `still_in_use` when the subject changes while
   *   keys are alive, because their passports name the old one
   */
  change(
    operation: Operation,
    { siteId, clientId }: ClientName,
    version: number,
    change: ClientChange,
  ): Promise<ClientView> {
    return this.changeRow(operation, [siteId, clientId], version, async (tx, row, nowMs) => {
      const subject = change.subject ?? row.subject;
      await rejectMoves(tx, siteId, [{ row, subject }], nowMs, checkUnnamed);
      const context = change.context === undefined ? row.context : JSON.stringify(change.context);
      return { set: { subject, context } };
    });
  }

  /**
   * Changes many clients that are unchanged since they were read.
   * @throws ApiProblem as {@link Clients.change}, naming the client
   */
  changeAll(operation: Operation, siteId: string, changes: readonly ClientReplacement[]): Promise<void> {
    const rows = changes.map(({ row }) => row);
    return this.changeRows(operation, siteId, rows, async (tx, nowMs) => {
      await rejectMoves(tx, siteId, changes, nowMs, checkNamed);
      return {
        rows: changes.map(({ row, subject, context }) => ({
          ...row,
          subject,
          context: JSON.stringify(context),
        })),
      };
    });
  }

  /** @throws ApiProblem `not_found`, `precondition_failed`, `still_in_use` while policies name it or its keys are alive */
  remove(operation: Operation, { siteId, clientId }: ClientName, version: number): Promise<void> {
    return this.removeRow(operation, [siteId, clientId], version, (tx, _row, nowMs) =>
      prepareRemoval(tx, siteId, [clientId], nowMs, checkUnnamed),
    );
  }

  /**
   * Removes many clients that are unchanged since they were read.
   * @throws ApiProblem as {@link Clients.remove}, naming the client
   */
  removeAll(operation: Operation, siteId: string, rows: readonly RowOf<'client'>[]): Promise<void> {
    const clientIds = rows.map(({ clientId }) => clientId);
    return this.removeRows(operation, siteId, rows, (tx, nowMs) =>
      prepareRemoval(tx, siteId, clientIds, nowMs, checkNamed),
    );
  }
}

/** @throws ApiProblem `definition_invalid` */
async function newClients(
  tx: Transaction,
  siteId: string,
  clients: readonly NewClient[],
  nowMs: number,
  check: CheckOne,
): Promise<readonly RowOf<'client'>[]> {
  const site = requireRow(await tx.sites.find(siteId));
  if ((await tx.clients.count(siteId)) + clients.length > MAX_CLIENTS) {
    throw new ApiProblem('definition_invalid', `a site has at most ${MAX_CLIENTS} clients`);
  }
  return clients.map(({ client_id: clientId, subject, context = {} }) => {
    check(`client ${clientId}`, () => rejectFaultySubject(subject, site));
    return { siteId, clientId, subject, context: JSON.stringify(context), ...newVersion(nowMs) };
  });
}

/** @throws ApiProblem `still_in_use`, `definition_invalid` for a client whose subject changes */
async function rejectMoves(
  tx: Transaction,
  siteId: string,
  changes: readonly Omit<ClientReplacement, 'context'>[],
  nowMs: number,
  check: CheckOne,
): Promise<void> {
  const moved = changes.filter(({ row, subject }) => subject !== row.subject);
  if (moved.length === 0) return;
  const clientIds = moved.map(({ row }) => row.clientId);
  await rejectLivingKeys(tx, siteId, clientIds, nowMs, check);
  const site = requireRow(await tx.sites.find(siteId));
  for (const { row, subject } of moved) {
    check(`client ${row.clientId}`, () => rejectFaultySubject(subject, site));
  }
}

/** Removes the clients' grants. @throws ApiProblem `still_in_use` */
async function prepareRemoval(
  tx: Transaction,
  siteId: string,
  clientIds: readonly string[],
  nowMs: number,
  check: CheckOne,
): Promise<Consequences> {
  const named = await tx.policies.namedClients(siteId);
  const used = clientIds.find((clientId) => named.has(clientId));
  rejectOne(used, 'enrollment policies name the client; delete them first', check);
  await rejectLivingKeys(tx, siteId, clientIds, nowMs, check);
  await tx.clients.removeGrantsOf(siteId, clientIds);
  return {};
}

/** SPIFFE-ID specification section 2. @throws ApiProblem `definition_invalid` */
export function rejectFaultySubject(
  subject: string,
  { trustDomain }: Pick<RowOf<'site'>, 'trustDomain'>,
): void {
  const isInside = subjectLiesInTrustDomain(subject, trustDomain);
  if (isInside && isCanonicalSubject(subject)) return;
  const reason = isInside
    ? `not ${SPIFFE_ID_RULE}`
    : `a SPIFFE ID outside the site's trust domain, ${trustDomain}`;
  throw new ApiProblem('definition_invalid', undefined, { faults: [{ pointer: '/body/subject', reason }] });
}

async function rejectLivingKeys(
  tx: Transaction,
  siteId: string,
  clientIds: readonly string[],
  nowMs: number,
  check: CheckOne,
): Promise<void> {
  const living = await tx.keys.findLivingOfClients(siteId, clientIds, Math.floor(nowMs / 1000));
  rejectOne(living, 'derived keys of the client are alive; revoke them first', check);
}

/** @throws ApiProblem `still_in_use` for the client, if there is one */
function rejectOne(clientId: string | undefined, reason: string, check: CheckOne): void {
  if (clientId === undefined) return;
  check(`client ${clientId}`, () => {
    throw new ApiProblem('still_in_use', reason);
  });
}

async function clientViews(
  tx: Transaction,
  rows: readonly RowOf<'client'>[],
): Promise<readonly ClientView[]> {
  const [first] = rows;
  if (first === undefined) return [];
  const site = requireRow(await tx.sites.find(first.siteId));
  return rows.map((row) => clientView(site, row));
}

function clientView(site: RowOf<'site'>, row: RowOf<'client'>): ClientView {
  return {
    site_id: row.siteId,
    client_id: row.clientId,
    issuer: site.issuerUrl,
    trust_domain: site.trustDomain,
    subject: row.subject,
    context: contextOf(row),
    ...versionOf(row),
  };
}

function contextOf({ context }: RowOf<'client'>): { [name: string]: string } {
  const stored: unknown = JSON.parse(context);
  if (!isJsonObject(stored)) return {};
  return Object.fromEntries(
    Object.entries(stored).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

interface GrantName {
  readonly siteId: string;
  readonly clientId: string;
  readonly resource: string;
}

export interface GrantReplacement {
  readonly row: RowOf<'clientGrant'>;
  readonly access: Access;
}

/** A grant before and after; absent where there is none. */
type GrantChange =
  | { readonly before?: RowOf<'clientGrant'> | undefined; readonly after: RowOf<'clientGrant'> }
  | { readonly before: RowOf<'clientGrant'>; readonly after?: undefined };

export class Grants {
  readonly #store: Transactions;
  readonly #nowMs: () => number;

  constructor({ store, nowMs }: { readonly store: Transactions; readonly nowMs: () => number }) {
    this.#store = store;
    this.#nowMs = nowMs;
  }

  /** @throws ApiProblem `not_found` without the client */
  list(siteId: string, clientId: string, page: Page): Promise<readonly GrantView[]> {
    return this.#store.readAside(async (tx) => {
      requireRow(await tx.clients.find(siteId, clientId));
      return (await tx.clients.grantsPage(siteId, clientId, page)).map(grantView);
    });
  }

  /** Grants of all clients of a site. @param after `<client> <resource>`; neither holds a space */
  listOfSite(siteId: string, { after, limit }: Page): Promise<readonly GrantView[]> {
    const [clientId, resource] = after?.split(' ') ?? [];
    const last = clientId === undefined ? undefined : { clientId, resource: resource ?? '' };
    return this.#store.readAside(async (tx) =>
      (await tx.clients.siteGrantsPage(siteId, last, limit)).map(grantView),
    );
  }

  /** Creates a grant or changes its access. Repeating a call has no effect. @throws ApiProblem `not_found`, `definition_invalid` */
  put(
    operation: Operation,
    name: GrantName,
    access: Access,
  ): Promise<{ readonly view: GrantView; readonly created: boolean }> {
    const { siteId, clientId, resource } = name;
    const nowMs = this.#nowMs();
    return this.#store.mutate({ kind: 'site', siteId }, async (tx) => {
      requireRow(await tx.clients.find(siteId, clientId));
      const known = await tx.clients.grant(siteId, clientId, resource);
      if (known === undefined && (await tx.clients.countGrants(siteId, clientId)) >= MAX_GRANTS) {
        throw new ApiProblem('definition_invalid', `a client has at most ${MAX_GRANTS} grants`);
      }
      const row = { siteId, clientId, resource, access, createdAtMs: nowMs };
      const audit = await writeGrants(tx, operation, siteId, [{ before: known, after: row }], nowMs);
      return { result: { view: grantView(row), created: known === undefined }, audit };
    });
  }

  /** @throws ApiProblem `not_found` */
  remove(operation: Operation, { siteId, clientId, resource }: GrantName): Promise<void> {
    const nowMs = this.#nowMs();
    return this.#store.mutate({ kind: 'site', siteId }, async (tx) => {
      const before = requireRow(await tx.clients.grant(siteId, clientId, resource));
      const audit = await writeGrants(tx, operation, siteId, [{ before }], nowMs);
      return { result: undefined, audit };
    });
  }

  /** Creates many grants that do not exist. The caller respects the limit of grants. */
  createAll(
    operation: Operation,
    siteId: string,
    grants: readonly (Omit<GrantName, 'siteId'> & { readonly access: Access })[],
  ): Promise<void> {
    const createdAtMs = this.#nowMs();
    const changes = grants.map((grant) => ({ after: { siteId, ...grant, createdAtMs } }));
    return this.#writeAll(operation, siteId, changes);
  }

  /** Changes the access of many grants that are unchanged since they were read. */
  changeAll(operation: Operation, siteId: string, grants: readonly GrantReplacement[]): Promise<void> {
    const createdAtMs = this.#nowMs();
    const changes = grants.map(({ row, access }) => ({
      before: row,
      after: { ...row, access, createdAtMs },
    }));
    return this.#writeAll(operation, siteId, changes);
  }

  /** Removes many, unchanged since they were read. */
  removeAll(operation: Operation, siteId: string, rows: readonly RowOf<'clientGrant'>[]): Promise<void> {
    const changes = rows.map((before) => ({ before }));
    return this.#writeAll(operation, siteId, changes);
  }

  #writeAll(operation: Operation, siteId: string, changes: readonly GrantChange[]): Promise<void> {
    return mutateEach(this.#store, siteId, changes, (tx) =>
      writeGrants(tx, operation, siteId, changes, this.#nowMs()),
    );
  }
}

/** Writes grants and records their clients for the publisher. @returns an audit event for each grant */
async function writeGrants(
  tx: Transaction,
  operation: Operation,
  siteId: string,
  changes: readonly GrantChange[],
  nowMs: number,
): Promise<Mutated<void>['audit']> {
  const added = changes.flatMap(({ before, after }) => (before === undefined && after ? [after] : []));
  const changed = changes.flatMap(({ before, after }) => (before && after ? [after] : []));
  const removed = changes.flatMap(({ before, after }) => (after === undefined ? [before] : []));
  await tx.clients.removeEachGrant(siteId, removed);
  await tx.clients.putGrants(changed);
  await tx.clients.addGrants(added);
  const place = await placeInSite(tx, siteId);
  const entries: AuditEntry[] = [];
  for (const { before, after } of changes) {
    const { clientId, resource } = after ?? before;
    await publishChange(tx, siteId, { kind: 'client', clientId }, nowMs);
    const what =
      before === undefined ? 'grant.create' : after === undefined ? 'grant.delete' : 'grant.change';
    const views = { before: before && grantView(before), after: after && grantView(after) };
    entries.push(audited(operation, { what, id: `${clientId} ${resource}`, place, ...views }));
  }
  const [first, ...rest] = entries;
  return [requireRow(first), ...rest];
}

function grantView(row: RowOf<'clientGrant'>): GrantView {
  return {
    site_id: row.siteId,
    client_id: row.clientId,
    resource: row.resource,
    access: row.access,
    granted_at: momentOf(row.createdAtMs),
  };
}
