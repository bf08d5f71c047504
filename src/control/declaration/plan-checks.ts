/** Checks of a declaration that its schema cannot make, and the effects of its steps on requests. */

import { acceptsDpop } from '../../bundle/compile/compile-dpop.ts';
import type { ProblemFault } from '../../process/http-service/http-problem.ts';
import { isCanonicalSubject, isCanonicalSubjectPrefix, SPIFFE_ID_RULE } from '../../protocol/spiffe-id.ts';
import { isJsonObject } from '../../protocol/strict-json.ts';
import type {
  DeclarationResult,
  DeclaredBroker,
  DeclaredPolicy,
  SiteDeclaration,
} from '../contract/declaration-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import type { RowOf } from '../store/repositories/records.ts';
import { brokerName, type CurrentSite, definitionOf } from './current-site.ts';
import { isEqual } from './differences.ts';

const MAX_FAULTS = 20;

/** Rejects repeated names, unknown references and subjects that verifiers would match with no caller. @throws ApiProblem `request_malformed` */
export function rejectInconsistent(declaration: SiteDeclaration): void {
  const faults = [
    ...repeatedNames(declaration),
    ...unknownReferences(declaration),
    ...oddSubjects(declaration),
  ];
  if (faults.length === 0) return;
  throw new ApiProblem('request_malformed', undefined, { faults: faults.slice(0, MAX_FAULTS) });
}

function repeatedNames(declaration: SiteDeclaration): readonly ProblemFault[] {
  const { brokers = [], clients = [], routes = [], sources = [], targets = [] } = declaration;
  const { enrollment_policies: policies = [] } = declaration;
  return [
    ...repeated('brokers', brokers, ({ issuer, trust_domain: domain }) => brokerName(issuer, domain)),
    ...repeated('oauth_issuers', declaration.oauth_issuers ?? [], ({ issuer }) => issuer),
    ...repeated('clients', clients, ({ client_id: id }) => id),
    ...clients.flatMap(({ grants = [] }, index) =>
      repeated(`clients/${index}/grants`, grants, ({ resource }) => resource),
    ),
    ...repeated('routes', routes, ({ route_id: id }) => id),
    ...repeated('sources', sources, ({ name }) => name),
    ...repeated('enrollment_policies', policies, ({ name }) => name),
    ...repeated('targets', targets, (name) => name),
  ];
}

function repeated<T>(
  list: string,
  items: readonly T[],
  nameOf: (item: T) => string,
): readonly ProblemFault[] {
  const seen = new Set<string>();
  return items.flatMap((item, index) => {
    const name = nameOf(item);
    if (seen.has(name)) {
      return [{ pointer: `/body/${list}/${index}`, reason: `names ${JSON.stringify(name)} twice` }];
    }
    seen.add(name);
    return [];
  });
}

function unknownReferences(declaration: SiteDeclaration): readonly ProblemFault[] {
  const sources = new Set(declaration.sources?.map(({ name }) => name));
  const clients = new Set(declaration.clients?.map(({ client_id: id }) => id));
  const unknown = (member: string, index: number, name: string, list: string) => ({
    pointer: `/body/enrollment_policies/${index}/${member}`,
    reason: `is ${JSON.stringify(name)}, which /${list} does not name`,
  });
  return (declaration.enrollment_policies ?? []).flatMap(({ source, client }, index) => [
    ...(sources.has(source) ? [] : [unknown('source', index, source, 'sources')]),
    ...(clients.has(client) ? [] : [unknown('client', index, client, 'clients')]),
  ]);
}

function oddSubjects({ brokers = [], clients = [], routes = [] }: SiteDeclaration): readonly ProblemFault[] {
  const places = [
    ...clients.flatMap(({ subject }, i) => (isCanonicalSubject(subject) ? [] : [`clients/${i}/subject`])),
    ...routes.flatMap(({ allowed_sources: sources }, i) =>
      sources.flatMap(({ subject_exact: exact = '', subject_prefix: prefix = '' }, j) => [
        ...(isCanonicalSubject(exact) ? [] : [`routes/${i}/allowed_sources/${j}/subject_exact`]),
        ...(isCanonicalSubjectPrefix(prefix) ? [] : [`routes/${i}/allowed_sources/${j}/subject_prefix`]),
      ]),
    ),
    ...brokers.flatMap(({ subject_prefixes: prefixes }, i) =>
      prefixes.flatMap((prefix, j) =>
        isCanonicalSubjectPrefix(prefix) ? [] : [`brokers/${i}/subject_prefixes/${j}`],
      ),
    ),
  ];
  return places.map((place) => ({ pointer: `/body/${place}`, reason: `is not ${SPIFFE_ID_RULE}` }));
}

