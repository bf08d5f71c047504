/**
 * Compares a site with a declaration: parses it, reads the site on one snapshot, and plans the steps. It takes no lock,
 * writes nothing, and depends only on a reader, so it can run in a separate thread (`comparison-thread.ts`).
 */
import { hash } from 'node:crypto';
import { compileSerializer, compileValidator, parseJson } from '../../process/http-service/request-shape.ts';
import {
  DECLARATION_RESULT,
  type DeclarationResult,
  SITE_DECLARATION,
  type SiteDeclaration,
} from '../contract/declaration-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { type HeldRole, mayDo, type ScopePath } from '../domain/roles.ts';
import type { RevisionName } from '../sources/source-changes.ts';
import type { Transaction } from '../store/port.ts';
import { type CurrentSite, readCurrentSite } from './current-site.ts';
import { contentsOf, readPublished } from './declared-contents.ts';
import { rejectForeseenFaults } from './foreseen-faults.ts';
import { type PlannedStep, planSite, unnamedMembers } from './plan.ts';
import { rejectFixedChanges, rejectInconsistent, rejectNamesakes, warningsOf } from './plan-checks.ts';

/** Plain data, because it is sent to another thread. */
export interface ComparisonRequest {
  /** JSON. */
  readonly body: Uint8Array;
  /** The site of the path. */
  readonly siteId: string;
  readonly roles: readonly HeldRole[];
  readonly dryRun: boolean;
  readonly prune: boolean;
  /** Whether a dry run also returns what a bundle would contain. */
  readonly contents: boolean;
  /** Control's clock, milliseconds since the epoch. */
  readonly nowMs: number;
  /** The tag of the state on which the declaration is based. */
  readonly ifMatch: string | undefined;
}

/** `tag` identifies Control's state of the site before the steps. Plain data. */
export type Comparison =
  /** A dry run, or nothing to do. `answer`: a {@link DeclarationResult} as JSON. */
  | { readonly kind: 'compared'; readonly answer: Uint8Array; readonly tag: string }
  | { readonly kind: 'planned'; readonly plan: DeclarationPlan; readonly tag: string };

/** Input for applying: the steps, and the state of the site from which they start. */
export interface DeclarationPlan {
  readonly existed: boolean;
  /** Names of the declared environment and fleet. */
  readonly place: { readonly environment: string; readonly fleet: string };
  readonly environmentId: string | undefined;
  readonly fleetId: string | undefined;
  readonly steps: readonly PlannedStep[];
  /** The revision of each source that exists, by name. */
  readonly revisions: ReadonlyMap<string, RevisionName>;
  /** The result without the members that applying adds. */
  readonly result: DeclarationResult;
}

/** Compares in the calling thread. */
export function compareIn(reader: SnapshotReader): Comparer {
  return { compare: (request) => compareDeclaration(reader, request) };
}

export interface Comparer {
  /**
   * @param signal drops a comparison that has not begun
   * @throws RequestShapeError; ApiProblem `request_malformed`, `member_fixed`, `broker_keys_differ`, `precondition_required`,
   *   `precondition_failed`, `permission_denied`, `request_too_large`, `definition_invalid` and others that the steps would throw
   */
  compare(request: ComparisonRequest, signal?: AbortSignal): Promise<Comparison>;
}

/** Reads on one snapshot. */
export interface SnapshotReader {
  read<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
}

/**
 * Maximum number of steps of one apply. They are one transaction, which blocks revocations of the site and, on SQLite,
 * every write.
 */
export const MAX_STEPS = 10_000;
/** Maximum number of those steps that run one by one: all except clients, grants, routes and route sources. */
export const MAX_SINGLE_STEPS = 500;

const validate = compileValidator({ schema: SITE_DECLARATION, httpPart: 'body' });
const serialize = compileSerializer({ schema: DECLARATION_RESULT });

export async function compareDeclaration(
  reader: SnapshotReader,
  request: ComparisonRequest,
): Promise<Comparison> {
  const { dryRun, prune, roles, siteId } = request;
  const nowSeconds = Math.floor(request.nowMs / 1000);
  const declaration = parseDeclaration(request);
  const { current, published } = await reader.read(async (tx) => ({
    current: await readCurrentSite(tx, declaration),
    published: dryRun && request.contents ? await readPublished(tx, siteId, nowSeconds) : undefined,
  }));
  const place = placeOf(current, siteId);
  if (!mayDo(roles, 'read', place)) throw new ApiProblem('not_found');
  rejectNamesakes(current);
  const tag = tagOf(current);
  rejectOtherTag(request, current, tag);
  rejectFixedChanges(declaration, current);
  const unnamed = unnamedMembers(declaration, current);
  const steps = planSite(declaration, current, prune ? unnamed : []);
  const forbidden = steps.find(({ permission }) => !mayDo(roles, permission, place));
  if (forbidden !== undefined && !dryRun) throw permissionDenied(forbidden);
  if (!dryRun) rejectTooMany(steps);
  // An error may reveal more about the site than its reader may know.
  if (forbidden === undefined) await rejectForeseenFaults(declaration, current, steps, nowSeconds);
  const result = {
    ...resultOf(request, declaration, current, steps),
    unnamed: unnamed.filter(({ kind }) => !prune || kind === 'target'),
    ...(published === undefined
      ? {}
      : { contents: contentsOf(published, declaration, current, steps, nowSeconds) }),
  };
  if (dryRun || steps.length === 0) {
    return { kind: 'compared', answer: Buffer.from(serialize(result)), tag };
  }
  const { environmentId, fleetId, sources } = current;
  const revisions = new Map<string, RevisionName>();
  for (const [name, { compared }] of sources) {
    revisions.set(name, { sourceId: compared.sourceId, revision: compared.revision });
  }
  const { environment, fleet } = declaration;
  const existed = current.site !== undefined;
  const base = { existed, place: { environment, fleet }, environmentId, fleetId };
  return { kind: 'planned', plan: { ...base, steps, revisions, result }, tag };
}

