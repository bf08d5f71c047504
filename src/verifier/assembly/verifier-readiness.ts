/**
 * Readiness of the verifier for `/readyz` and the gRPC health service: each problem, and how to fix it.
 * Each text is a row in docs/operate/run-book.md "A request is denied".
 */

import { isBreakGlassInForce, whyIgnored } from '../../bundle/compile/break-glass-statement.ts';
import type { BreakGlassStatement, FreshnessGroup, Snapshot } from '../../bundle/compile/snapshot.ts';
import type { LoadedBundle, ReadinessCheck } from '../../process/admin/admin-server.ts';
import { formatTime } from '../../protocol/rfc3339.ts';
import { hasEnded, hasStarted } from '../../protocol/validity.ts';
import { mostAgeSeconds, staleGroups } from '../decision/steps/freshness.ts';
import type { BreakGlassStatus } from '../loading/break-glass-file.ts';
import type { BundleStatus } from '../loading/bundle-loader.ts';
import type { RefreshStatus } from '../loading/refresh/refresher.ts';
import type { ObservationStatus } from '../observation/observations.ts';
import type { AuditHealth } from './open-audit.ts';
import type { VerifierStatus } from './open-verifier.ts';

export interface ReadinessInputs extends VerifierStatus {
  /** Whether shutdown has begun. */
  readonly leaving: boolean;
}

export function verifierReadiness(inputs: ReadinessInputs): readonly ReadinessCheck[] {
  const { bundle, leaving, replay } = inputs;
  return [
    bundleCheck(bundle),
    freshnessCheck(bundle, inputs.realtimeStalenessSeconds),
    ...(inputs.breakGlass === undefined ? [] : [breakGlassCheck(inputs.breakGlass, bundle)]),
    ...(inputs.refresh === undefined ? [] : [controlCheck(inputs.refresh)]),
    replay.ready
      ? { name: 'replay_store', problem: undefined, warning: replay.warning }
      : { name: 'replay_store', problem: replay.problem },
    auditCheck(inputs.audit),
    ...observationChecks(inputs.observation),
    listenerCheck(leaving),
  ];
}

export function listenerCheck(leaving: boolean): ReadinessCheck {
  return {
    name: 'listener',
    problem: leaving ? 'draining: a signal has come, and it is about to end' : undefined,
  };
}

const NO_BUNDLE = 'no bundle has been loaded: put one into --bundle, or have Control publish one';

/** After a rejected bundle the previous one stays in use, so the rejection is a warning and traffic continues. */
export function bundleCheck({ problem, snapshot }: BundleStatus): ReadinessCheck {
  const refused = problem && `${problem.error.code}: ${problem.error.message}`;
  return snapshot === undefined
    ? { name: 'bundle', problem: refused ?? NO_BUNDLE }
    : { name: 'bundle', problem: undefined, warning: refused, bundle: loadedBundle(snapshot) };
}

function loadedBundle({ authSite, head, revision }: Snapshot): LoadedBundle {
  return { authSite, revision, head };
}

/** Only a warning: also of a statement that no longer applies, because its file should go. */
function breakGlassCheck({ fault, statement }: BreakGlassStatus, { snapshot }: BundleStatus): ReadinessCheck {
  const refused = fault && `the break-glass statement is refused (${fault.code}): ${fault.text}`;
  const stated = statement && snapshot && breakGlassText(statement, snapshot);
  return { name: 'break_glass', problem: undefined, warning: refused ?? stated };
}

function breakGlassText(statement: BreakGlassStatement, snapshot: Snapshot): string {
  const why = whyIgnored(statement, snapshot, Math.floor(Date.now() / 1000));
  if (why !== undefined) return `the break-glass statement does not apply (${why})`;
  return `a break-glass statement suspends the maximum age of the bundle until ${formatTime(statement.untilSeconds)}`;
}

/** With `--audit required` a request without an audit record is denied, so a failing sink is a problem. */
export function auditCheck({ collector, mode, recorder }: AuditHealth): ReadinessCheck {
  const notRecorded =
    recorder && `decisions cannot be recorded (${recorder}): mend what --audit-file names; it is tried again`;
  const notSent =
    collector &&
    `decisions cannot be sent to the collector (${collector}): mend what --audit-url names; it is tried again`;
  const problem = mode === 'required' ? notRecorded : undefined;
  return { name: 'audit', problem, warning: problem === undefined ? (notRecorded ?? notSent) : undefined };
}

const WHY_ENFORCED = {
  not_allowed: '--allow-observe does not allow it here',
  latched: 'it was enforced here under this --allow-observe: give it another time to begin again',
  latch_failed: 'observations.json in --state-dir cannot be read or written',
} as const;

