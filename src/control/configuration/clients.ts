/** Clients of a site. Their passports carry the site's issuer and trust domain. */

import { MAX_CLIENTS, MAX_GRANTS } from '../../bundle/format/bundle-limits.ts';
import type { Access } from '../../protocol/access.ts';
import { isCanonicalSubject, SPIFFE_ID_RULE, subjectLiesInTrustDomain } from '../../protocol/spiffe-id.ts';
import { isJsonObject } from '../../protocol/strict-json.ts';
import type { ClientChange, ClientView, GrantView, NewClient } from '../contract/routes-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import {
  about,
  audited,
  momentOf,
  mutateEach,
  naming,
  newVersion,
  placeInSite,
  publishChange,
  requireRow,
  versionOf,
} from '../resource/change.ts';
import type { Created, Operation } from '../resource/operation.ts';
import { type ResourceDeps, siteLock, VersionedResource } from '../resource/versioned-resource.ts';
import type { AuditEntry, Transactions } from '../store/port.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

interface ClientName {
  readonly siteId: string;
  readonly clientId: string;
}

/** A client as read, and what it becomes. */
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
      view: async (tx, row) => clientView(requireRow(await tx.sites.find(row.siteId)), row),
    });
  }

  list(siteId: string, page: Page): Promise<readonly ClientView[]> {
    return this.store.readAside(async (tx) => {
      const site = requireRow(await tx.sites.find(siteId));
      return (await tx.clients.list({ siteId }, page)).map((row) => clientView(site, row));
    });
  }

  /** @throws ApiProblem `already_exists`, `definition_invalid` */
  create(operation: Operation, siteId: string, client: NewClient): Promise<Created<ClientView, never>> {
    return this.createRow(operation, siteLock([siteId]), async (tx, nowMs) => {
      const { client_id: clientId, subject } = client;
      const site = requireRow(await tx.sites.find(siteId));
      if ((await tx.clients.find(siteId, clientId)) !== undefined) throw new ApiProblem('already_exists');
      if ((await tx.clients.count(siteId)) >= MAX_CLIENTS) {
        throw new ApiProblem('definition_invalid', `a site has at most ${MAX_CLIENTS} clients`);
      }
      rejectFaultySubject(subject, site);
      await tx.clients.add(newClient(siteId, client, nowMs));
      return { name: [siteId, clientId], publish: { kind: 'client', clientId } };
    });
  }

  /** Creates many that do not exist. @throws ApiProblem `definition_invalid`, naming the client */
  createAll(operation: Operation, siteId: string, clients: readonly NewClient[]): Promise<void> {
    const nowMs = this.nowMs();
    return mutateEach(this.store, siteId, clients, async (tx) => {
      const site = requireRow(await tx.sites.find(siteId));
      if ((await tx.clients.count(siteId)) + clients.length > MAX_CLIENTS) {
        throw new ApiProblem('definition_invalid', `a site has at most ${MAX_CLIENTS} clients`);
      }
      const rows = clients.map((client) => newClient(siteId, client, nowMs));
      for (const { clientId, subject } of rows) {
        naming(`client ${clientId}`, () => rejectFaultySubject(subject, site));
        await publishChange(tx, siteId, { kind: 'client', clientId }, nowMs);
      }
      await tx.clients.addAll(rows);
      const place = await placeInSite(tx, siteId);
      return rows.map((row) => {
        const after = clientView(site, row);
        return audited(operation, { what: 'client.create', id: row.clientId, place, after });
      });
    });
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
      if (subject !== row.subject) {
        await rejectLivingKeys(tx, row, nowMs);
        rejectFaultySubject(subject, requireRow(await tx.sites.find(siteId)));
      }
      const context = change.context === undefined ? row.context : JSON.stringify(change.context);
      return { set: { subject, context }, publish: { kind: 'client', clientId } };
    });
  }

  /** Changes many, as read under the site's lock. @throws ApiProblem as {@link Clients.change}, naming the client */
  changeAll(operation: Operation, siteId: string, changes: readonly ClientReplacement[]): Promise<void> {
    const nowMs = this.nowMs();
    return mutateEach(this.store, siteId, changes, async (tx) => {
      const site = requireRow(await tx.sites.find(siteId));
      const moved = changes.filter(({ row, subject }) => subject !== row.subject);
      for (const { row, subject } of moved) {
        naming(`client ${row.clientId}`, () => rejectFaultySubject(subject, site));
      }
      await rejectLivingKeysOf(
        tx,
        siteId,
        moved.map(({ row }) => row.clientId),
        nowMs,
      );
      const rows = changes.map(({ row, subject, context }) => ({
        ...row,
        subject,
        context: JSON.stringify(context),
      }));
      await tx.clients.changeAll(rows, nowMs);
      const place = await placeInSite(tx, siteId);
      const entries: AuditEntry[] = [];
      for (const [index, row] of rows.entries()) {
        const before = clientView(site, requireRow(changes[index]).row);
        const after = clientView(site, { ...row, version: row.version + 1, updatedAtMs: nowMs });
        await publishChange(tx, siteId, { kind: 'client', clientId: row.clientId }, nowMs);
        entries.push(audited(operation, { what: 'client.change', id: row.clientId, place, before, after }));
      }
      return entries;
    });
  }

  /** Removes many, as read under the site's lock. @throws ApiProblem as {@link Clients.remove}, naming the client */
  removeAll(operation: Operation, siteId: string, rows: readonly RowOf<'client'>[]): Promise<void> {
    const nowMs = this.nowMs();
    return mutateEach(this.store, siteId, rows, async (tx) => {
      const site = requireRow(await tx.sites.find(siteId));
      const clientIds = rows.map(({ clientId }) => clientId);
      const named = await tx.policies.namedClients(siteId);
      const used = clientIds.find((clientId) => named.has(clientId));
      if (used !== undefined) throw about(`client ${used}`, namedByPolicies());
      await rejectLivingKeysOf(tx, siteId, clientIds, nowMs);
      await tx.clients.removeGrantsOf(siteId, clientIds);
      await tx.clients.removeAll(siteId, clientIds);
      const place = await placeInSite(tx, siteId);
      const entries: AuditEntry[] = [];
      for (const row of rows) {
        await publishChange(tx, siteId, { kind: 'client', clientId: row.clientId }, nowMs);
        const before = clientView(site, row);
        entries.push(audited(operation, { what: 'client.delete', id: row.clientId, place, before }));
      }
      return entries;
    });
  }

  /** @throws ApiProblem `not_found`, `precondition_failed`, `still_in_use` while policies name it or its keys are alive */
  remove(operation: Operation, { siteId, clientId }: ClientName, version: number): Promise<void> {
    return this.removeRow(operation, [siteId, clientId], version, async (tx, row, nowMs) => {
      if (await tx.policies.hasOfClient(siteId, clientId)) throw namedByPolicies();
      await rejectLivingKeys(tx, row, nowMs);
      await tx.clients.removeGrants(siteId, clientId);
      return { publish: { kind: 'client', clientId } };
    });
  }
}

