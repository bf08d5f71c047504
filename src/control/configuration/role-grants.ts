/** Role grants. Only an admin of a scope may grant roles at it, so that no caller grants more than they hold. */
import type {
  AccessTokenView,
  NewAccessToken,
  NewRoleGrant,
  RoleGrantView,
  ScopeView,
} from '../contract/operators-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { newId } from '../domain/resource-identifiers.ts';
import type { Reach, Scope, ScopePath } from '../domain/roles.ts';
import {
  audited,
  INSTALLATION_LOCK,
  momentOf,
  newVersion,
  requireRow,
  versionOf,
} from '../resource/change.ts';
import { type Created, createOnce, type Operation } from '../resource/operation.ts';
import { type ResourceDeps, VersionedResource } from '../resource/versioned-resource.ts';
import { newToken, tokenHash } from '../secrets/bearer-token.ts';
import type { ControlStore, Lock } from '../store/port.ts';
import type { RangedPage } from '../store/repositories/ranged-list.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import type { ShownToken } from './targets.ts';

export class RoleGrants {
  readonly #store: ControlStore;
  readonly #nowMs: () => number;

  constructor({ store, nowMs }: { readonly store: ControlStore; readonly nowMs: () => number }) {
    this.#store = store;
    this.#nowMs = nowMs;
  }

  async list(reach: Reach, page: Page): Promise<readonly RoleGrantView[]> {
    const rows = await this.#store.readAside((tx) => tx.operators.reachedGrants(reach, page));
    return rows.map(roleGrantView);
  }

  async get(id: string): Promise<RoleGrantView> {
    return roleGrantView(requireRow(await this.#store.read((tx) => tx.operators.grant(id))));
  }

  /** @throws ApiProblem `scope_invalid`, `already_exists` */
  create(operation: Operation, grant: NewRoleGrant): Promise<Created<RoleGrantView, never>> {
    const scope = scopeOf(grant.scope);
    const nowMs = this.#nowMs();
    return createOnce(this.#store, lockOf(scope), operation, nowMs, async (tx) => {
      const place = await placeOfScope(tx, scope);
      if (place === undefined) throw new ApiProblem('scope_invalid');
      const row = {
        id: newId('roleGrant', nowMs),
        principal: grant.principal,
        role: grant.role,
        scopeKind: scope.kind,
        scopeId: scope.id,
        createdAtMs: nowMs,
        createdBy: operation.actor,
      };
      if (await tx.operators.hasGrant(row)) throw new ApiProblem('already_exists');
      await tx.operators.addGrant(row);
      const after = roleGrantView(row);
      const entry = audited(operation, { what: 'role_grant.create', id: row.id, place, after });
      return { result: after, audit: [entry] };
    });
  }

  /** @throws ApiProblem `not_found` */
  remove(operation: Operation, id: string): Promise<void> {
    return this.#store.mutate(INSTALLATION_LOCK, async (tx) => {
      const row = requireRow(await tx.operators.grant(id));
      await tx.operators.removeGrant(id);
      const place = (await placeOfScope(tx, { kind: row.scopeKind, id: row.scopeId })) ?? {};
      const entry = audited(operation, { what: 'role_grant.delete', id, place, before: roleGrantView(row) });
      return { result: undefined, audit: [entry] };
    });
  }
}

/** Converts the API's scope: only the installation has no ID. @throws ApiProblem `scope_invalid` */
export function scopeOf({ kind, id }: ScopeView): Scope {
  if ((kind === 'installation') !== (id === undefined)) throw new ApiProblem('scope_invalid');
  return { kind, id: id ?? '' };
}

export function scopeView({ kind, id }: Scope): ScopeView {
  return kind === 'installation' ? { kind } : { kind, id };
}

/** The place of a scope; undefined when it does not exist. */
export async function placeOfScope(tx: Transaction, { kind, id }: Scope): Promise<ScopePath | undefined> {
  switch (kind) {
    case 'installation':
      return {};
    case 'environment': {
      const environment = await tx.environments.find(id);
      return environment && { environmentId: id };
    }
    case 'fleet': {
      const fleet = await tx.fleets.find(id);
      return fleet && { environmentId: fleet.environmentId, fleetId: id };
    }
    case 'site':
      return tx.hierarchy.placeOfSite(id);
  }
}

/** Serializes granting at a scope with removing that scope. */
function lockOf({ kind, id }: Scope): Lock {
  return kind === 'site' ? { kind: 'site', siteId: id } : INSTALLATION_LOCK;
}

function roleGrantView(row: Omit<RowOf<'roleGrant'>, 'environmentId' | 'fleetId'>): RoleGrantView {
  return {
    role_grant_id: row.id,
    principal: row.principal,
    role: row.role,
    scope: scopeView({ kind: row.scopeKind, id: row.scopeId }),
    created_at: momentOf(row.createdAtMs),
    created_by: row.createdBy,
  };
}

