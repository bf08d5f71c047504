/**
 * Declarations: compares a site with an operator's declaration and applies either all differences, in one transaction,
 * or none. It compares on a snapshot. Under the lock it only checks that the comparison is still valid, and writes.
 * Source: docs/operate/control-api.md "Declarations".
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { CreateSiteKeys } from '../configuration/sites.ts';
import type { DeclarationResult } from '../contract/declaration-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { INSTALLATION_LOCK, type SiteCheck, withName } from '../resource/change.ts';
import type { Operation } from '../resource/operation.ts';
import type { RevisionName } from '../sources/source-changes.ts';
import type { SourceLifecycle } from '../sources/source-lifecycle.ts';
import { type ControlStore, type Mutated, type Transaction, UnknownSiteError } from '../store/port.ts';
import type { Comparer, ComparisonRequest, DeclarationPlan } from './comparison.ts';
import { DeclarationRun, runCall } from './declaration-run.ts';
import type { PlannedStep } from './plan.ts';

export interface DeclarationsDeps {
  readonly store: ControlStore;
  readonly comparer: Comparer;
  readonly nowMs: () => number;
  readonly siteCheck: SiteCheck;
  readonly createSiteKeys: CreateSiteKeys;
  /** Continues activations in the background. */
  readonly lifecycle: Pick<SourceLifecycle, 'check'>;
}

export interface DeclarationRequest extends Omit<ComparisonRequest, 'nowMs'> {
  readonly operation: Operation;
  /** Aborts a declaration that has not begun. */
  readonly signal?: AbortSignal;
}

export type Declared =
  /** `tag` identifies Control's state of the site. `answer` is a {@link DeclarationResult} as JSON. */
  | { readonly kind: 'compared'; readonly answer: Uint8Array; readonly tag: string }
  | { readonly kind: 'applied'; readonly result: DeclarationResult };

/** Maximum number of comparisons for one request; all but the last were outdated when the lock was taken. */
const MAX_COMPARISONS = 3;

/** Resources with audit events of a site that no declaration compares. */
const NEVER_DECLARED = ['enrollment', 'derived_key', 'blocked_subject', 'blocked_caller', 'signing_key'];

export class Declarations {
  readonly #deps: DeclarationsDeps;
  /** The end of the last apply. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(deps: DeclarationsDeps) {
    this.#deps = deps;
  }

  /** @throws ApiProblem as {@link Comparer.compare}, and the errors of the steps' operations */
  async apply({ operation, signal, ...asked }: DeclarationRequest): Promise<Declared> {
    const { comparer, nowMs } = this.#deps;
    const request = { ...asked, nowMs: nowMs() };
    if (request.dryRun) return this.#compared(await comparer.compare(request, signal));
    for (let round = 0; round < MAX_COMPARISONS; round++) {
      const seq = await this.#newestEvent(request.siteId);
      const comparison = await comparer.compare(request, signal);
      if (comparison.kind === 'compared') return comparison;
      const { plan } = comparison;
      const applied = await this.#inTurn(() => this.#apply(request.siteId, operation, plan, seq));
      if (applied === undefined) continue;
      for (const name of applied.started) void this.#deps.lifecycle.check(name);
      return { kind: 'applied', result: applied.result };
    }
    throw new ApiProblem('precondition_failed');
  }