function newClient(
  siteId: string,
  { client_id: clientId, subject, context = {} }: NewClient,
  nowMs: number,
): RowOf<'client'> {
  return { siteId, clientId, subject, context: JSON.stringify(context), ...newVersion(nowMs) };
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
  { siteId, clientId }: Pick<RowOf<'client'>, 'siteId' | 'clientId'>,
  nowMs: number,
): Promise<void> {
  if (!(await tx.keys.hasLivingOfClient(siteId, clientId, Math.floor(nowMs / 1000)))) return;
  throw keysAlive();
}

/** @throws ApiProblem `still_in_use`, naming the client */
async function rejectLivingKeysOf(
  tx: Transaction,
  siteId: string,
  clientIds: readonly string[],
  nowMs: number,
): Promise<void> {
  const living = await tx.keys.findLivingOfClients(siteId, clientIds, Math.floor(nowMs / 1000));
  if (living !== undefined) throw about(`client ${living}`, keysAlive());
}

function keysAlive(): ApiProblem {
  return new ApiProblem('still_in_use', 'derived keys of the client are alive; revoke them first');
}

function namedByPolicies(): ApiProblem {
  return new ApiProblem('still_in_use', 'enrollment policies name the client; delete them first');
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
      await tx.clients.putGrant(row);
      await publishChange(tx, siteId, { kind: 'client', clientId }, nowMs);
      const after = grantView(row);
      const place = requireRow(await tx.hierarchy.placeOfSite(siteId));
      const before = known && grantView(known);
      const what = known === undefined ? 'grant.create' : 'grant.change';
      const entry = audited(operation, { what, id: grantId(name), place, ...(before && { before }), after });
      return { result: { view: after, created: known === undefined }, audit: [entry] };
    });
  }

  /** Creates many that do not exist. The caller keeps to the limit of grants. */
  createAll(
    operation: Operation,
    siteId: string,
    grants: readonly (Omit<GrantName, 'siteId'> & { readonly access: Access })[],
  ): Promise<void> {
    const nowMs = this.#nowMs();
    return mutateEach(this.#store, siteId, grants, async (tx) => {
      const rows = grants.map((grant) => ({ siteId, ...grant, createdAtMs: nowMs }));
      for (const { clientId } of rows) await publishChange(tx, siteId, { kind: 'client', clientId }, nowMs);
      await tx.clients.addGrants(rows);
      const place = await placeInSite(tx, siteId);
      return rows.map((row) =>
        audited(operation, { what: 'grant.create', id: grantId(row), place, after: grantView(row) }),
      );
    });
  }

  /** Changes the access of many, as read under the site's lock. */
  changeAll(operation: Operation, siteId: string, changes: readonly GrantReplacement[]): Promise<void> {
    const nowMs = this.#nowMs();
    return mutateEach(this.#store, siteId, changes, async (tx) => {
      const rows = changes.map(({ row, access }) => ({ ...row, access, createdAtMs: nowMs }));
      await tx.clients.putGrants(rows);
      const place = await placeInSite(tx, siteId);
      const entries: AuditEntry[] = [];
      for (const [index, row] of rows.entries()) {
        await publishChange(tx, siteId, { kind: 'client', clientId: row.clientId }, nowMs);
        const [before, after] = [grantView(requireRow(changes[index]).row), grantView(row)];
        entries.push(audited(operation, { what: 'grant.change', id: grantId(row), place, before, after }));
      }
      return entries;
    });
  }

  /** Removes many, as read under the site's lock. */
  removeAll(operation: Operation, siteId: string, rows: readonly RowOf<'clientGrant'>[]): Promise<void> {
    const nowMs = this.#nowMs();
    return mutateEach(this.#store, siteId, rows, async (tx) => {
      await tx.clients.removeEachGrant(siteId, rows);
      const place = await placeInSite(tx, siteId);
      const entries: AuditEntry[] = [];
      for (const row of rows) {
        await publishChange(tx, siteId, { kind: 'client', clientId: row.clientId }, nowMs);
        entries.push(
          audited(operation, { what: 'grant.delete', id: grantId(row), place, before: grantView(row) }),
        );
      }
      return entries;
    });
  }

  /** @throws ApiProblem `not_found` */
  remove(operation: Operation, name: GrantName): Promise<void> {
    const { siteId, clientId, resource } = name;
    const nowMs = this.#nowMs();
    return this.#store.mutate({ kind: 'site', siteId }, async (tx) => {
      const row = requireRow(await tx.clients.grant(siteId, clientId, resource));
      await tx.clients.removeGrant(siteId, clientId, resource);
      await publishChange(tx, siteId, { kind: 'client', clientId }, nowMs);
      const place = requireRow(await tx.hierarchy.placeOfSite(siteId));
      const entry = audited(operation, {
        what: 'grant.delete',
        id: grantId(name),
        place,
        before: grantView(row),
      });
      return { result: undefined, audit: [entry] };
    });
  }
}

/** Neither part contains a space. */
function grantId({ clientId, resource }: Omit<GrantName, 'siteId'>): string {
  return `${clientId} ${resource}`;
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
