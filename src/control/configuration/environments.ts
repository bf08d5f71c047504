/** Environments. */
import type { EnvironmentView } from '../api/contract/hierarchy.ts';
import { newId } from '../domain/identifiers.ts';
import { Refusal } from '../domain/refusal.ts';
import type { Reach } from '../domain/roles.ts';
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

export class Environments {
  readonly #store: ControlStore;
  readonly #nowMs: () => number;

  constructor({ store, nowMs }: { readonly store: ControlStore; readonly nowMs: () => number }) {
    this.#store = store;
    this.#nowMs = nowMs;
  }

  list(reach: Reach, page: Page): Promise<readonly RowOf<'environment'>[]> {
    return this.#store.read((tx) => tx.hierarchy.reachedEnvironments(reach, page));
  }

  async get(id: string): Promise<EnvironmentView> {
    return environmentView(found(await this.#store.read((tx) => tx.environments.find(id))));
  }

  /** @throws Refusal `already_exists` */
  create(operation: Operation, name: string): Promise<Created<EnvironmentView, never>> {
    const nowMs = this.#nowMs();
    return createOnce(this.#store, INSTALLATION_LOCK, operation, nowMs, async (tx) => {
      await refuseTakenName(tx, name);
      const row = { id: newId('environment', nowMs), name, ...newVersion(nowMs) };
      await tx.environments.add(row);
      const after = environmentView(row);
      const place = { environmentId: row.id };
      return {
        result: after,
        audit: [audited(operation, { what: 'environment.create', id: row.id, place, after })],
      };
    });
  }

  /** @throws Refusal `not_found`, `precondition_failed`, `already_exists` */
  rename(operation: Operation, id: string, version: number, name: string): Promise<EnvironmentView> {
    const nowMs = this.#nowMs();
    return this.#store.mutate(INSTALLATION_LOCK, async (tx) => {
      const row = found(await tx.environments.find(id));
      requireVersion(row, version);
      if (name !== row.name) await refuseTakenName(tx, name);
      await tx.environments.change(row, { name }, nowMs);
      const before = environmentView(row);
      const after = environmentView({ ...row, name, ...nextVersion(row, nowMs) });
      const place = { environmentId: id };
      return {
        result: after,
        audit: [audited(operation, { what: 'environment.change', id, place, before, after })],
      };
    });
  }

  /** @throws Refusal `not_found`, `precondition_failed`, `still_in_use` while it has fleets, role grants or tokens */
  remove(operation: Operation, id: string, version: number): Promise<void> {
    return this.#store.mutate(INSTALLATION_LOCK, async (tx) => {
      const row = found(await tx.environments.find(id));
      requireVersion(row, version);
      const [fleet] = await tx.fleets.list({ environmentId: id }, { after: undefined, limit: 1 });
      if (fleet !== undefined)
        throw new Refusal('still_in_use', 'the environment has fleets; delete them first');
      await refuseHeldScope(tx, 'environment', id);
      await tx.environments.remove(id);
      const before = environmentView(row);
      const place = { environmentId: id };
      return {
        result: undefined,
        audit: [audited(operation, { what: 'environment.delete', id, place, before })],
      };
    });
  }
}

async function refuseTakenName(tx: Transaction, name: string): Promise<void> {
  if ((await tx.hierarchy.environmentByName(name)) !== undefined) throw new Refusal('already_exists');
}

/** What is granted on a scope must not outlive it. @throws Refusal `still_in_use` */
export async function refuseHeldScope(
  tx: Transaction,
  kind: 'environment' | 'fleet' | 'site',
  id: string,
): Promise<void> {
  if (!(await tx.operators.isScopeHeld({ kind, id }))) return;
  throw new Refusal('still_in_use', `role grants or access tokens name the ${kind}; delete them first`);
}

export function environmentView(row: RowOf<'environment'>): EnvironmentView {
  return { environment_id: row.id, name: row.name, ...versionOf(row) };
}