function parseDeclaration({ body, siteId }: ComparisonRequest): SiteDeclaration {
  const checked = validate(parseJson(body));
  if ('error' in checked) throw checked.error;
  const declaration = checked.value as SiteDeclaration;
  if (declaration.site.site_id !== siteId) {
    const faults = [{ pointer: '/body/site/site_id', reason: 'must be the site of the path' }];
    throw new ApiProblem('request_malformed', undefined, { faults });
  }
  rejectInconsistent(declaration);
  return declaration;
}

function rejectOtherTag({ dryRun, ifMatch }: ComparisonRequest, { site }: CurrentSite, tag: string): void {
  if (!dryRun && ifMatch === undefined && site !== undefined) throw new ApiProblem('precondition_required');
  if (ifMatch !== undefined && ifMatch !== tag) throw new ApiProblem('precondition_failed');
}

/** Kinds whose steps are written many at once. */
const WRITTEN_TOGETHER: ReadonlySet<string> = new Set(['client', 'grant', 'route', 'route_sources']);

/** @throws ApiProblem `request_too_large` */
function rejectTooMany(steps: readonly PlannedStep[]): void {
  const single = steps.filter(({ kind }) => !WRITTEN_TOGETHER.has(kind)).length;
  const advice = 'apply parts of the declaration, one after the other';
  if (steps.length > MAX_STEPS) {
    const counts = `the declaration needs ${steps.length} steps, at most ${MAX_STEPS} can be applied at once`;
    throw new ApiProblem('request_too_large', `${counts}: ${advice}`);
  }
  if (single > MAX_SINGLE_STEPS) {
    const kinds = [...WRITTEN_TOGETHER].join(', ');
    const counts = `the declaration needs ${single} steps of kinds other than ${kinds}, at most ${MAX_SINGLE_STEPS} can be applied at once`;
    throw new ApiProblem('request_too_large', `${counts}: ${advice}`);
  }
}

function resultOf(
  { dryRun }: ComparisonRequest,
  declaration: SiteDeclaration,
  current: CurrentSite,
  steps: readonly PlannedStep[],
): Omit<DeclarationResult, 'unnamed'> {
  return {
    site_id: declaration.site.site_id,
    dry_run: dryRun,
    steps: steps.map(({ call: _, ...step }) => step),
    warnings: warningsOf(declaration, current),
    activating: dryRun ? [] : alreadyActivating(declaration, current),
    tokens: [],
  };
}

function alreadyActivating(
  { sources = [] }: SiteDeclaration,
  current: CurrentSite,
): DeclarationResult['activating'] {
  return sources.flatMap(({ name }) => {
    const row = current.sources.get(name)?.compared;
    if (row?.state !== 'activating' && row?.state !== 'publishing') return [];
    return [{ source_id: row.sourceId, revision: row.revision, name, state: row.state }];
  });
}

/** The place of the site, or the lowest one above it that exists. */
function placeOf({ environmentId, fleetId, site }: CurrentSite, siteId: string): ScopePath {
  return {
    ...(environmentId === undefined ? {} : { environmentId }),
    ...(fleetId === undefined ? {} : { fleetId }),
    ...(site === undefined ? {} : { siteId }),
  };
}

/** The error for a missing permission, which names the step and the permission. */
function permissionDenied({ verb, kind, name, permission }: PlannedStep): ApiProblem {
  return new ApiProblem('permission_denied', `${verb} ${kind} ${name} requires the permission ${permission}`);
}

/**
 * A strong entity tag of everything that a declaration can change. It covers rows by their versions. Sources and
 * policies also change by themselves, so it covers their members that can be declared.
 */
function tagOf(current: CurrentSite): string {
  const rows = (records: ReadonlyMap<string, { readonly version: number; readonly updatedAtMs: number }>) =>
    [...records].map(([name, { version, updatedAtMs }]) => [name, version, updatedAtMs]);
  const { site, environmentId, fleetId, sources, policies } = current;
  const text = JSON.stringify([
    [environmentId ?? null, fleetId ?? null, site?.uid ?? null, site?.version ?? null],
    rows(current.brokers),
    rows(current.oauthIssuers),
    rows(current.clients),
    [...current.grants].map(([client, grants]) => [
      client,
      [...grants].map(([name, { access }]) => [name, access]),
    ]),
    rows(current.routes),
    rows(current.routeSources),
    [...sources].map(([name, { row, compared }]) => [
      ...[name, row.id, row.version, compared.revision],
      ...[compared.issuer, compared.jwksUri, compared.audience, compared.discovery],
    ]),
    [...policies].map(([name, row]) => [
      ...[name, row.id, row.approval, row.maxKeyLifetimeSeconds, row.maxKeysPerToken, row.clientId],
    ]),
    [...current.targets].map(([name, { id }]) => [name, id]),
  ]);
  return `"${hash('sha256', text, 'base64url')}"`;
}
