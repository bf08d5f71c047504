/**
 * Activates source revisions: takes the slot and claims the audience in one transaction, then validates the metadata
 * again. `source-jobs.ts` repeats a check that was interrupted, for example by a restart.
 * Source: specification "States and transitions"; docs/control.md "Trust Anchor Source".
 */

import type { SourceRevisionView } from '../../api-contract/sources-contract.ts';
import type { SourceState } from '../../api-contract/vocabulary.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { activationProblem, holdsSlot } from '../domain/source-states.ts';
import type { SourceValidation } from '../issuers/validate-source.ts';
import { BY_CONTROL, found } from '../resource/change.ts';
import type { Operation } from '../resource/operation.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import {
  changeRevision,
  isEnded,
  mutateRevision,
  noteForPublishing,
  type RevisionInHand,
  type RevisionName,
  revisionAudit,
  stateAfter,
} from './source-changes.ts';
import { findings, keepKeySet, type ValidateSource } from './source-validation.ts';
import { revisionView } from './source-views.ts';

const SLOT_STATES = ['activating', 'publishing', 'active', 'suspended'] as const satisfies SourceState[];
const UNDER_WAY: readonly SourceState[] = ['activating', 'publishing'];

export class SourceActivation {
  readonly #store: ControlStore;
  readonly #nowMs: () => number;
  readonly #validate: ValidateSource;
  readonly #report: (error: unknown) => void;
  readonly #checks = new Map<string, Promise<void>>();

  /** @param report receives errors of unfinished checks, which are repeated later */
  constructor(
    store: ControlStore,
    nowMs: () => number,
    validate: ValidateSource,
    report: (error: unknown) => void,
  ) {
    this.#store = store;
    this.#nowMs = nowMs;
    this.#validate = validate;
    this.#report = report;
  }

  /**
   * Takes the slot and starts the check without waiting for it.
   * @throws ApiProblem `source_state_conflict`, `source_scope_mismatch`, `source_revision_in_progress`,
   *   `source_capacity_exhausted`, `audience_taken`
   */
  async activate(
    name: RevisionName,
    expectedScope: string,
    operation: Operation,
  ): Promise<SourceRevisionView> {
    const view = await mutateRevision(this.#store, name, async (hand) => {
      await rejectActivation(hand, expectedScope);
      await claimAudience(hand);
      const state = stateAfter(hand.row.state, 'activate');
      const set = { state, failureCode: null, failureDetail: null, awaitedRevision: null };
      const after = await changeRevision(hand, set, this.#nowMs());
      return { result: revisionView(after), audit: [revisionAudit('activate', operation, hand, after)] };
    });
    void this.check(name);
    return view;
  }

  /** Runs one check at a time per revision. Never rejects; errors go to `report`. */
  check(name: RevisionName): Promise<void> {
    const key = `${name.sourceId}/${name.revision}`;
    const underWay = this.#checks.get(key);
    if (underWay !== undefined) return underWay;
    const check = this.#checkNow(name)
      .catch((error: unknown) => this.#report(error))
      .finally(() => this.#checks.delete(key));
    this.#checks.set(key, check);
    return check;
  }

  /** Repeats the check of every revision that has been activating for longer than this. */
  async checkStranded(olderThanMs: number): Promise<void> {
    const rows = await this.#store.read((tx) => tx.sources.everywhereInStates(['activating']));
    const stranded = rows.filter(({ stateSinceMs }) => this.#nowMs() - stateSinceMs >= olderThanMs);
    await Promise.all(stranded.map((row) => this.check(row)));
  }

  /** Resolves when no check is running. */
  async settled(): Promise<void> {
    while (this.#checks.size > 0) await Promise.all(this.#checks.values());
  }

  async #checkNow(name: RevisionName): Promise<void> {
    const asked = await this.#store.read((tx) => tx.sourceRevisions.find(name.sourceId, name.revision));
    if (asked?.state !== 'activating') return;
    const validation = agreeing(asked, await this.#validate(asked));
    // Retired meanwhile, or checked by another instance: this result is outdated.
    const isCurrent = await this.#store.read(async (tx) =>
      isSame(found(await tx.sourceRevisions.find(name.sourceId, name.revision)), asked),
    );
    if (!isCurrent) return;
    await mutateRevision(this.#store, name, async (hand) => {
      if (!isSame(hand.row, asked)) throw new ApiProblem('precondition_failed');
      const after = await this.#settle(hand, validation);
      const verb = validation.kind === 'valid' ? 'pass_check' : 'fail_check';
      return { result: undefined, audit: [revisionAudit(verb, BY_CONTROL, hand, after)] };
    });
  }

  async #settle(hand: RevisionInHand, validation: SourceValidation): Promise<RowOf<'sourceRevision'>> {
    const nowMs = this.#nowMs();
    if (validation.kind === 'invalid') {
      const state = stateAfter(hand.row.state, 'check_failed');
      const { code, detail } = validation;
      return changeRevision(hand, { state, failureCode: code, failureDetail: detail }, nowMs);
    }
    const state = stateAfter(hand.row.state, 'check_passed');
    await keepKeySet(hand, validation);
    await noteForPublishing(hand, nowMs);
    return changeRevision(hand, { state, awaitedRevision: null, ...findings(validation, nowMs) }, nowMs);
  }
}

function isSame(now: RowOf<'sourceRevision'>, asked: RowOf<'sourceRevision'>): boolean {
  return now.version === asked.version;
}

/** The operator agreed to one scope, so a valid source with another scope fails. */
function agreeing(asked: RowOf<'sourceRevision'>, validation: SourceValidation): SourceValidation {
  if (validation.kind === 'invalid' || validation.detectedScope === asked.detectedScope) return validation;
  return { kind: 'invalid', code: 'discovery_issuer_mismatch', detail: 'the detected scope has changed' };
}

async function rejectActivation({ tx, row, source }: RevisionInHand, expectedScope: string): Promise<void> {
  const revisions = await tx.sources.revisions(source.id);
  if (isEnded(revisions))
    throw new ApiProblem('source_state_conflict', 'the source is retired; make another');
  const others = revisions.filter(({ revision }) => revision !== row.revision);
  const slots = await tx.sources.inStates(source.siteId, SLOT_STATES);
  const site = await tx.sites.find(source.siteId);
  const problem = activationProblem({
    state: row.state,
    detectedScope: row.detectedScope ?? undefined,
    expectedScope,
    anotherInProgress: others.some(({ state }) => UNDER_WAY.includes(state)),
    sourceHoldsSlot: others.some(({ state }) => holdsSlot(state)),
    slotsUsed: new Set(slots.map(({ sourceId }) => sourceId)).size,
    capacity: site?.sourceCapacity ?? 0,
  });
  if (problem === 'source_scope_mismatch') {
    throw new ApiProblem(problem, `the detected scope is ${row.detectedScope ?? 'unknown'}`);
  }
  if (problem !== undefined) throw new ApiProblem(problem);
}

/** Claims the audience permanently: a token for one site must never enroll at another, even after its source is deleted. */
async function claimAudience({ tx, row, source }: RevisionInHand): Promise<void> {
  await tx.sources.claimAudience(row.audience, source.siteId);
  const owner = await tx.sources.ownerOfAudience(row.audience);
  if (owner !== source.siteId) throw new ApiProblem('audience_taken');
}
