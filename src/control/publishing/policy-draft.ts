/**
 * The content of a site's next whole bundle without derived keys. Clients and routes are read on a snapshot, before the
 * site's lock is taken: reading 100,000 clients would hold it, and SQLite's only writer, for a second. Under the lock only
 * what changed since is read again.
 */
import type { ClientContent } from '../../bundle/format/schema.ts';
import { inParts, type RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { referencesOf } from './delta-publication.ts';
import {
  type RoutesContent,
  readClientsOf,
  readEachClient,
  readRoutes,
  readSitePolicy,
  type SitePolicy,
} from './stored-site-content.ts';

export class PolicyDraft {
  readonly #site: RowOf<'site'>;
  readonly #clients: Map<string, ClientContent>;
  #routes: RoutesContent;
  /** The newest unpublished change that the draft contains. */
  #seq: number;

  private constructor(
    site: RowOf<'site'>,
    seq: number,
    clients: Map<string, ClientContent>,
    routes: RoutesContent,
  ) {
    this.#site = site;
    this.#seq = seq;
    this.#clients = clients;
    this.#routes = routes;
  }

  static async read(tx: Transaction, site: RowOf<'site'>): Promise<PolicyDraft> {
    const seq = await tx.changes.newestSeq(site.id);
    const clients = new Map<string, ClientContent>();
    for await (const client of readEachClient(tx, site)) clients.set(client.client_id, client);
    return new PolicyDraft(site, seq, clients, await readRoutes(tx, site.id));
  }

  /** Whether the draft belongs to this site and not to an earlier one with the same identifier. */
  isOf({ id, uid }: RowOf<'site'>): boolean {
    return id === this.#site.id && uid === this.#site.uid;
  }

  /**
   * Reads changes since the draft was read. @param published clients whose changes deltas have published meanwhile
   * @returns the number of clients that it read, and whether it read the routes
   */
  async update(
    tx: Transaction,
    published: Iterable<string>,
  ): Promise<{ readonly clients: number; readonly routes: boolean }> {
    const changes = await tx.changes.contentAfter(this.#site.id, this.#seq);
    const clientIds = [...new Set([...published, ...referencesOf(changes, 'client')])];
    for (const part of inParts(clientIds)) await this.#readClients(tx, part);
    const routes = changes.some(({ kind }) => kind === 'policy');
    if (routes) this.#routes = await readRoutes(tx, this.#site.id);
    this.#seq = changes.at(-1)?.seq ?? this.#seq;
    return { clients: clientIds.length, routes };
  }

  async #readClients(tx: Transaction, clientIds: readonly string[]): Promise<void> {
    const found = await readClientsOf(tx, this.#site, clientIds);
    const byName = new Map(found.map((client) => [client.client_id, client]));
    for (const clientId of clientIds) {
      const client = byName.get(clientId);
      if (client === undefined) this.#clients.delete(clientId);
      else this.#clients.set(clientId, client);
    }
  }

  /** The draft's content together with the site's other current content. */
  policy(tx: Transaction, site: RowOf<'site'>): Promise<SitePolicy> {
    const names = [...this.#clients.keys()].sort();
    const clients = names.flatMap((name) => this.#clients.get(name) ?? []);
    return readSitePolicy(tx, site, { clients, ...this.#routes });
  }
}
