/**
 * Lists and ends sessions for operators: their own, or those of everyone with a role on the installation.
 * Source: docs/operate/control.md "Signing in with OpenID Connect".
 */
import type { OperatorSessionView } from '../contract/operators-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { mayDo, type Permission } from '../domain/roles.ts';
import { audited, type By, INSTALLATION_LOCK, momentOf, requireRow } from '../resource/change.ts';
import type { ControlStore } from '../store/port.ts';
import { type RangedPage, viewsOf } from '../store/repositories/ranged-list.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { sessionIdOf } from './operator-identity.ts';
import type { Principal } from './operators.ts';

export class OperatorSessions {
  readonly #store: ControlStore;
  readonly #nowMs: () => number;

  constructor({ store, nowMs }: { readonly store: ControlStore; readonly nowMs: () => number }) {
    this.#store = store;
    this.#nowMs = nowMs;
  }

  /** Lists living sessions: all of them with `read` on the installation, otherwise the caller's own. */
  async list(caller: Principal, { after, limit }: Page): Promise<RangedPage<OperatorSessionView>> {
    const principal = mayOnAll(caller, 'read') ? undefined : caller.actor;
    // The page starts after every hash with the cursor's prefix.
    const page = { after: after === undefined ? undefined : `${hashPrefixOf(after) ?? ''}~`, limit };
    const of = { principal, nowMs: this.#nowMs() };
    const rows = await this.#store.readAside((tx) => tx.operators.sessions(of, page));
    return viewsOf(rows, (row) => viewOf(row, caller));
  }

  /**
   * Ends all living sessions of an operator: the caller's own, or anybody's with `administer` on the installation.
   * @returns how many
   * @throws ApiProblem `permission_denied`
   */
  endAll(caller: Principal, principal: string, by: By): Promise<number> {
    if (principal !== caller.actor && !mayOnAll(caller, 'administer')) {
      return Promise.reject(new ApiProblem('permission_denied'));
    }
    return this.#store.mutate(INSTALLATION_LOCK, async (tx) => {
      const ended = await tx.operators.removeSessionsOf(principal);
      const living = ended.filter(({ expiresAtMs }) => expiresAtMs > this.#nowMs());
      const after = { ended: living.length };
      const each = living.map((row) => {
        const before = publicMembers(row);
        return audited(by, { what: 'session.end', id: before.session_id, place: {}, before });
      });
      const all = audited(by, { what: 'session.end_all', id: principal, place: {}, after });
      return { result: living.length, audit: [all, ...each] };
    });
  }

  /** @throws ApiProblem `not_found`, also for one that the caller may not see */
  get(caller: Principal, id: string): Promise<OperatorSessionView> {
    return this.#store.read(async (tx) => viewOf(await this.#visible(tx, id, caller), caller));
  }

  /**
   * Ends a living session: the caller's own, or any with `administer` on the installation.
   * @throws ApiProblem `not_found`, `permission_denied`
   */
  end(caller: Principal, id: string, by: By): Promise<void> {
    return this.#store.mutate(INSTALLATION_LOCK, async (tx) => {
      const row = await this.#visible(tx, id, caller);
      const mayEnd = row.principal === caller.actor || mayOnAll(caller, 'administer');
      if (!mayEnd) throw new ApiProblem('permission_denied');
      await tx.operators.removeSession(row.tokenHash);
      const before = publicMembers(row);
      return { result: undefined, audit: [audited(by, { what: 'session.end', id, place: {}, before })] };
    });
  }

  /** @throws ApiProblem `not_found` */
  async #visible(tx: Transaction, id: string, caller: Principal): Promise<RowOf<'operatorSession'>> {
    const prefix = hashPrefixOf(id);
    const row = requireRow(prefix === undefined ? undefined : await tx.operators.sessionByPrefix(prefix));
    const isVisible = row.principal === caller.actor || mayOnAll(caller, 'read');
    if (!isVisible || row.expiresAtMs <= this.#nowMs()) throw new ApiProblem('not_found');
    return row;
  }
}

/** Sessions belong to the installation. */
function mayOnAll({ roles }: Principal, permission: Permission): boolean {
  return mayDo(roles, permission, {});
}

function viewOf(row: RowOf<'operatorSession'>, { sessionId }: Principal): OperatorSessionView {
  const members = publicMembers(row);
  return { ...members, current: members.session_id === sessionId };
}

function publicMembers({ tokenHash: hash, ...row }: RowOf<'operatorSession'>) {
  return {
    session_id: sessionIdOf(hash),
    principal: row.principal,
    display_name: row.displayName,
    created_at: momentOf(row.createdAtMs),
    expires_at: momentOf(row.expiresAtMs),
  };
}

function hashPrefixOf(sessionId: string): string | undefined {
  return /^ses_([A-Za-z0-9_-]{16})$/.exec(sessionId)?.[1];
}
