/** Grants of a client, and so of each of its derived keys: read or write access to a resource. */
import type { GrantView } from '../../api-contract/clients-contract.ts';
import type { Access } from '../../protocol/access.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { audited, found, momentOf, publishChange } from '../resource/change.ts';
import type { Operation } from '../resource/operation.ts';
import type { ControlStore } from '../store/port.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';

/** The limit of the bundle's schema. */
const MAX_GRANTS = 10_000;

export interface GrantName {
  readonly siteId: string;
  readonly clientId: string;
  readonly resource: string;
}

export class Grants {
  readonly #store: ControlStore;
  readonly #nowMs: () => number;

  constructor({ store, nowMs }: { readonly store: ControlStore; readonly nowMs: () => number }) {
    this.#store = store;
    this.#nowMs = nowMs;
  }

  /** @throws ApiProblem `not_found` without the client */
  list(siteId: string, clientId: string, page: Page): Promise<readonly GrantView[]> {
    return this.#store.read(async (tx) => {
      found(await tx.clients.find(siteId, clientId));
      return (await tx.clients.grantsPage(siteId, clientId, page)).map(grantView);
    });
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
      found(await tx.clients.find(siteId, clientId));
      const known = await tx.clients.grant(siteId, clientId, resource);
      if (known === undefined && (await tx.clients.countGrants(siteId, clientId)) >= MAX_GRANTS) {
        throw new ApiProblem('definition_invalid', `a client has at most ${MAX_GRANTS} grants`);
      }
      const row = { siteId, clientId, resource, access, createdAtMs: nowMs };
      await tx.clients.putGrant(row);
      await publishChange(tx, siteId, { kind: 'client', clientId }, nowMs);
      const after = grantView(row);
      const place = found(await tx.hierarchy.placeOfSite(siteId));
      const before = known && grantView(known);
      const what = known === undefined ? 'grant.create' : 'grant.change';
      const entry = audited(operation, { what, id: grantId(name), place, ...(before && { before }), after });
      return { result: { view: after, created: known === undefined }, audit: [entry] };
    });
  }

  /** @throws ApiProblem `not_found` */
  remove(operation: Operation, name: GrantName): Promise<void> {
    const { siteId, clientId, resource } = name;
    const nowMs = this.#nowMs();
    return this.#store.mutate({ kind: 'site', siteId }, async (tx) => {
      const row = found(await tx.clients.grant(siteId, clientId, resource));
      await tx.clients.removeGrant(siteId, clientId, resource);
      await publishChange(tx, siteId, { kind: 'client', clientId }, nowMs);
      const place = found(await tx.hierarchy.placeOfSite(siteId));
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
function grantId({ clientId, resource }: GrantName): string {
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
