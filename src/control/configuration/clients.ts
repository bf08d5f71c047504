/** Clients of a site. Their passports' issuer and trust domain are the site's. */
import { MAX_CLIENTS } from '../../bundle/limits.ts';
import { isCanonicalSubject, SPIFFE_ID_RULE, subjectLiesInTrustDomain } from '../../protocol/spiffe-id.ts';
import { isJsonObject } from '../../protocol/strict-json.ts';
import type { ClientChange, ClientView, NewClient } from '../api/contract/clients.ts';
import { Refusal } from '../domain/refusal.ts';
import { type Created, createOnce, type Operation } from '../operation.ts';
import type { ControlStore } from '../store/port.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import {
  audited,
  found,
  newVersion,
  nextVersion,
  publishChange,
  requireVersion,
  versionOf,
} from './change.ts';

/** What a client has of its site. */
type SiteNames = Pick<RowOf<'site'>, 'id' | 'issuerUrl' | 'trustDomain'>;

export class Clients {
  readonly #store: ControlStore;
  readonly #nowMs: () => number;

  constructor({ store, nowMs }: { readonly store: ControlStore; readonly nowMs: () => number }) {
    this.#store = store;
    this.#nowMs = nowMs;
  }

  list(siteId: string, page: Page): Promise<readonly ClientView[]> {
    return this.#store.read(async (tx) => {
      const site = found(await tx.sites.find(siteId));
      return (await tx.clients.list({ siteId }, page)).map((row) => clientView(site, row));
    });
  }

  get(siteId: string, clientId: string): Promise<ClientView> {
    return this.#store.read(async (tx) => {
      const site = found(await tx.sites.find(siteId));
      return clientView(site, found(await tx.clients.find(siteId, clientId)));
    });
  }

  /** @throws Refusal `already_exists`, `definition_invalid` */
  create(operation: Operation, siteId: string, client: NewClient): Promise<Created<ClientView, never>> {
    const nowMs = this.#nowMs();
    return createOnce(this.#store, { kind: 'site', siteId }, operation, nowMs, async (tx) => {
      const { client_id: clientId, subject, context = {} } = client;
      const site = found(await tx.sites.find(siteId));
      if ((await tx.clients.find(siteId, clientId)) !== undefined) throw new Refusal('already_exists');
      if ((await tx.clients.count(siteId)) >= MAX_CLIENTS) {
        throw new Refusal('definition_invalid', `a site has at most ${MAX_CLIENTS} clients`);
      }
      refuseFaultySubject(subject, site);
      const row = { siteId, clientId, subject, context: JSON.stringify(context), ...newVersion(nowMs) };
      await tx.clients.add(row);
      await publishChange(tx, siteId, { kind: 'client', clientId }, nowMs);
      const after = clientView(site, row);
      const place = found(await tx.hierarchy.placeOfSite(siteId));
      return {
        result: after,
        audit: [audited(operation, { what: 'client.create', id: clientId, place, after })],
      };
    });
  }

  /**
   * @throws Refusal `not_found`, `precondition_failed`, `definition_invalid`, `still_in_use` for another subject while
   *   keys are alive: their passports name the old one
   */
  change(
    operation: Operation,
    name: { readonly siteId: string; readonly clientId: string },
    version: number,
    change: ClientChange,
  ): Promise<ClientView> {
    const { siteId, clientId } = name;
    const nowMs = this.#nowMs();
    return this.#store.mutate({ kind: 'site', siteId }, async (tx) => {
      const site = found(await tx.sites.find(siteId));
      const row = found(await tx.clients.find(siteId, clientId));
      requireVersion(row, version);
      const subject = change.subject ?? row.subject;
      if (subject !== row.subject) {
        await refuseLivingKeys(tx, row, nowMs);
        refuseFaultySubject(subject, site);
      }
      const context = change.context === undefined ? row.context : JSON.stringify(change.context);
      await tx.clients.change(row, { subject, context }, nowMs);
      await publishChange(tx, siteId, { kind: 'client', clientId }, nowMs);
      const before = clientView(site, row);
      const after = clientView(site, { ...row, subject, context, ...nextVersion(row, nowMs) });
      const place = found(await tx.hierarchy.placeOfSite(siteId));
      const entry = audited(operation, { what: 'client.change', id: clientId, place, before, after });
      return { result: after, audit: [entry] };
    });
  }

  /** @throws Refusal `not_found`, `precondition_failed`, `still_in_use` while policies name it or its keys are alive */
  remove(
    operation: Operation,
    name: { readonly siteId: string; readonly clientId: string },
    version: number,
  ): Promise<void> {
    const { siteId, clientId } = name;
    const nowMs = this.#nowMs();
    return this.#store.mutate({ kind: 'site', siteId }, async (tx) => {
      const site = found(await tx.sites.find(siteId));
      const row = found(await tx.clients.find(siteId, clientId));
      requireVersion(row, version);
      if (await tx.policies.hasOfClient(siteId, clientId)) {
        throw new Refusal('still_in_use', 'enrollment policies name the client; delete them first');
      }
      await refuseLivingKeys(tx, row, nowMs);
      await tx.clients.removeGrants(siteId, clientId);
      await tx.clients.remove(siteId, clientId);
      await publishChange(tx, siteId, { kind: 'client', clientId }, nowMs);
      const before = clientView(site, row);
      const place = found(await tx.hierarchy.placeOfSite(siteId));
      const entry = audited(operation, { what: 'client.delete', id: clientId, place, before });
      return { result: undefined, audit: [entry] };
    });
  }
}

/** SPIFFE-ID specification section 2. @throws Refusal `definition_invalid` */
function refuseFaultySubject(subject: string, { trustDomain }: SiteNames): void {
  const isInside = subjectLiesInTrustDomain(subject, trustDomain);
  if (isInside && isCanonicalSubject(subject)) return;
  const reason = isInside
    ? `not ${SPIFFE_ID_RULE}`
    : `a SPIFFE ID outside the site's trust domain, ${trustDomain}`;
  throw new Refusal('definition_invalid', undefined, { faults: [{ pointer: '/body/subject', reason }] });
}

async function refuseLivingKeys(
  tx: Transaction,
  { siteId, clientId }: Pick<RowOf<'client'>, 'siteId' | 'clientId'>,
  nowMs: number,
): Promise<void> {
  if (!(await tx.keys.hasLivingOfClient(siteId, clientId, Math.floor(nowMs / 1000)))) return;
  throw new Refusal('still_in_use', 'derived keys of the client are alive; revoke them first');
}

function clientView(site: SiteNames, row: RowOf<'client'>): ClientView {
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
