/**
 * Moves source revisions through their states: validate, activate, suspend, resume, retire. Issuers are fetched outside any
 * transaction, and a result counts only for the version of the revision that was fetched.
 * Source: specification "Trust Anchor Source", "States and transitions"; docs/operate/control.md "Trust Anchor Source".
 */

import type { SourceRevisionView, SourceView } from '../contract/sources-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import {
  activationProblem,
  holdsSlot,
  IN_PROGRESS_STATES,
  isDraft,
  SLOT_STATES,
} from '../domain/source-states.ts';
import { readIssuerUrl, scopeOf } from '../issuers/issuer-url.ts';
import type { SourceCoordinates, SourceValidation } from '../issuers/validate-source.ts';
import { revokeKeysOfSource } from '../keys/derived-keys.ts';
import { denyWaiting } from '../keys/outcomes.ts';
import { BY_CONTROL, requireRow, requireVersion } from '../resource/change.ts';
import { JoinedStore } from '../resource/joined-store.ts';
import type { Operation } from '../resource/operation.ts';
import type { ResourceDeps } from '../resource/versioned-resource.ts';
import type { AuditEntry } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import {
  changeRevision,
  isEnded,
  NOT_VALIDATED,
  publishSources,
  type RevisionContext,
  type RevisionName,
  revisionAudit,
  stateAfter,
} from './source-changes.ts';
import { SourceDrafts } from './source-drafts.ts';
import { sourceView } from './source-views.ts';

export interface SourceLifecycleOptions extends ResourceDeps {
  /** Never rejects. For example `validateSource` with its fetcher. */
  readonly validate: (coordinates: SourceCoordinates) => Promise<SourceValidation>;
  /** Receives errors of unfinished activation checks; the source jobs repeat these. */
  readonly report: (error: unknown) => void;
}

export class SourceLifecycle {
  readonly #options: SourceLifecycleOptions;
  readonly #checks = new Map<string, Promise<void>>();

  constructor(options: SourceLifecycleOptions) {
    this.#options = options;
  }