  #compared(comparison: Awaited<ReturnType<Comparer['compare']>>): Declared {
    if (comparison.kind === 'planned') throw new Error('a dry run is not applied');
    return comparison;
  }

  /**
   * The newest event of the site, undefined without the site. Read under the site's lock: its numbers then follow the order of
   * commits.
   */
  #newestEvent(siteId: string): Promise<number | undefined> {
    return this.#deps.store
      .writeUnaudited({ kind: 'site', siteId }, (tx) => tx.audit.newestSeqOf(siteId))
      .catch((error: unknown) => {
        if (error instanceof UnknownSiteError) return undefined;
        throw error;
      });
  }

  /** Declarations run one after the other, so that other transactions can use the database between them. */
  #inTurn<T>(apply: () => Promise<T>): Promise<T> {
    const applied = this.#turn.then(apply);
    this.#turn = applied.catch(() => undefined).then(() => nextTurn());
    return applied;
  }

  /** @returns undefined when the site has changed since it was compared */
  async #apply(
    siteId: string,
    operation: Operation,
    plan: DeclarationPlan,
    seq: number | undefined,
  ): Promise<Applied | undefined> {
    const lock = plan.existed ? ({ kind: 'site', siteId } as const) : INSTALLATION_LOCK;
    try {
      return await this.#deps.store.mutate(lock, async (tx) => {
        if (!(await isCurrent(tx, siteId, plan, seq))) throw new ChangedMeanwhile();
        return this.#run(tx, siteId, operation, plan);
      });
    } catch (error) {
      if (error instanceof ChangedMeanwhile) return undefined;
      throw error;
    }
  }

  async #run(
    tx: Transaction,
    siteId: string,
    operation: Operation,
    { steps, result, ...start }: DeclarationPlan,
  ): Promise<Mutated<Applied>> {
    const nowMs = this.#deps.nowMs();
    const run = new DeclarationRun({ ...this.#deps, ...start, tx, operation, siteId, nowMs });
    await runSteps(steps, run);
    const [first, ...rest] = run.audit;
    if (first === undefined) throw new Error('steps without an audit event');
    const { tokens, activated: started } = run;
    return {
      result: { result: { ...result, activating: activating(result, steps, started), tokens }, started },
      audit: [first, ...rest],
    };
  }
}

interface Applied {
  readonly result: DeclarationResult;
  readonly started: readonly RevisionName[];
}

/** Rolls the transaction back, which has changed nothing. */
class ChangedMeanwhile extends Error {}

/** Whether the site is unchanged since the comparison. Every change of what can be declared has an audit event. */
async function isCurrent(
  tx: Transaction,
  siteId: string,
  { existed, place, environmentId, fleetId }: DeclarationPlan,
  seq: number | undefined,
): Promise<boolean> {
  if (existed) return seq !== undefined && !(await tx.audit.hasAfter(siteId, seq, NEVER_DECLARED));
  if ((await tx.sites.find(siteId)) !== undefined) return false;
  const environment = await tx.hierarchy.environmentByName(place.environment);
  const fleet = environment && (await tx.hierarchy.fleetByName(environment.id, place.fleet));
  return environment?.id === environmentId && fleet?.id === fleetId;
}

async function runSteps(steps: readonly PlannedStep[], run: DeclarationRun): Promise<void> {
  for (const step of steps) {
    // Its client may not be written yet. Observed routes do not wait for targets that are new: a verifier that does not know them
    // takes a bundle without them.
    if (step.kind === 'enrollment_policy' || step.kind === 'target') await run.writeMany();
    await runStep(step, run);
  }
  await run.finish();
}

/** Runs a step and names it in errors. */
async function runStep({ verb, kind, name, call }: PlannedStep, run: DeclarationRun): Promise<void> {
  try {
    await runCall(run, call);
  } catch (error) {
    throw withName(`${verb} ${kind} ${name}`, error);
  }
}

/** Sources that were already activating, unless they begin again, and those that begin now. */
function activating(
  { activating: before }: DeclarationResult,
  steps: readonly PlannedStep[],
  started: DeclarationRun['activated'],
): DeclarationResult['activating'] {
  const begun = new Set(steps.filter(({ verb }) => verb === 'activate').map(({ name }) => name));
  return [
    ...before.filter(({ name }) => !begun.has(name)),
    ...started.map(({ sourceId, revision, name }) => ({
      source_id: sourceId,
      revision,
      name,
      state: 'activating' as const,
    })),
  ];
}
