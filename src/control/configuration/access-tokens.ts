/** Tokens of automation: one role at one scope, shown once, kept as hashes. */
import type { AccessTokenView, NewAccessToken } from '../api/contract/operators.ts';
import { newId } from '../domain/identifiers.ts';
import { Refusal } from '../domain/refusal.ts';
import type { Reach, Scope } from '../domain/roles.ts';
import { type Created, createOnce, type Operation } from '../operation.ts';
import { newToken, tokenHash } from '../secrets/bearer-token.ts';
import type { ControlStore } from '../store/port.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import {
  audited,
  found,
  INSTALLATION_LOCK,
  momentOf,
  newVersion,
  nextVersion,
  requireVersion,
  versionOf,
} from './change.ts';
import { lockOf, placeOfScope, scopeOf, scopeView } from './role-grants.ts';
import type { ShownToken, WithToken } from './targets.ts';

export class AccessTokens {
  readonly #store: ControlStore;
  readonly #nowMs: () => number;

  constructor({ store, nowMs }: { readonly store: ControlStore; readonly nowMs: () => number }) {
    this.#store = store;
    this.#nowMs = nowMs;
  }

  list(reach: Reach, page: Page): Promise<readonly RowOf<'accessToken'>[]> {
    return this.#store.read((tx) => tx.operators.reachedTokens(reach, page));
  }

  async get(id: string): Promise<AccessTokenView> {
    return accessTokenView(found(await this.#store.read((tx) => tx.accessTokens.find(id))));
  }

  /**
   * @param makerEndsAtMs when the token that makes it ends; undefined when it does not, or an operator makes it
   * @throws Refusal `scope_invalid`, `definition_invalid` for an expiry that is over, or after the maker's
   */
  create(
    operation: Operation,
    token: NewAccessToken,
    makerEndsAtMs: number | undefined,
  ): Promise<Created<AccessTokenView, ShownToken>> {
    const scope = scopeOf(token.scope);
    const nowMs = this.#nowMs();
    const expiresAtMs =
      token.expires_at === undefined ? (makerEndsAtMs ?? null) : Date.parse(token.expires_at);
    assertOutlivedBy(makerEndsAtMs, expiresAtMs);
    if (expiresAtMs !== null && !(expiresAtMs > nowMs)) {
      const faults = [{ pointer: '/body/expires_at', reason: 'must lie in the future' }];
      throw new Refusal('definition_invalid', undefined, { faults });
    }
    return createOnce(this.#store, lockOf(scope), operation, nowMs, async (tx) => {
      const place = await placeOfScope(tx, scope);
      if (place === undefined) throw new Refusal('scope_invalid');
      const secret = newToken('access');
      const row = {
        id: newId('accessToken', nowMs),
        name: token.name,
        tokenHash: tokenHash(secret),
        role: token.role,
        scopeKind: scope.kind,
        scopeId: scope.id,
        expiresAtMs,
        lastUsedAtMs: null,
        ...newVersion(nowMs),
      };
      await tx.accessTokens.add(row);
      const after = accessTokenView(row);
      const entry = audited(operation, { what: 'access_token.create', id: row.id, place, after });
      return { result: after, shownOnce: { token: secret }, audit: [entry] };
    });
  }

  /**
   * The token before ends at once.
   * @param makerEndsAtMs as for {@link create}
   * @throws Refusal `not_found`, `definition_invalid` for a token that outlives the one which asks
   */
  async rotate(
    operation: Operation,
    id: string,
    makerEndsAtMs: number | undefined,
  ): Promise<WithToken<AccessTokenView>> {
    const token = newToken('access');
    const nowMs = this.#nowMs();
    const view = await this.#store.mutate(INSTALLATION_LOCK, async (tx) => {
      const row = found(await tx.accessTokens.find(id));
      assertOutlivedBy(makerEndsAtMs, row.expiresAtMs);
      await tx.accessTokens.change(row, { tokenHash: tokenHash(token) }, nowMs);
      const before = accessTokenView(row);
      const after = accessTokenView({ ...row, ...nextVersion(row, nowMs) });
      const place = (await placeOfScope(tx, scopeOfRow(row))) ?? {};
      return {
        result: after,
        audit: [audited(operation, { what: 'access_token.rotate', id, place, before, after })],
      };
    });
    return { view, token };
  }

  /** @throws Refusal `not_found`, `precondition_failed` */
  remove(operation: Operation, id: string, version: number): Promise<void> {
    return this.#store.mutate(INSTALLATION_LOCK, async (tx) => {
      const row = found(await tx.accessTokens.find(id));
      requireVersion(row, version);
      await tx.accessTokens.remove(id);
      const place = (await placeOfScope(tx, scopeOfRow(row))) ?? {};
      const before = accessTokenView(row);
      return {
        result: undefined,
        audit: [audited(operation, { what: 'access_token.delete', id, place, before })],
      };
    });
  }
}

/** A temporary token could otherwise give its role to a token that never expires. @throws Refusal `definition_invalid` */
function assertOutlivedBy(makerEndsAtMs: number | undefined, expiresAtMs: number | null): void {
  if (makerEndsAtMs === undefined || (expiresAtMs !== null && expiresAtMs <= makerEndsAtMs)) return;
  const reason = 'must not be later than the end of the token that creates it';
  throw new Refusal('definition_invalid', undefined, { faults: [{ pointer: '/body/expires_at', reason }] });
}

function scopeOfRow({ scopeKind, scopeId }: RowOf<'accessToken'>): Scope {
  return { kind: scopeKind, id: scopeId };
}

export function accessTokenView(row: RowOf<'accessToken'>): AccessTokenView {
  return {
    access_token_id: row.id,
    name: row.name,
    role: row.role,
    scope: scopeView(scopeOfRow(row)),
    ...(row.expiresAtMs === null ? {} : { expires_at: momentOf(row.expiresAtMs) }),
    ...versionOf(row),
  };
}