  /** @throws ApiProblem `source_state_conflict`, `precondition_failed` when the revision was edited meanwhile */
  async validate(name: RevisionName, operation: Operation): Promise<SourceRevisionView> {
    const { store, validate } = this.#options;
    const asked = await store.read(async (tx) =>
      requireRow(await tx.sourceRevisions.find(name.sourceId, name.revision)),
    );
    stateAfter(asked.state, 'validation_passed');
    const validation = await validate(asked);
    return changeRevision(this.#options, name, operation, async (context, nowMs) => {
      const { tx, row } = context;
      requireVersion(row, asked.version);
      if (validation.kind === 'valid') {
        const state = stateAfter(row.state, 'validation_passed');
        return { verb: 'validate', set: { state, ...(await keepFindings(context, validation, nowMs)) } };
      }
      const state = stateAfter(row.state, 'validation_failed');
      await tx.sources.removeKeySet(row.sourceId, row.revision);
      return { verb: 'fail_validation', set: { state, ...NOT_VALIDATED, ...failureOf(validation) } };
    });
  }

  /**
   * Takes the slot, claims the audience, and starts the check without waiting for it.
   * @throws ApiProblem `source_state_conflict`, `source_scope_mismatch`, `source_revision_in_progress`,
   *   `source_capacity_exhausted`, `audience_taken`
   */
  async activate(
    name: RevisionName,
    expectedScope: string,
    operation: Operation,
  ): Promise<SourceRevisionView> {
    const view = await changeRevision(this.#options, name, operation, async (context) => {
      await rejectActivation(context, expectedScope, 'activate');
      if (!(await claimAudience(context))) throw new ApiProblem('audience_taken');
      const state = stateAfter(context.row.state, 'activate');
      const set = { state, failureCode: null, failureDetail: null, awaitedRevision: null };
      return { verb: 'activate', set };
    });
    void this.check(name);
    return view;
  }

  /**
   * Activates a revision without a prior validation: the check validates it, and a failure makes it a `failed_draft`.
   * Starts no check: call {@link check} after the transaction.
   * @throws ApiProblem as {@link activate}
   */
  declare(name: RevisionName, expectedScope: string, operation: Operation): Promise<SourceRevisionView> {
    return changeRevision(this.#options, name, operation, async (context) => {
      await rejectActivation(context, expectedScope, 'declare');
      const state = stateAfter(context.row.state, 'declare');
      const set = { state, failureCode: null, failureDetail: null, awaitedRevision: null };
      return { verb: 'activate', set };
    });
  }

  /** Validates an activating revision again, one check at a time per revision. Never rejects; errors go to `report`. */
  check(name: RevisionName): Promise<void> {
    const key = `${name.sourceId}/${name.revision}`;
    const running = this.#checks.get(key);
    if (running !== undefined) return running;
    const check = this.#checkNow(name)
      .catch((error: unknown) => this.#options.report(error))
      .finally(() => this.#checks.delete(key));
    this.#checks.set(key, check);
    return check;
  }

  /** Repeats interrupted checks: those of revisions that have been activating for longer than this. */
  async checkStranded(olderThanMs: number): Promise<void> {
    const { store, nowMs } = this.#options;
    const rows = await store.read((tx) => tx.sources.everywhereInStates(['activating']));
    const stranded = rows.filter(({ stateSinceMs }) => nowMs() - stateSinceMs >= olderThanMs);
    await Promise.all(stranded.map((row) => this.check(row)));
  }

  /** Resolves when no check is running. */
  async untilIdle(): Promise<void> {
    while (this.#checks.size > 0) await Promise.all(this.#checks.values());
  }

  /**
   * Stops the whole source, also a revision that would replace this one and open enrollment again. Waits for no verifier.
   * Keeps the slot. Pending enrollments stay pending.
   * @throws ApiProblem `source_state_conflict`
   */
  suspend(name: RevisionName, operation: Operation): Promise<SourceRevisionView> {
    return changeRevision(this.#options, name, operation, async (context, nowMs) => {
      const state = stateAfter(context.row.state, 'suspend');
      const alsoAudited = await stopOthers(context, operation, nowMs);
      const revokes = context.source.onSuspend === 'revoke';
      const revoked_keys = revokes ? await revokeKeys(context, operation, nowMs) : 0;
      return { verb: 'suspend', set: { state, awaitedRevision: null }, more: { revoked_keys }, alsoAudited };
    });
  }

  /** @throws ApiProblem `source_state_conflict`, `source_revision_in_progress` */
  resume(name: RevisionName, operation: Operation): Promise<SourceRevisionView> {
    return changeRevision(this.#options, name, operation, async (context, nowMs) => {
      const state = stateAfter(context.row.state, 'resume');
      await rejectOtherInProgress(context);
      await publishSources(context, nowMs);
      return { verb: 'resume', set: { state, awaitedRevision: null } };
    });
  }

  /**
   * Cannot be undone. Denies pending enrollments of this revision, or of the whole source with its last revision in use.
   * `on_retire` does not apply to a revision that was about to replace another one: its source stays in use.
   * @throws ApiProblem `source_state_conflict`
   */
  retire(name: RevisionName, operation: Operation): Promise<SourceRevisionView> {
    return changeRevision(this.#options, name, operation, async (context, nowMs) => {
      const { tx, row, source, place } = context;
      const state = stateAfter(row.state, 'retire');
      const others = await otherRevisions(context);
      const staysInUse = others.some((other) => other.state === 'active' || other.state === 'suspended');
      const revokes = source.onRetire === 'revoke' && !staysInUse;
      const revoked_keys = revokes ? await revokeKeys(context, operation, nowMs) : 0;
      const ends = !others.some((other) => holdsSlot(other.state));
      const waiting = await tx.enrollments.pendingOfSource(row.sourceId, ends ? undefined : row.revision);
      const alsoAudited = await denyWaiting({ tx, place }, waiting, 'source_not_active', operation, nowMs);
      if (row.state !== 'activating') await publishSources(context, nowMs);
      return { verb: 'retire', set: { state, awaitedRevision: null }, more: { revoked_keys }, alsoAudited };
    });
  }

  /**
   * Retires every revision of a source, and deletes its draft. The newest goes first: an active revision is the last, so that
   * `on_retire` applies to it.
   * @throws ApiProblem `source_state_conflict` unless a revision holds the slot
   */
  async retireSource(sourceId: string, operation: Operation): Promise<SourceView> {
    const { siteId } = await this.#options.store.read(async (tx) =>
      requireRow(await tx.sources.find(sourceId)),
    );
    return this.#options.store.mutate({ kind: 'site', siteId }, async (tx) => {
      const revisions = await tx.sources.revisions(sourceId);
      if (!revisions.some(({ state }) => holdsSlot(state))) {
        const states = revisions.map(({ revision, state }) => `${revision} is ${state}`).join(', ');
        throw new ApiProblem('source_state_conflict', `no revision of the source is in use: ${states}`);
      }
      const joined = { ...this.#options, store: new JoinedStore(tx) };
      const [drafts, lifecycle] = [new SourceDrafts(joined), new SourceLifecycle(joined)];
      for (const revision of revisions.toReversed()) {
        if (isDraft(revision.state)) await drafts.deleteRevision(revision, revision.version, operation);
        else if (holdsSlot(revision.state)) await lifecycle.retire(revision, operation);
      }
      const [first, ...rest] = joined.store.audit;
      const result = await sourceView(tx, requireRow(await tx.sources.find(sourceId)));
      return { result, audit: [requireRow(first), ...rest] };
    });
  }

  async #checkNow(name: RevisionName): Promise<void> {
    const { store, validate } = this.#options;
    const find = () => store.read((tx) => tx.sourceRevisions.find(name.sourceId, name.revision));
    const asked = await find();
    if (asked?.state !== 'activating') return;
    const validation = await validate(asked);
    // Retired meanwhile, or checked by another instance: this result is outdated.
    if (requireRow(await find()).version !== asked.version) return;
    await changeRevision(this.#options, name, BY_CONTROL, async (context, nowMs) => {
      requireVersion(context.row, asked.version);
      if (validation.kind === 'valid' && !(await claimAudience(context))) {
        return failedCheck(context.row, AUDIENCE_TAKEN);
      }
      if (validation.kind === 'invalid') return failedCheck(context.row, validation);
      const state = stateAfter(context.row.state, 'check_passed');
      const findings = await keepFindings(context, validation, nowMs);
      await publishSources(context, nowMs);
      return { verb: 'pass_check', set: { state, awaitedRevision: null, ...findings } };
    });
  }
}

