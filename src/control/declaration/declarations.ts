/**
 * Declarations: compare a site with what an operator declares, and apply all differences in one transaction, or none.
 * Source: docs/control.md "Declarations".
 */
import { hash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { DeclarationResult, SiteDeclaration } from '../../api-contract/declaration-contract.ts';
import type { CreateSiteKeys } from '../configuration/sites.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { type HeldRole, mayDo, type ScopePath } from '../domain/roles.ts';
import { about, INSTALLATION_LOCK, type SiteCheck } from '../resource/change.ts';
import type { Operation } from '../resource/operation.ts';
import type { RevisionName } from '../sources/source-changes.ts';
import type { SourceLifecycle } from '../sources/source-lifecycle.ts';
import type { ControlStore, Mutated, Transaction } from '../store/port.ts';
import { type CurrentSite, readCurrentSite } from './current-site.ts';
import { DeclarationRun } from './declaration-run.ts';
import { type PlannedStep, planSite, unnamedMembers } from './plan.ts';
import { rejectFixedChanges, rejectInconsistent, rejectNamesakes, warningsOf } from './plan-checks.ts';

export interface DeclarationsDeps {
  readonly store: ControlStore;
  readonly nowMs: () => number;
  readonly siteCheck: SiteCheck;
  readonly createSiteKeys: CreateSiteKeys;
  /** Continues activations in the background. */
  readonly lifecycle: Pick<SourceLifecycle, 'check'>;
}

export interface DeclarationRequest {
  readonly operation: Operation;
  readonly roles: readonly HeldRole[];
  readonly declaration: SiteDeclaration;
  readonly dryRun: boolean;
  readonly prune: boolean;
  /** The tag of what the declaration is based on. */
  readonly ifMatch: string | undefined;
}

export interface Declared {
  readonly result: DeclarationResult;
  /** Names what Control holds of the site, before the steps. */
  readonly tag: string;
}

export class Declarations {
  readonly #deps: DeclarationsDeps;

  constructor(deps: DeclarationsDeps) {
    this.#deps = deps;
  }

  /**
   * @throws ApiProblem `request_malformed`, `member_fixed`, `broker_keys_differ`, `precondition_required`,
   *   `precondition_failed`, `permission_denied`, and what the operations of the steps throw
   */
  async apply(request: DeclarationRequest): Promise<Declared> {
    rejectInconsistent(request.declaration);
    const { store, lifecycle } = this.#deps;
    const compared = await store.read((tx) => compare(tx, request));
    // Without a step that can be tried, no lock is taken.
    if (compared.steps.length === 0 || !compared.mayApply) return declaredOf(request, compared);
    const exists = compared.current.site !== undefined;
    const siteId = request.declaration.site.site_id;
    const lock = exists ? ({ kind: 'site', siteId } as const) : INSTALLATION_LOCK;
    const { declared, started } = await store
      .mutate(lock, (tx) => this.#run(tx, request, exists))
      .catch((error: unknown) => {
        if (error instanceof RolledBack) return { declared: error.declared, started: [] };
        throw error;
      });
    for (const name of started) void lifecycle.check(name);
    return declared;
  }

  /** @throws RolledBack */
  async #run(
    tx: Transaction,
    request: DeclarationRequest,
    existed: boolean,
  ): Promise<Mutated<{ readonly declared: Declared; readonly started: readonly RevisionName[] }>> {
    const { declaration, dryRun, operation } = request;
    const compared = await compare(tx, request, existed);
    const { current, steps, mayApply } = compared;
    const run = new DeclarationRun({
      ...this.#deps,
      ...{ tx, operation, current, siteId: declaration.site.site_id },
      nowMs: this.#deps.nowMs(),
    });
    // Permissions are missing only in a dry run, when the site changed after the first comparison.
    if (mayApply) await runSteps(steps, run);
    const { result, tag } = declaredOf(request, compared);
    const [first, ...rest] = run.audit;
    if (dryRun || first === undefined) throw new RolledBack({ result, tag });
    const outcome = { activating: activating(declaration, current, run.activated), tokens: run.tokens };
    const declared = { result: { ...result, ...outcome }, tag };
    return { result: { declared, started: run.activated }, audit: [first, ...rest] };
  }
}

interface Compared {
  readonly current: CurrentSite;
  readonly tag: string;
  readonly steps: readonly PlannedStep[];
  /** Whether the caller has the permission of every step. */
  readonly mayApply: boolean;
}

/**
 * Reads the site, checks the request against it, and plans the steps.
 * @param existed whether the site existed when the lock was chosen
 * @throws ApiProblem as {@link Declarations.apply}
 */
async function compare(tx: Transaction, request: DeclarationRequest, existed?: boolean): Promise<Compared> {
  const { declaration, roles, dryRun, prune, ifMatch } = request;
  const siteId = declaration.site.site_id;
  const current = await readCurrentSite(tx, declaration);
  const place = placeOf(current, siteId);
  if (!mayDo(roles, 'read', place)) throw new ApiProblem('not_found');
  // Created while this request waited for the lock of the installation, which does not hold the site.
  if (existed === false && current.site !== undefined) throw new ApiProblem('precondition_failed');
  rejectNamesakes(current);
  const tag = tagOf(current);
  if (!dryRun && ifMatch === undefined && current.site !== undefined) {
    throw new ApiProblem('precondition_required');
  }
  if (ifMatch !== undefined && ifMatch !== tag) throw new ApiProblem('precondition_failed');
  rejectFixedChanges(declaration, current);
  const steps = planSite(declaration, current, prune);
  const forbidden = steps.find(({ permission }) => !mayDo(roles, permission, place));
  if (forbidden !== undefined && !dryRun) throw permissionDenied(forbidden);
  return { current, tag, steps, mayApply: forbidden === undefined };
}

/** The result, as without steps. */
function declaredOf(
  { declaration, dryRun, prune }: DeclarationRequest,
  { current, steps, tag }: Compared,
): Declared {
  const result: DeclarationResult = {
    site_id: declaration.site.site_id,
    dry_run: dryRun,
    steps: steps.map(({ run: _, ...step }) => step),
    unnamed: unnamedMembers(declaration, current).filter(({ kind }) => !prune || kind === 'target'),
    warnings: warningsOf(declaration, current),
    activating: dryRun ? [] : activating(declaration, current, []),
    tokens: [],
  };
  return { result, tag };
}

/** Rolls the transaction back: it has changed nothing, or was only tried. */
class RolledBack extends Error {
  readonly declared: Declared;

  constructor(declared: Declared) {
    super('rolled back');
    this.declared = declared;
  }
}

/** The place of the site, or the lowest one above it that exists. */
function placeOf({ environmentId, fleetId, site }: CurrentSite, siteId: string): ScopePath {
  return {
    ...(environmentId === undefined ? {} : { environmentId }),
    ...(fleetId === undefined ? {} : { fleetId }),
    ...(site === undefined ? {} : { siteId }),
  };
}

/** Names step and permission. */
function permissionDenied({ verb, kind, name, permission }: PlannedStep): ApiProblem {
  return new ApiProblem('permission_denied', `${verb} ${kind} ${name} requires the permission ${permission}`);
}

/** SQLite runs in the event loop's thread: other work gets a turn after so many steps. */
const STEPS_A_TURN = 100;

async function runSteps(steps: readonly PlannedStep[], run: DeclarationRun): Promise<void> {
  for (const [index, step] of steps.entries()) {
    if (index % STEPS_A_TURN === STEPS_A_TURN - 1) await nextTurn();
    // Its client may not be written yet.
    if (step.kind === 'enrollment_policy') await run.writeCreated();
    await runStep(step, run);
  }
  await run.finish();
}

/** Names the step in what it throws. */
async function runStep({ verb, kind, name, run }: PlannedStep, to: DeclarationRun): Promise<void> {
  try {
    await run(to);
  } catch (error) {
    throw about(`${verb} ${kind} ${name}`, error);
  }
}

function activating(
  declaration: SiteDeclaration,
  { sources }: CurrentSite,
  activated: DeclarationRun['activated'],
): DeclarationResult['activating'] {
  const begun = new Map(activated.map((each) => [each.name, each]));
  return (declaration.sources ?? []).flatMap(({ name }) => {
    const now = begun.get(name);
    if (now !== undefined) {
      return [{ source_id: now.sourceId, revision: now.revision, name, state: 'activating' as const }];
    }
    const row = sources.get(name)?.compared;
    if (row?.state !== 'activating' && row?.state !== 'publishing') return [];
    return [{ source_id: row.sourceId, revision: row.revision, name, state: row.state }];
  });
}

/**
 * A strong entity tag of what a declaration can change. Versions stand for rows. Sources and policies also change by
 * themselves, so they count by what can be declared.
 */
function tagOf(current: CurrentSite): string {
  const rows = (records: ReadonlyMap<string, { readonly version: number; readonly updatedAtMs: number }>) =>
    [...records].map(([name, { version, updatedAtMs }]) => [name, version, updatedAtMs]);
  const { site, environmentId, fleetId, sources, policies } = current;
  const text = JSON.stringify([
    [environmentId ?? null, fleetId ?? null, site?.uid ?? null, site?.version ?? null],
    rows(current.brokers),
    rows(current.clients),
    [...current.grants].map(([client, grants]) => [client, [...grants]]),
    rows(current.routes),
    rows(current.routeSources),
    [...sources].map(([name, { row, compared }]) => [
      ...[name, row.id, row.version, compared.revision],
      ...[compared.issuer, compared.jwksUri, compared.audience],
    ]),
    [...policies].map(([name, row]) => [
      ...[name, row.id, row.approval, row.maxKeyLifetimeSeconds, row.maxKeysPerToken, row.clientId],
    ]),
    [...current.targets].map(([name, { id }]) => [name, id]),
  ]);
  return `"${hash('sha256', text, 'base64url')}"`;
}
