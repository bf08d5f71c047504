/** Fleets of an environment. */
import type { FleetView } from '../api/contract/hierarchy.ts';
import { newId } from '../domain/identifiers.ts';
import { Refusal } from '../domain/refusal.ts';
import { type Created, createOnce, type Operation } from '../operation.ts';
import type { ControlStore } from '../store/port.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import {
  audited,
  found,
  INSTALLATION_LOCK,
  newVersion,
  nextVersion,
  requireVersion,
  versionOf,
} from './change.ts';
import { refuseHeldScope } from './environments.ts';

export class Fleets {
  readonly #store: ControlStore;
  readonly #nowMs: () => number;

  constructor({ store, nowMs }: { readonly store: ControlStore; readonly nowMs: () => number }) {
    this.#store = store;
    this.#nowMs = nowMs;
  }

  list(environmentId: string, page: Page): Promise<readonly RowOf<'fleet'>[]> {
    return this.#store.read((tx) => tx.fleets.list({ environmentId }, page));
  }

  async get(id: string): Promise<FleetView> {
    return fleetView(found(await this.#store.read((tx) => tx.fleets.find(id))));
  }

  /** @throws Refusal `not_found` without the environment, `already_exists` */
  create(operation: Operation, environmentId: string, name: string): Promise<Created<FleetView, never>> {
    const nowMs = this.#nowMs();
    return createOnce(this.#store, INSTALLATION_LOCK, operation, nowMs, async (tx) => {
      found(await tx.environments.find(environmentId));
      await refuseTakenName(tx, environmentId, name);
      const row = { id: newId('fleet', nowMs), environmentId, name, ...newVersion(nowMs) };
      await tx.fleets.add(row);
      const after = fleetView(row);
      const entry = audited(operation, { what: 'fleet.create', id: row.id, place: placeOf(row), after });
      return { result: after, audit: [entry] };
    });
  }

  /** @throws Refusal `not_found`, `precondition_failed`, `already_exists` */
  rename(operation: Operation, id: string, version: number, name: string): Promise<FleetView> {
    const nowMs = this.#nowMs();
    return this.#store.mutate(INSTALLATION_LOCK, async (tx) => {
      const row = found(await tx.fleets.find(id));
      requireVersion(row, version);
      if (name !== row.name) await refuseTakenName(tx, row.environmentId, name);
      await tx.fleets.change(row, { name }, nowMs);
      const before = fleetView(row);
      const after = fleetView({ ...row, name, ...nextVersion(row, nowMs) });
      const entry = audited(operation, { what: 'fleet.change', id, place: placeOf(row), before, after });
      return { result: after, audit: [entry] };
    });
  }

  /** @throws Refusal `not_found`, `precondition_failed`, `still_in_use` while it has sites, role grants or tokens */
  remove(operation: Operation, id: string, version: number): Promise<void> {
    return this.#store.mutate(INSTALLATION_LOCK, async (tx) => {
      const row = found(await tx.fleets.find(id));
      requireVersion(row, version);
      const [site] = await tx.sites.list({ fleetId: id }, { after: undefined, limit: 1 });
      if (site !== undefined) throw new Refusal('still_in_use', 'the fleet has sites; delete them first');
      await refuseHeldScope(tx, 'fleet', id);
      await tx.fleets.remove(id);
      const before = fleetView(row);
      const entry = audited(operation, { what: 'fleet.delete', id, place: placeOf(row), before });
      return { result: undefined, audit: [entry] };
    });
  }
}

async function refuseTakenName(tx: Transaction, environmentId: string, name: string): Promise<void> {
  if ((await tx.hierarchy.fleetByName(environmentId, name)) !== undefined)
    throw new Refusal('already_exists');
}

function placeOf({ id, environmentId }: RowOf<'fleet'>) {
  return { environmentId, fleetId: id };
}

export function fleetView(row: RowOf<'fleet'>): FleetView {
  return { fleet_id: row.id, environment_id: row.environmentId, name: row.name, ...versionOf(row) };
}
