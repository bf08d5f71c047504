/** Fixture with a real store that contains one site, and methods that change it as the services do. */

import { cpSync } from 'node:fs';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RouteContent } from '../../../src/bundle/format/schema.ts';
import type { SourceState } from '../../../src/control/contract/vocabulary.ts';
import { newId } from '../../../src/control/domain/resource-identifiers.ts';
import { SiteSigningKeys } from '../../../src/control/publishing/bundle-signing-keys.ts';
import { MasterKeys } from '../../../src/control/secrets/master-keys.ts';
import type { ControlStore } from '../../../src/control/store/port.ts';
import type { RowOf } from '../../../src/control/store/repositories/records.ts';
import type { Transaction } from '../../../src/control/store/transaction.ts';
import { generateSigningKey } from '../../../src/protocol/signing.ts';
import { openMigratedStore } from '../../support/control/migrated-store.ts';
import { clientRow, keyRow, revisionRow, siteRow, sourceRow } from '../../support/control/store-rows.ts';

export const SITE = 'shop-eu-1';
export const ISSUER_URL = 'https://control.shop.example/sites/shop-eu-1';
export const TRUST_DOMAIN = 'shop.example';
export const ORIGIN = 'https://api.shop.example';
/** 2026-11-21T04:00:00Z */
const START_MS = 1_795_233_600_000;

export const ORDERS_READ: RouteContent = {
  route_id: 'orders-read',
  method: 'GET',
  path_template: '/v1/orders/{order_id}',
  audience: ORIGIN,
  freshness_class: 'bounded',
  max_staleness_seconds: 300,
  resource: 'orders',
};

/** A clock that tests advance. */
export class TestClock {
  ms = START_MS;
  readonly nowMs = (): number => this.ms;
  get seconds(): number {
    return Math.floor(this.ms / 1000);
  }
}

export class ControlWorld {
  store: ControlStore;
  readonly clock: TestClock;
  readonly signingKeys: SiteSigningKeys;
  readonly directory: string;

  private constructor(
    store: ControlStore,
    clock: TestClock,
    directory: string,
    masterKeys = MasterKeys.random(),
  ) {
    this.store = store;
    this.clock = clock;
    this.directory = directory;
    this.signingKeys = new SiteSigningKeys(masterKeys);
  }

  /** Opens SQLite with a site that has signing keys and nothing else. */
  static async open(clock = new TestClock()): Promise<ControlWorld> {
    const directory = await mkdtemp(join(tmpdir(), 'proofgate-publishing-'));
    const store = await openMigratedStore({ dataDirectory: directory, nowMs: clock.nowMs });
    const world = new ControlWorld(store, clock, directory);
    await world.addSite(SITE);
    return world;
  }

  /** Opens instances of Control that share a database, a master key and the site. */
  static async instances(stores: readonly ControlStore[], clock: TestClock): Promise<ControlWorld[]> {
    const masterKeys = MasterKeys.random();
    const worlds = stores.map((store) => new ControlWorld(store, clock, '', masterKeys));
    await worlds[0]?.addSite(SITE);
    return worlds;
  }

  async close(): Promise<void> {
    await this.store.close();
    if (this.directory !== '') await rm(this.directory, { recursive: true });
  }

  /**
   * Backs up the directory, as an operator does while Control is stopped. Here the process goes on: libsql closes the file when
   * the last statement is collected, which must not happen in the middle of the copy.
   */
  async backUp(): Promise<string> {
    await this.store.close();
    const directory = await mkdtemp(join(tmpdir(), 'proofgate-backup-'));
    cpSync(this.directory, directory, { recursive: true });
    await this.#reopen();
    return directory;
  }

  async restore(backup: string): Promise<void> {
    await this.store.close();
    await rm(this.directory, { recursive: true });
    await cp(backup, this.directory, { recursive: true });
    await rm(backup, { recursive: true });
    await this.#reopen();
  }