/** Only a warning, and none where the bundle wants nothing observed. */
export function observationChecks({ enforced, observed }: ObservationStatus): readonly ReadinessCheck[] {
  if (observed.length === 0 && enforced.length === 0) return [];
  const routes = observed.flatMap(({ routeId }) => (routeId === undefined ? [] : [routeId])).sort();
  const ends = observed.map(({ untilSeconds }) => untilSeconds).sort((a, b) => a - b);
  const what = observed.length > routes.length ? ['requests that no route matches', ...routes] : routes;
  const [first] = ends;
  const open =
    first === undefined
      ? []
      : [`denied requests pass without identity, the first until ${formatTime(first)}: ${listed(what)}`];
  const closed = (['not_allowed', 'latched', 'latch_failed'] as const).flatMap((why) => {
    const names = enforced.filter((each) => each.why === why).map(({ name }) => name);
    return names.length === 0
      ? []
      : [`enforced although the bundle says observe, ${WHY_ENFORCED[why]}: ${listed(names)}`];
  });
  const warning = [...open, ...closed].join('; ');
  return [{ name: 'observation', problem: undefined, warning, routes: routes.slice(0, MAX_NAMED_ROUTES) }];
}

const MAX_LISTED = 5;

function listed(names: readonly string[]): string {
  const more = names.length - MAX_LISTED;
  return `${names.slice(0, MAX_LISTED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/** Never a problem: the loaded bundle serves without Control while it is fresh. */
export function controlCheck({ lastContactSeconds, late, problem }: RefreshStatus): ReadinessCheck {
  const warning = problem && `${problem.error.code}: ${problem.error.message}`;
  const silent =
    lastContactSeconds === undefined ? 'Control has not answered yet: is --control-url right?' : undefined;
  const waiting =
    late &&
    `workers_late: revision ${late.revision} is not acknowledged, because workers have not loaded it: ${late.workers.join(', ')}`;
  return { name: 'control', problem: undefined, warning: warning ?? silent ?? waiting };
}

function freshnessCheck(status: BundleStatus, realtimeStalenessSeconds: number): ReadinessCheck {
  const { freshnessIgnored, freshnessProblem, snapshot } = status;
  const refused =
    freshnessProblem === undefined
      ? freshnessIgnored && `the statement on disk is not applied: ${freshnessIgnored}`
      : `${freshnessProblem.error.code}: ${freshnessProblem.error.message}`;
  const { problem, routes, warning } = snapshot ? stalenessOf(snapshot, realtimeStalenessSeconds) : SERVED;
  const warnings = [warning, refused].filter((text) => text !== undefined);
  return {
    name: 'freshness',
    problem,
    warning: warnings.length > 0 ? warnings.join('; ') : undefined,
    routes,
  };
}

const AHEAD_OF_CLOCK =
  "this machine's clock is behind the bundle, or behind its newest freshness statement: set the clock right";
const EXPIRED = 'the bundle has expired: sign or publish a new revision';

/** Maximum number of route names in an answer: a site may have thousands, and probes read only the beginning. */
const MAX_NAMED_ROUTES = 100;

type Staleness = Pick<ReadinessCheck, 'problem' | 'warning' | 'routes'>;
const SERVED: Staleness = { problem: undefined };

/** A problem only when no route can be served: applies `steps/freshness.ts` to the route that allows the greatest age. */
function stalenessOf(snapshot: Snapshot, realtimeStalenessSeconds: number): Staleness {
  const nowSeconds = Math.floor(Date.now() / 1000);
  const { expiresAtSeconds, freshAsOfSeconds, routesByFreshness, skewSeconds } = snapshot;
  if (!hasStarted(freshAsOfSeconds, nowSeconds, skewSeconds)) return { problem: AHEAD_OF_CLOCK };
  if (hasEnded(expiresAtSeconds, nowSeconds, skewSeconds)) return { problem: EXPIRED };
  if (isBreakGlassInForce(snapshot, nowSeconds)) return SERVED;
  const ages = routesByFreshness.map(({ rule }) => mostAgeSeconds(rule, realtimeStalenessSeconds));
  const mostSeconds = ages.length === 0 ? realtimeStalenessSeconds : ages.reduce((a, b) => Math.max(a, b));
  const ageSeconds = nowSeconds - freshAsOfSeconds;
  if (ageSeconds > mostSeconds) {
    const text =
      `the bundle is ${ageSeconds} s old, more than any route allows (${mostSeconds} s): ` +
      'see that bundle freshen, or Control, states its freshness and that its statements arrive';
    return { problem: text };
  }
  const stale = routeIdsOf(staleGroups(snapshot, nowSeconds, realtimeStalenessSeconds));
  if (stale.length === 0) return SERVED;
  return {
    problem: undefined,
    warning: `${stale.length} of ${snapshot.routes.size} routes are denied as stale, the bundle is ${ageSeconds} s old: see that freshness statements arrive`,
    routes: stale.slice(0, MAX_NAMED_ROUTES),
  };
}

function routeIdsOf(groups: readonly FreshnessGroup[]): readonly string[] {
  return groups.flatMap(({ routeIds }) => routeIds).sort();
}