/** Rejects a site whose sources or policies have one name: all but one would escape the declaration. @throws ApiProblem `already_exists` */
export function rejectNamesakes({ namesakes }: CurrentSite): void {
  const [first] = namesakes;
  if (first === undefined) return;
  const { kind, name, ids } = first;
  const shown = ids.slice(0, MAX_FAULTS).join(', ');
  throw new ApiProblem(
    'already_exists',
    `several ${kind} have the name ${JSON.stringify(name)}: rename or delete all but one of ${shown}`,
  );
}

/**
 * Rejects changes of members that cannot change. Ignoring one would mislead an operator who restricts who can enroll.
 * @throws ApiProblem `member_fixed`, `broker_keys_differ`
 */
export function rejectFixedChanges(declaration: SiteDeclaration, current: CurrentSite): void {
  const { site, environment, fleet, brokers = [], enrollment_policies: policies = [] } = declaration;
  const { place } = current;
  if (place !== undefined && (place.environment !== environment || place.fleet !== fleet)) {
    const where = `environment ${place.environment}, fleet ${place.fleet}`;
    throw new ApiProblem('member_fixed', `the site is in ${where} and cannot move: declare those`);
  }
  const another = 'declare another site';
  requireSame('/site/trust_domain', site.trust_domain, current.site?.trustDomain, another);
  requireSame('/site/issuer_url', site.issuer_url, current.site?.issuerUrl, another);
  for (const [index, broker] of brokers.entries()) {
    rejectOtherKeys(`/brokers/${index}/keys`, broker, site.site_id, current);
  }
  const issuers = new Map(declaration.sources?.map(({ name, issuer }) => [name, issuer]));
  for (const [index, policy] of policies.entries()) {
    const held = current.policies.get(policy.name);
    const place = `/enrollment_policies/${index}`;
    if (held !== undefined) rejectAnotherIdentity(place, policy, held, issuers.get(policy.source), current);
  }
}

function rejectAnotherIdentity(
  place: string,
  policy: DeclaredPolicy,
  held: RowOf<'enrollmentPolicy'>,
  issuer: string | undefined,
  current: CurrentSite,
): void {
  const advice = 'declare a policy of another name';
  requireSame(`${place}/verified_subject`, policy.verified_subject, held.verifiedSubject, advice);
  requireSame(`${place}/client`, policy.client, held.clientId, advice);
  const rebind =
    `apply the source without the policy's change, then use` +
    ` proofgate ctl rebind ${held.id} --source SOURCE --expect-issuer ISSUER`;
  if (current.sources.get(policy.source)?.row.id !== held.sourceId) {
    throw fixed(`${place}/source`, `the policy belongs to source ${held.sourceId}`, rebind);
  }
  requireSame(`${place}'s verified issuer`, issuer, held.verifiedIssuer, rebind);
}

/** Keys are pinned by `broker-keys refresh` alone: a changed file must neither add trusted keys nor seem to remove them. */
function rejectOtherKeys(
  place: string,
  broker: DeclaredBroker,
  siteId: string,
  { brokers }: CurrentSite,
): void {
  const held = brokers.get(brokerName(broker.issuer, broker.trust_domain));
  if (broker.keys === undefined || held === undefined) return;
  const pinned = pinnedKeys(held);
  const [added, gone] = [missingFrom(pinned, broker.keys), missingFrom(broker.keys, pinned)];
  if (added.length === 0 && gone.length === 0) return;
  const differences = [
    ...(added.length === 0 ? [] : [`not pinned: ${added.join(', ')}`]),
    ...(gone.length === 0 ? [] : [`pinned, but not declared: ${gone.join(', ')}`]),
  ];
  const refresh = `proofgate ctl broker-keys refresh --site ${siteId} --issuer ${broker.issuer} --trust-domain ${broker.trust_domain}`;
  const advice = `a declaration never changes pinned keys: use ${refresh}, and correct or remove the member`;
  throw new ApiProblem('broker_keys_differ', `${place}: ${differences.join('; ')}; ${advice}`);
}

function pinnedKeys({ definition }: RowOf<'broker'>): readonly unknown[] {
  const { keys } = definitionOf(definition);
  return Array.isArray(keys) ? keys : [];
}

/** The `kid`s of keys that a list lacks or has with other content. */
function missingFrom(list: readonly unknown[], keys: readonly unknown[]): readonly string[] {
  return keys
    .filter((key) => !list.some((other) => isEqual(key, other)))
    .map((key) => (isJsonObject(key) ? String(key.kid) : '?'));
}