  async #reopen(): Promise<void> {
    this.store = await openMigratedStore({ dataDirectory: this.directory, nowMs: this.clock.nowMs });
  }

  async addSite(id: string, issuerUrl = ISSUER_URL): Promise<void> {
    const { ms } = this.clock;
    const versioned = { version: 1, createdAtMs: ms, updatedAtMs: ms };
    await this.store.writeUnaudited(undefined, async (tx) => {
      const environmentId = newId('environment', ms);
      const fleetId = newId('fleet', ms);
      await tx.environments.add({ id: environmentId, name: environmentId, ...versioned });
      await tx.fleets.add({ id: fleetId, environmentId, name: 'fleet', ...versioned });
      await tx.sites.add({
        ...siteRow(fleetId, id),
        ...versioned,
        issuerUrl,
        singleVerifier: 1,
        bundleLifetimeSeconds: 30 * 86_400,
      });
      await this.signingKeys.create(tx, id, ms);
    });
  }

  /** Changes the site as services do: in its lock, with the change recorded and notified. */
  async change<T>(work: (tx: Transaction) => Promise<T>, siteId = SITE): Promise<T> {
    return this.store.writeUnaudited({ kind: 'site', siteId }, async (tx) => {
      const result = await work(tx);
      tx.notify({ topic: 'site_changed', reference: siteId });
      return result;
    });
  }

  read<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.store.read(work);
  }

  async site(siteId = SITE): Promise<RowOf<'site'>> {
    const site = await this.read((tx) => tx.sites.find(siteId));
    if (site === undefined) throw new Error('no site');
    return site;
  }

  putClient(clientId: string, grants: Readonly<Record<string, 'read' | 'write'>> = {}): Promise<void> {
    const { ms } = this.clock;
    return this.change(async (tx) => {
      if ((await tx.clients.find(SITE, clientId)) === undefined) {
        const context = '{"environment":"production"}';
        await tx.clients.add({ ...clientRow(SITE, clientId), context, createdAtMs: ms, updatedAtMs: ms });
      }
      for (const old of await tx.clients.grants(SITE, clientId)) {
        await tx.clients.removeGrant(SITE, clientId, old.resource);
      }
      for (const [resource, access] of Object.entries(grants)) {
        await tx.clients.putGrants([{ siteId: SITE, clientId, resource, access, createdAtMs: ms }]);
      }
      await tx.changes.record(SITE, { kind: 'client', clientId }, ms);
    });
  }

  /** Stores a route that the site's clients with this subject may call. */
  putRoute({ route_id: routeId, ...definition }: RouteContent, subject = 'client:billing'): Promise<void> {
    const { ms } = this.clock;
    const versioned = { version: 1, createdAtMs: ms, updatedAtMs: ms };
    const allowed = {
      issuer: ISSUER_URL,
      trust_domain: TRUST_DOMAIN,
      subject_exact: subject,
      required_key_binding: 'software',
    };
    return this.change(async (tx) => {
      await tx.routeSources.remove(SITE, routeId);
      await tx.routes.remove(SITE, routeId);
      await tx.routes.add({ siteId: SITE, routeId, definition: JSON.stringify(definition), ...versioned });
      const allowedSources = JSON.stringify([allowed]);
      await tx.routeSources.add({ siteId: SITE, routeId, allowedSources, ...versioned });
      await tx.changes.record(SITE, { kind: 'policy' }, ms);
    });
  }

  /** @returns the key's ID */
  async addKey(clientId: string, lifetimeSeconds = 3600): Promise<string> {
    const { publicKey } = generateSigningKey('Ed25519');
    const row = this.keyRow(clientId, publicKey, lifetimeSeconds);
    await this.change(async (tx) => {
      await tx.keys.add(row);
      await tx.changes.record(SITE, { kind: 'key', keyId: row.keyId }, this.clock.ms);
    });
    return row.keyId;
  }

  keyRow(
    clientId: string,
    { jwk, thumbprint }: { readonly jwk: object; readonly thumbprint: string },
    lifetimeSeconds: number,
  ) {
    const { ms, seconds } = this.clock;
    return keyRow(SITE, {
      keyId: newId('derivedKey', ms),
      clientId,
      enrollmentId: newId('enrollment', ms),
      publicJwk: JSON.stringify(jwk),
      thumbprint,
      expiresAtSeconds: seconds + lifetimeSeconds,
      verifiedIssuer: 'https://oidc.example',
      provenance: '{"kubernetes.namespace":"prod"}',
      createdAtMs: ms,
      updatedAtMs: ms,
    });
  }

  /**
   * Adds many key IDs with one public key, a millisecond apart, without recording a change, as if the first publication had
   * listed them. @returns their IDs, in order
   */
  async addManyKeys(clientId: string, count: number, lifetimeSeconds = 3600): Promise<readonly string[]> {
    const { publicKey } = generateSigningKey('Ed25519');
    const rows = Array.from({ length: count }, () => {
      this.clock.ms += 1;
      return { ...this.keyRow(clientId, publicKey, lifetimeSeconds), listedRevision: 1 };
    });
    await this.store.writeUnaudited(undefined, async (tx) => {
      for (const row of rows) await tx.keys.add(row);
    });
    return rows.map(({ keyId }) => keyId);
  }

  /** Adds a key whose ID sorts next to that of `row`. @returns its ID */
  async addKeyLike(row: RowOf<'derivedKey'>, lifetimeSeconds: number): Promise<string> {
    const keyId = `${row.keyId}x`;
    const { ms, seconds } = this.clock;
    await this.change(async (tx) => {
      await tx.keys.add({
        ...row,
        keyId,
        enrollmentId: newId('enrollment', ms),
        expiresAtSeconds: seconds + lifetimeSeconds,
        listedRevision: null,
      });
      await tx.changes.record(SITE, { kind: 'key', keyId }, ms);
    });
    return keyId;
  }

  revokeKey(keyId: string): Promise<void> {
    const { ms } = this.clock;
    return this.change(async (tx) => {
      const row = await tx.keys.find(keyId);
      if (row === undefined) throw new Error('no such key');
      await tx.keys.change(row, { status: 'revoked', revokedAtMs: ms, revokedBy: 'bootstrap' }, ms);
      await tx.changes.record(SITE, { kind: 'key', keyId }, ms);
    });
  }

  /** @returns the source's ID */
  async addSource(revision: number, state: SourceState, sourceId?: string): Promise<string> {
    const { ms } = this.clock;
    const versioned = { version: 1, createdAtMs: ms, updatedAtMs: ms };
    const id = sourceId ?? newId('source', ms);
    await this.change(async (tx) => {
      if (sourceId === undefined) await tx.sources.add({ ...sourceRow(SITE), ...versioned, id });
      await tx.sourceRevisions.add({
        ...revisionRow({ id, siteId: SITE }, revision, state),
        ...versioned,
        fingerprint: `fingerprint-${revision}`,
        detectedScope: 'oidc.example',
        stateSinceMs: ms,
      });
      await tx.changes.record(SITE, { kind: 'policy' }, ms);
    });
    return id;
  }
}
