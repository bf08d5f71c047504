/** Environments. */
import type { EnvironmentView, FleetView } from '../contract/hierarchy-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { newId } from '../domain/resource-identifiers.ts';
import type { Reach } from '../domain/roles.ts';
import { INSTALLATION_LOCK, newVersion, ONE_ROW, requireRow, versionOf } from '../resource/change.ts';
import type { Created, Operation } from '../resource/operation.ts';
import { oneByOne, type ResourceDeps, VersionedResource } from '../resource/versioned-resource.ts';
import type { RangedPage } from '../store/repositories/ranged-list.ts';
import type { Page } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

export class Environments extends VersionedResource<'environment', 'environment', EnvironmentView> {
  constructor(deps: ResourceDeps) {
    super(deps, {
      audited: 'environment',
      table: (tx) => tx.environments,
      lock: () => INSTALLATION_LOCK,
      place: (_tx, { id }) => ({ environmentId: id }),
      id: ({ id }) => id,
      views: oneByOne((_tx, row) => ({ environment_id: row.id, name: row.name, ...versionOf(row) })),
    });
  }

  list(reach: Reach, page: Page, name?: string): Promise<RangedPage<EnvironmentView>> {
    return this.listRows((tx) => tx.hierarchy.reachedEnvironments(reach, page, name));
  }

  /** @throws ApiProblem `already_exists` */
  create(operation: Operation, name: string): Promise<Created<EnvironmentView, never>> {
    return this.createRow(operation, INSTALLATION_LOCK, async (tx, nowMs) => {
      await rejectTakenName(tx, name);
      const id = newId('environment', nowMs);
      await tx.environments.add({ id, name, ...newVersion(nowMs) });
      return { name: [id] };
    });
  }

  /** @throws ApiProblem `not_found`, `precondition_failed`, `already_exists` */
  rename(operation: Operation, id: string, version: number, name: string): Promise<EnvironmentView> {
    return this.changeRow(operation, [id], version, async (tx, row) => {
      if (name !== row.name) await rejectTakenName(tx, name);
      return { set: { name } };
    });
  }

  /** @throws ApiProblem `not_found`, `precondition_failed`, `still_in_use` while it has fleets, role grants or tokens */
  remove(operation: Operation, id: string, version: number): Promise<void> {
    return this.removeRow(operation, [id], version, async (tx) => {
      const [fleet] = await tx.fleets.list({ environmentId: id }, ONE_ROW);
      if (fleet !== undefined)
        throw new ApiProblem('still_in_use', 'the environment has fleets; delete them first');
      await rejectHeldScope(tx, 'environment', id);
      return {};
    });
  }
}

async function rejectTakenName(tx: Transaction, name: string): Promise<void> {
  if ((await tx.hierarchy.environmentByName(name)) !== undefined) throw new ApiProblem('already_exists');
}

/** A scope with role grants or access tokens cannot be removed. @throws ApiProblem `still_in_use` */
export async function rejectHeldScope(
  tx: Transaction,
  kind: 'environment' | 'fleet' | 'site',
  id: string,
): Promise<void> {
  if (!(await tx.operators.isScopeHeld({ kind, id }))) return;
  throw new ApiProblem('still_in_use', `role grants or access tokens name the ${kind}; delete them first`);
}

/** Fleets of an environment. */
export class Fleets extends VersionedResource<'fleet', 'fleet', FleetView> {
  constructor(deps: ResourceDeps) {
    super(deps, {
      audited: 'fleet',
      table: (tx) => tx.fleets,
      lock: () => INSTALLATION_LOCK,
      place: (_tx, { id, environmentId }) => ({ environmentId, fleetId: id }),
      id: ({ id }) => id,
      views: oneByOne((_tx, row) => ({
        fleet_id: row.id,
        environment_id: row.environmentId,
        name: row.name,
        ...versionOf(row),
      })),
    });
  }

  list(environmentId: string, page: Page, name?: string): Promise<readonly FleetView[]> {
    return this.listRows((tx) => tx.fleets.list({ environmentId, name }, page));
  }

  /** @throws ApiProblem `not_found` without the environment, `already_exists` */
  create(operation: Operation, environmentId: string, name: string): Promise<Created<FleetView, never>> {
    return this.createRow(operation, INSTALLATION_LOCK, async (tx, nowMs) => {
      requireRow(await tx.environments.find(environmentId));
      await rejectTakenFleetName(tx, environmentId, name);
      const id = newId('fleet', nowMs);
      await tx.fleets.add({ id, environmentId, name, ...newVersion(nowMs) });
      return { name: [id] };
    });
  }

  /** @throws ApiProblem `not_found`, `precondition_failed`, `already_exists` */
  rename(operation: Operation, id: string, version: number, name: string): Promise<FleetView> {
    return this.changeRow(operation, [id], version, async (tx, row) => {
      if (name !== row.name) await rejectTakenFleetName(tx, row.environmentId, name);
      return { set: { name } };
    });
  }

  /** @throws ApiProblem `not_found`, `precondition_failed`, `still_in_use` while it has sites, role grants or tokens */
  remove(operation: Operation, id: string, version: number): Promise<void> {
    return this.removeRow(operation, [id], version, async (tx) => {
      const [site] = await tx.sites.list({ fleetId: id }, ONE_ROW);
      if (site !== undefined) throw new ApiProblem('still_in_use', 'the fleet has sites; delete them first');
      await rejectHeldScope(tx, 'fleet', id);
      return {};
    });
  }
}

async function rejectTakenFleetName(tx: Transaction, environmentId: string, name: string): Promise<void> {
  if ((await tx.hierarchy.fleetByName(environmentId, name)) !== undefined)
    throw new ApiProblem('already_exists');
}
