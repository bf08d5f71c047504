/**
 * Callers that operators block: bundles deny their requests on every route, before their passports end.
 * Source: docs/operate/control.md "Blocked callers"; docs/design/bundle.md "Content".
 */

import { MAX_BLOCKED } from '../../bundle/format/bundle-limits.ts';
import { isCanonicalSubject, SPIFFE_ID_RULE } from '../../protocol/spiffe-id.ts';
import type { BlockedCallerView, CallerName } from '../contract/blocked-callers-contract.ts';
import { MAX_SHOWN_TARGETS } from '../contract/vocabulary.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { publishBlocked, targetsHoldingBlocksBack } from '../publishing/blocked-publication.ts';
import { audited, momentOf, placeInSite, requireRow } from '../resource/change.ts';
import { type Created, createOnce, type Operation } from '../resource/operation.ts';
import type { ResourceDeps } from '../resource/versioned-resource.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

export class BlockedCallers {
  readonly #deps: ResourceDeps;

  constructor(deps: ResourceDeps) {
    this.#deps = deps;
  }

  /** Ordered by {@link callerPlace}. */
  list(siteId: string, page: Page): Promise<readonly BlockedCallerView[]> {
    return this.#deps.store.readAside(async (tx) => {
      const rows = await tx.blockedCallers.list(siteId, page);
      const waitingFor = await awaitedTargets(tx, siteId);
      return rows.map((row) => ({ ...blockedView(row), ...waitingFor }));
    });
  }

  /** @throws ApiProblem `already_exists`, `definition_invalid`, `reference_unknown` */
  block(
    siteId: string,
    caller: CallerName,
    operation: Operation,
  ): Promise<Created<BlockedCallerView, never>> {
    const { store, nowMs: clock } = this.#deps;
    const nowMs = clock();
    requireOneSelector(caller);
    rejectFaulty(caller);
    return createOnce(store, { kind: 'site', siteId }, operation, nowMs, async (tx) => {
      const place = await placeInSite(tx, siteId);
      const name = callerPlace(caller);
      await rejectUnknownIssuer(tx, siteId, caller);
      if (await tx.blockedCallers.isBlocked(siteId, name)) {
        throw new ApiProblem('already_exists', 'the caller is blocked already');
      }
      if ((await tx.blockedCallers.count(siteId)) >= MAX_BLOCKED) {
        throw new ApiProblem('definition_invalid', `at most ${MAX_BLOCKED} callers of a site can be blocked`);
      }
      const { issuer, subject = null, holder_thumbprint: holderThumbprint = null } = caller;
      const by = { blockedAtMs: nowMs, blockedBy: operation.actor };
      const row = { siteId, name, issuer, subject, holderThumbprint, ...by };
      await tx.blockedCallers.add(row);
      await publishBlocked(tx, siteId, nowMs);
      const audit = audited(operation, {
        what: 'blocked_caller.block',
        id: auditId(caller),
        place,
        after: caller,
      });
      const result = { ...blockedView(row), ...(await awaitedTargets(tx, siteId)) };
      return { result, audit: [audit] };
    });
  }

  /** @throws ApiProblem `definition_invalid`, `not_found` */
  async unblock(siteId: string, caller: CallerName, operation: Operation): Promise<void> {
    const { store, nowMs } = this.#deps;
    requireOneSelector(caller);
    return store.mutate({ kind: 'site', siteId }, async (tx) => {
      const place = await placeInSite(tx, siteId);
      const isRemoved = await tx.blockedCallers.remove(siteId, callerPlace(caller));
      if (!isRemoved) throw new ApiProblem('not_found');
      await publishBlocked(tx, siteId, nowMs());
      const change = { what: 'blocked_caller.unblock', id: auditId(caller), place, before: caller } as const;
      return { result: undefined, audit: [audited(operation, change)] };
    });
  }
}

/** List position of a blocked caller. No part contains a space. */
export function callerPlace({ holder_thumbprint: holder, issuer, subject }: CallerName): string {
  return `${issuer} ${subject === undefined ? `holder ${holder ?? ''}` : `subject ${subject}`}`;
}

function auditId({ holder_thumbprint: holder, issuer, subject }: CallerName): string {
  return `${issuer}|${subject ?? holder ?? ''}`;
}

/** @throws ApiProblem `definition_invalid` */
function requireOneSelector({ holder_thumbprint: holder, subject }: CallerName): void {
  if ((subject === undefined) !== (holder === undefined)) return;
  throw new ApiProblem('definition_invalid', 'name either subject or holder_thumbprint');
}

/** @throws ApiProblem `definition_invalid` for an entry that would block no caller */
function rejectFaulty({ subject }: CallerName): void {
  if (subject !== undefined && !isCanonicalSubject(subject)) {
    const reason = `blocks no caller: it is not ${SPIFFE_ID_RULE}`;
    throw new ApiProblem('definition_invalid', undefined, {
      faults: [{ pointer: '/body/subject', reason }],
    });
  }
}

/** A misspelled issuer would block no caller. @throws ApiProblem `reference_unknown` */
async function rejectUnknownIssuer(tx: Transaction, siteId: string, { issuer }: CallerName): Promise<void> {
  const { issuerUrl } = requireRow(await tx.sites.find(siteId));
  if (issuer === issuerUrl || (await tx.brokers.ofIssuer(siteId, issuer)).length > 0) return;
  if ((await tx.oauthIssuers.find(siteId, issuer)) !== undefined) return;
  throw new ApiProblem(
    'reference_unknown',
    'issuer: neither a broker nor an OAuth issuer of the Auth Site, nor its own issuer URL',
  );
}

async function awaitedTargets(
  tx: Transaction,
  siteId: string,
): Promise<Pick<BlockedCallerView, 'waiting_for'>> {
  const targets = (await targetsHoldingBlocksBack(tx, siteId)).slice(0, MAX_SHOWN_TARGETS);
  if (targets.length === 0) return {};
  return { waiting_for: targets.map(({ id, name }) => ({ target_id: id, name })) };
}

function blockedView(row: RowOf<'blockedCaller'>): BlockedCallerView {
  const { siteId, issuer, subject, holderThumbprint, blockedAtMs, blockedBy } = row;
  return {
    site_id: siteId,
    issuer,
    ...(subject === null ? {} : { subject }),
    ...(holderThumbprint === null ? {} : { holder_thumbprint: holderThumbprint }),
    blocked_at: momentOf(blockedAtMs),
    blocked_by: blockedBy,
  };
}