type Valid = Extract<SourceValidation, { readonly kind: 'valid' }>;

/** Stores the key set, for verifying tokens. @returns the columns of a successful validation */
async function keepFindings(
  { tx, row }: RevisionContext,
  { fingerprint, detectedScope, jwks, fetchedAtMs }: Valid,
  nowMs: number,
) {
  await tx.sources.putKeySet({ sourceId: row.sourceId, revision: row.revision, jwks, fetchedAtMs });
  return { fingerprint, detectedScope, validatedAtMs: nowMs, failureCode: null, failureDetail: null };
}

/** Why a check failed: a fault of the issuer, or a problem. */
interface Failure {
  readonly code: string;
  readonly detail: string;
}

const SUSPENDED: Failure = { code: 'source_suspended', detail: 'the source was suspended meanwhile' };

const AUDIENCE_TAKEN: Failure = {
  code: 'audience_taken',
  detail: 'the audience belongs to another Auth Site',
};

function failureOf({ code, detail }: Failure) {
  return { failureCode: code, failureDetail: detail };
}

/** A declared revision was never valid, so it cannot go back to `validated`. */
function failedCheck(row: RowOf<'sourceRevision'>, failure: Failure) {
  const isDeclared = row.validatedAtMs === null;
  const state = stateAfter(row.state, isDeclared ? 'declaration_failed' : 'check_failed');
  const findings = isDeclared ? NOT_VALIDATED : {};
  return { verb: 'fail_check', set: { state, ...findings, ...failureOf(failure) } } as const;
}

