/** Environments. */
import type { EnvironmentView } from '../../api-contract/hierarchy-contract.ts';
import { Refusal } from '../domain/refusal.ts';
import { newId } from '../domain/resource-identifiers.ts';
import type { Reach } from '../domain/roles.ts';
import type { Created, Operation } from '../operation.ts';
import type { Page } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { INSTALLATION_LOCK, newVersion, ONE_ROW, versionOf } from './change.ts';
import { type ResourceDeps, VersionedResource } from './versioned-resource.ts';

export class Environments extends VersionedResource<'environment', 'environment', EnvironmentView> {
  constructor(deps: ResourceDeps) {
    super(deps, {
      audited: 'environment',
      table: (tx) => tx.environments,
      lock: () => INSTALLATION_LOCK,
      place: (_tx, { id }) => ({ environmentId: id }),
      id: ({ id }) => id,
      view: (_tx, row) => ({ environment_id: row.id, name: row.name, ...versionOf(row) }),
    });
  }

  list(reach: Reach, page: Page): Promise<readonly EnvironmentView[]> {
    return this.listRows((tx) => tx.hierarchy.reachedEnvironments(reach, page));
  }

  /** @throws Refusal `already_exists` */
  create(operation: Operation, name: string): Promise<Created<EnvironmentView, never>> {
    return this.createRow(operation, INSTALLATION_LOCK, async (tx, nowMs) => {
      await refuseTakenName(tx, name);
      const id = newId('environment', nowMs);
      await tx.environments.add({ id, name, ...newVersion(nowMs) });
      return { name: [id] };
    });
  }

  /** @throws Refusal `not_found`, `precondition_failed`, `already_exists` */
  rename(operation: Operation, id: string, version: number, name: string): Promise<EnvironmentView> {
    return this.changeRow(operation, [id], version, async (tx, row) => {
      if (name !== row.name) await refuseTakenName(tx, name);
      return { set: { name } };
    });
  }

  /** @throws Refusal `not_found`, `precondition_failed`, `still_in_use` while it has fleets, role grants or tokens */
  remove(operation: Operation, id: string, version: number): Promise<void> {
    return this.removeRow(operation, [id], version, async (tx) => {
      const [fleet] = await tx.fleets.list({ environmentId: id }, ONE_ROW);
      if (fleet !== undefined)
        throw new Refusal('still_in_use', 'the environment has fleets; delete them first');
      await refuseHeldScope(tx, 'environment', id);
      return {};
    });
  }
}

async function refuseTakenName(tx: Transaction, name: string): Promise<void> {
  if ((await tx.hierarchy.environmentByName(name)) !== undefined) throw new Refusal('already_exists');
}

/** A scope with role grants or access tokens cannot be removed. @throws Refusal `still_in_use` */
export async function refuseHeldScope(
  tx: Transaction,
  kind: 'environment' | 'fleet' | 'site',
  id: string,
): Promise<void> {
  if (!(await tx.operators.isScopeHeld({ kind, id }))) return;
  throw new Refusal('still_in_use', `role grants or access tokens name the ${kind}; delete them first`);
}