function requireSame(place: string, declared: unknown, held: unknown, advice: string): void {
  if (held === undefined || declared === held) return;
  throw fixed(place, `it is ${JSON.stringify(held)}`, advice);
}

function fixed(place: string, why: string, advice: string): ApiProblem {
  return new ApiProblem('member_fixed', `${place} cannot change (${why}): ${advice}`);
}

type Warning = DeclarationResult['warnings'][number];

/** Warns about the effect of the steps on requests. */
export function warningsOf(declaration: SiteDeclaration, current: CurrentSite): Warning[] {
  const { site, brokers = [] } = declaration;
  return [
    ...skewWarnings(declaration, current),
    ...brokers.flatMap((each) => keyWarning(each, site.site_id, current)),
    ...observationWarnings(declaration),
    ...proofWarnings(declaration),
    ...replayWarnings(declaration, current),
  ];
}

/** As `bundle lint` warns. */
function observationWarnings({ routes = [], site }: SiteDeclaration): readonly Warning[] {
  const where = 'where the verifier allows it (--allow-observe)';
  const ofRoutes = routes
    .filter(({ enforcement }) => enforcement === 'observe')
    .slice(0, MAX_FAULTS)
    .map(({ observe_until: until = '', route_id: id }): Warning => {
      const message = `route ${id}: requests without a valid proof reach the upstream, until ${until}, ${where}`;
      return { code: 'route_observed', message };
    });
  if (site.unmatched !== 'observe') return ofRoutes;
  const end = site.unmatched_until ?? '';
  const message = `requests that no route matches reach the upstream, until ${end}, ${where}`;
  return [...ofRoutes, { code: 'unmatched_observed', message }];
}

/** As `bundle lint` warns. */
function proofWarnings({ routes = [] }: SiteDeclaration): readonly Warning[] {
  const unbound = routes.filter(acceptsDpop).map(({ route_id: id, unbound: parts = [] }): Warning => {
    return {
      code: 'dpop_unbound',
      message: `route ${id}: a DPoP proof does not cover ${parts.join(', ')}`,
    };
  });
  return unbound.slice(0, MAX_FAULTS);
}

/** Nothing else says that a copied proof may be accepted again. */
function replayWarnings({ site }: SiteDeclaration, current: CurrentSite): readonly Warning[] {
  if ((site.replay_stores ?? current.site?.replayStores) !== 'per_region') return [];
  const message =
    'replay_stores is per_region: each replay store of the site accepts a proof once, and ProofgateReplayStores does not fire';
  return [{ code: 'replay_per_region', message }];
}

function keyWarning(broker: DeclaredBroker, siteId: string, { brokers }: CurrentSite): readonly Warning[] {
  const { issuer, trust_domain: trustDomain } = broker;
  const held = brokers.get(brokerName(issuer, trustDomain));
  const keys = held === undefined ? (broker.keys ?? []) : pinnedKeys(held);
  if (keys.length > 0) return [];
  const message =
    `no key of broker ${issuer} for ${trustDomain} is pinned, so verifiers reject its passports:` +
    ` proofgate ctl broker-keys refresh --site ${siteId} --issuer ${issuer} --trust-domain ${trustDomain}`;
  return [{ code: 'broker_without_keys', message }];
}

function skewWarnings({ site }: SiteDeclaration, current: CurrentSite): readonly Warning[] {
  const [from, to] = [current.site?.skewSeconds, site.skew_seconds];
  if (from === undefined || to === undefined || to <= from) return [];
  const isSingle = site.single_verifier ?? current.site?.singleVerifier === 1;
  const deniedSeconds = fenceSeconds(to);
  const message =
    `raising skew_seconds from ${from} to ${to} makes verifiers deny every request for ${deniedSeconds} s after they load it` +
    ` (replay_store_unavailable, fenced); with Sentinels or a Cluster at least ${LEAST_MARGIN_SECONDS} s longer` +
    (isSingle ? `; with --replay memory for ${to + 1} s` : '');
  return [{ code: 'skew_raised', message, denied_seconds: deniedSeconds }];
}

/** The value F of the table in docs/operate/replay.md "Fences", for stores whose replicas may be promoted. */
const LEAST_MARGIN_SECONDS = 12;

/** Source: docs/operate/replay.md "Fences", with F = 0. */
function fenceSeconds(skewSeconds: number): number {
  return 2 * skewSeconds + 1;
}