async function rejectActivation(
  context: RevisionContext,
  expectedScope: string,
  event: 'activate' | 'declare',
): Promise<void> {
  const { tx, row, source } = context;
  const others = await otherRevisions(context);
  if (isEnded([row, ...others])) {
    throw new ApiProblem('source_state_conflict', 'the source is retired; make another');
  }
  // An operator may replace a suspended revision, but an automated declaration must not end a suspension.
  if (event === 'declare' && others.some(({ state }) => state === 'suspended')) {
    throw stillSuspended();
  }
  const slots = await tx.sources.inStates(source.siteId, SLOT_STATES);
  const site = await tx.sites.find(source.siteId);
  const problem = activationProblem({
    state: row.state,
    event,
    detectedScope: event === 'declare' ? declaredScope(row) : (row.detectedScope ?? undefined),
    expectedScope,
    anotherInProgress: others.some(({ state }) => IN_PROGRESS_STATES.includes(state)),
    sourceHoldsSlot: others.some(({ state }) => holdsSlot(state)),
    slotsUsed: new Set(slots.map(({ sourceId }) => sourceId)).size,
    capacity: site?.sourceCapacity ?? 0,
  });
  if (problem === 'source_scope_mismatch') {
    throw event === 'declare' ? declaredScopeMismatch(declaredScope(row)) : scopeMismatch(row.detectedScope);
  }
  if (problem !== undefined) throw new ApiProblem(problem);
}

export function stillSuspended(): ApiProblem {
  return new ApiProblem('source_state_conflict', 'the source is suspended: resume or retire it first');
}

function scopeMismatch(detected: string | null): ApiProblem {
  const text = detected === null ? 'the source was not validated yet' : `the detected scope is ${detected}`;
  return new ApiProblem('source_scope_mismatch', text);
}

/** @param scope scope of the issuer's URL, because none was detected yet */
export function declaredScopeMismatch(scope: string): ApiProblem {
  const text = `the scope of the source's issuer is ${scope}, which is not the expected one`;
  return new ApiProblem('source_scope_mismatch', text);
}

/** The scope that a validation would detect. @throws ApiProblem `definition_invalid` */
export function declaredScope({ issuer }: Pick<RowOf<'sourceRevision'>, 'issuer'>): string {
  const reading = readIssuerUrl(issuer);
  if (reading.kind === 'url') return scopeOf(reading.url);
  throw new ApiProblem('definition_invalid', `issuer: ${reading.detail}`);
}

/** Claims the audience permanently, and returns whether this site has it: a token for one site must never enroll at another, even after its source is deleted. */
async function claimAudience({ tx, row, source }: RevisionContext): Promise<boolean> {
  await tx.sources.claimAudience(row.audience, source.siteId);
  return (await tx.sources.ownerOfAudience(row.audience)) === source.siteId;
}

function revokeKeys(
  { tx, row, source }: RevisionContext,
  { actor }: Operation,
  nowMs: number,
): Promise<number> {
  return revokeKeysOfSource(tx, source, { by: actor, reason: `source ${row.sourceId}`, nowMs });
}

/** Another revision would open enrollment when it becomes active. @throws ApiProblem `source_revision_in_progress` */
async function rejectOtherInProgress(context: RevisionContext): Promise<void> {
  const other = (await otherRevisions(context)).find(({ state }) => IN_PROGRESS_STATES.includes(state));
  if (other === undefined) return;
  throw new ApiProblem(
    'source_revision_in_progress',
    `revision ${other.revision} is ${other.state}: retire it, or wait until it is active`,
  );
}

/** @returns the audit rows of the other revisions that were or would be in use */
async function stopOthers(
  context: RevisionContext,
  by: Operation,
  nowMs: number,
): Promise<readonly AuditEntry[]> {
  const { tx } = context;
  const entries: AuditEntry[] = [];
  for (const row of await otherRevisions(context)) {
    if (!holdsSlot(row.state) || row.state === 'suspended') continue;
    const { verb, set } =
      row.state === 'activating'
        ? failedCheck(row, SUSPENDED)
        : {
            verb: 'suspend' as const,
            set: { state: stateAfter(row.state, 'suspend'), awaitedRevision: null },
          };
    const after = await tx.sourceRevisions.change(row, { ...set, stateSinceMs: nowMs }, nowMs);
    entries.push(revisionAudit(verb, by, { row, place: context.place }, after));
  }
  return entries;
}

async function otherRevisions({ tx, row }: RevisionContext): Promise<readonly RowOf<'sourceRevision'>[]> {
  const revisions = await tx.sources.revisions(row.sourceId);
  return revisions.filter(({ revision }) => revision !== row.revision);
}
