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
import type { ControlStore, Transaction } from '../store/port.ts';
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
    const siteId = request.declaration.site.site_id;
    const { store, lifecycle } = this.#deps;
    if (request.dryRun) {
      const compared = await store.read((tx) => compare(tx, request));
      const triesNothing = compared.steps.length === 0 || !compared.mayApply;
      if (triesNothing) return declaredOf(request, compared);
    }
    const exists = (await store.read((tx) => tx.sites.find(siteId))) !== undefined;
    const lock = exists ? ({ kind: 'site', siteId } as const) : INSTALLATION_LOCK;
    const activated: RevisionName[] = [];
    try {
      return await store.mutate(lock, async (tx) => {
        const { audit, started, ...declared } = await this.#inside(tx, request, exists);
        const [first, ...rest] = audit;
        if (request.dryRun || first === undefined) throw new NothingKept(declared);
        activated.splice(0, Infinity, ...started);
        return { result: declared, audit: [first, ...rest] };
      });
    } catch (error) {
      if (error instanceof NothingKept) return error.declared;
      throw error;
    } finally {
      for (const { sourceId, revision } of activated) void lifecycle.check({ sourceId, revision });
    }
  }

  async #inside(tx: Transaction, request: DeclarationRequest, existed: boolean) {
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
    const outcome = { activating: activating(declaration, current, run), tokens: run.tokens };
    return {
      ...{ result: dryRun ? result : { ...result, ...outcome }, tag },
      ...{ audit: run.audit, started: run.activated },
    };
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

/** The answer, without the outcome of the steps. */
function declaredOf(
  { declaration, dryRun, prune }: DeclarationRequest,
  { current, steps, tag }: Compared,
): Declared {
  const result = {
    site_id: declaration.site.site_id,
    dry_run: dryRun,
    steps: steps.map(({ run: _, ...step }) => step),
    unnamed: unnamedMembers(declaration, current).filter(({ kind }) => !prune || kind === 'target'),
    warnings: warningsOf(declaration, current),
    activating: [],
    tokens: [],
  };
  return { result, tag };
}

/** Rolls the transaction back: it has changed nothing, or was only tried. */
class NothingKept extends Error {
  readonly declared: Declared;

  constructor(declared: Declared) {
    super('nothing is kept');
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
  { activated }: DeclarationRun,
): DeclarationResult['activating'] {
  const begun = new Map(activated.map((each) => [each.name, each]));
  return (declaration.sources ?? []).flatMap(({ name }) => {
    const now = begun.get(name);
    if (now !== undefined) {
      return [{ source_id: now.sourceId, revision: now.revision, name, state: 'activating' as const }];
    }
    const newest = sources.get(name)?.newest;
    if (newest?.state !== 'activating' && newest?.state !== 'publishing') return [];
    return [{ source_id: newest.sourceId, revision: newest.revision, name, state: newest.state }];
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
    [...sources].map(([name, { row, newest }]) => [
      ...[name, row.id, row.version, newest.revision, newest.issuer, newest.jwksUri, newest.audience],
    ]),
    [...policies].map(([name, row]) => [
      ...[name, row.id, row.approval, row.maxKeyLifetimeSeconds, row.maxKeysPerToken, row.clientId],
    ]),
    [...current.targets].map(([name, { id }]) => [name, id]),
  ]);
  return `"${hash('sha256', text, 'base64url')}"`;
}
