/** Access tokens for automation: one role at one scope. Control shows a token once and stores its hash. */
import type { AccessTokenView, NewAccessToken } from '../../api-contract/operators-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { newId } from '../domain/resource-identifiers.ts';
import type { Reach, Scope } from '../domain/roles.ts';
import { INSTALLATION_LOCK, momentOf, newVersion, versionOf } from '../resource/change.ts';
import type { Created, Operation } from '../resource/operation.ts';
import { type ResourceDeps, VersionedResource } from '../resource/versioned-resource.ts';
import { newToken, tokenHash } from '../secrets/bearer-token.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import { lockOf, placeOfScope, scopeOf, scopeView } from './role-grants.ts';
import type { ShownToken } from './targets.ts';

export class AccessTokens extends VersionedResource<'access_token', 'accessToken', AccessTokenView> {
  constructor(deps: ResourceDeps) {
    super(deps, {
      audited: 'access_token',
      table: (tx) => tx.accessTokens,
      lock: () => INSTALLATION_LOCK,
      place: async (tx, row) => (await placeOfScope(tx, scopeOfRow(row))) ?? {},
      id: ({ id }) => id,
      view: (_tx, row) => accessTokenView(row),
    });
  }

  list(reach: Reach, page: Page): Promise<readonly AccessTokenView[]> {
    return this.listRows((tx) => tx.operators.reachedTokens(reach, page));
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
    ...versionOf(row),
  };
}