/** Access tokens for automation: one role at one scope. Control shows a token once and stores its hash. */
export class AccessTokens extends VersionedResource<'access_token', 'accessToken', AccessTokenView> {
  constructor(deps: ResourceDeps) {
    super(deps, {
      audited: 'access_token',
      table: (tx) => tx.accessTokens,
      lock: () => INSTALLATION_LOCK,
      place: async (tx, row) => (await placeOfScope(tx, scopeOfRow(row))) ?? {},
      id: ({ id }) => id,
      views: (_tx, rows) => rows.map(accessTokenView),
    });
  }

  list(reach: Reach, page: Page, name?: string): Promise<RangedPage<AccessTokenView>> {
    return this.listRows((tx) => tx.operators.reachedTokens(reach, page, name));
  }

  /**
   * @param makerEndsAtMs expiry of the token that creates it; undefined if that never expires, or an operator creates it
   * @throws ApiProblem `scope_invalid`, `definition_invalid` for an expiry in the past, or after the creating token's
   */
  async create(
    operation: Operation,
    token: NewAccessToken,
    makerEndsAtMs: number | undefined,
  ): Promise<Created<AccessTokenView, ShownToken>> {
    const scope = scopeOf(token.scope);
    const expiresAtMs =
      token.expires_at === undefined ? (makerEndsAtMs ?? null) : Date.parse(token.expires_at);
    assertOutlivedBy(makerEndsAtMs, expiresAtMs);
    if (expiresAtMs !== null && !(expiresAtMs > this.nowMs())) {
      const faults = [{ pointer: '/body/expires_at', reason: 'must lie in the future' }];
      throw new ApiProblem('definition_invalid', undefined, { faults });
    }
    return this.createRow<ShownToken>(operation, lockOf(scope), async (tx, nowMs) => {
      if ((await placeOfScope(tx, scope)) === undefined) throw new ApiProblem('scope_invalid');
      const secret = newToken('access');
      const id = newId('accessToken', nowMs);
      await tx.accessTokens.add({
        id,
        name: token.name,
        tokenHash: tokenHash(secret),
        role: token.role,
        scopeKind: scope.kind,
        scopeId: scope.id,
        expiresAtMs,
        lastUsedAtMs: null,
        createdBy: operation.actor,
        ...newVersion(nowMs),
      });
      return { name: [id], shownOnce: { token: secret } };
    });
  }

  /**
   * Ends the previous token at once.
   * @param makerEndsAtMs as for {@link create}
   * @throws ApiProblem `not_found`, `definition_invalid` for a token that outlives the calling one
   */
  async rotate(
    operation: Operation,
    id: string,
    makerEndsAtMs: number | undefined,
  ): Promise<AccessTokenView & ShownToken> {
    const token = newToken('access');
    const rotate = (_tx: unknown, row: RowOf<'accessToken'>) => {
      assertOutlivedBy(makerEndsAtMs, row.expiresAtMs);
      return { set: { tokenHash: tokenHash(token) } };
    };
    return { ...(await this.changeRow(operation, [id], undefined, rotate, 'rotate')), token };
  }

  /** @throws ApiProblem `not_found`, `precondition_failed` */
  remove(operation: Operation, id: string, version: number): Promise<void> {
    return this.removeRow(operation, [id], version, async () => ({}));
  }
}

/** Prevents a temporary token from passing its role to a token that never expires. @throws ApiProblem `definition_invalid` */
function assertOutlivedBy(makerEndsAtMs: number | undefined, expiresAtMs: number | null): void {
  if (makerEndsAtMs === undefined || (expiresAtMs !== null && expiresAtMs <= makerEndsAtMs)) return;
  const reason = 'must not be later than the end of the token that creates it';
  throw new ApiProblem('definition_invalid', undefined, {
    faults: [{ pointer: '/body/expires_at', reason }],
  });
}

function scopeOfRow({ scopeKind, scopeId }: RowOf<'accessToken'>): Scope {
  return { kind: scopeKind, id: scopeId };
}

function accessTokenView(row: RowOf<'accessToken'>): AccessTokenView {
  return {
    access_token_id: row.id,
    name: row.name,
    role: row.role,
    scope: scopeView(scopeOfRow(row)),
    ...(row.expiresAtMs === null ? {} : { expires_at: momentOf(row.expiresAtMs) }),
    ...(row.createdBy === null ? {} : { created_by: row.createdBy }),
    ...(row.lastUsedAtMs === null ? {} : { last_used_at: momentOf(row.lastUsedAtMs) }),
    ...versionOf(row),
  };
}
