/** Kinds of change of a site, each at a random place, for tests of what a change does to decisions. */
import type { ProofFormat } from '../../../src/protocol/proof-format.ts';
import { thumbprintOf } from '../../../src/protocol/public-key.ts';
import {
  BROKER_ISSUER,
  CLIENT_ISSUER,
  newSigningKey,
  ORIGIN,
  TRUST_DOMAIN,
} from '../fixtures/bundle-content.ts';
import {
  INTERNAL_ORIGIN,
  MAX_STALENESS_SECONDS,
  PARTNERS_ORIGIN,
  type SiteContent,
} from '../fixtures/snapshot.ts';
import type { Random } from '../random.ts';

export type SiteChange = (content: SiteContent, random: Random) => void;
type RouteContent = SiteContent['routes'][number];

/** Half of all changes are of the routes that most requests are for. */
function someRoute({ routes }: SiteContent, random: Random): RouteContent {
  const busy = routes.filter(({ route_id }) => route_id === 'everything' || route_id === 'orders-read');
  return random.pick(busy.length > 0 && random.below(2) === 0 ? busy : routes);
}

function sourcesAt(content: SiteContent, random: Random) {
  const { route_id: routeId } = someRoute(content, random);
  const set = content.route_sources.find(({ route_id }) => route_id === routeId);
  return set ?? random.pick(content.route_sources);
}

const someClient = ({ clients = [] }: SiteContent, random: Random) => random.pick(clients);
const someIssuer = ({ issuers = [] }: SiteContent, random: Random) => random.pick(issuers);

function removeRoute(content: SiteContent, routeId: string): void {
  content.routes = content.routes.filter(({ route_id }) => route_id !== routeId);
  content.route_sources = content.route_sources.filter(({ route_id }) => route_id !== routeId);
}

function addRoute(content: SiteContent, route: RouteContent): void {
  const like = content.route_sources[0]?.allowed_sources ?? [];
  content.routes.push(route);
  content.route_sources.push({ route_id: route.route_id, allowed_sources: structuredClone(like) });
}

const required = (route: RouteContent, random: Random) => {
  const kind = random.pick(['required_provenance', 'required_context'] as const);
  route[kind] ??= {};
  return route[kind];
};

export const PROOF_SETS: ProofFormat[][] = [
  ['transcript-v1'],
  ['http-message-signatures'],
  ['transcript-v1', 'http-message-signatures'],
];

export const SITE_CHANGES: { readonly [kind: string]: SiteChange } = {
  'nothing changes': () => {},
  'a route goes': (content, random) => removeRoute(content, someRoute(content, random).route_id),
  'a route gets another name': (content, random) => {
    const route = someRoute(content, random);
    for (const set of content.route_sources) if (set.route_id === route.route_id) set.route_id = 'renamed';
    route.route_id = 'renamed';
  },
  'a route gets another path': (content, random) => {
    someRoute(content, random).path_template += '/more';
  },
  'a placeholder becomes a literal': (content, random) => {
    const route = someRoute(content, random);
    route.path_template = route.path_template.replace(/\{.*$/, '17');
  },
  'a route gets another method': (content, random) => {
    someRoute(content, random).method = random.pick(['PATCH', 'HEAD']);
  },
  'a literal route beside a placeholder': (content, random) => {
    const { route_id: _, ...like } = someRoute(content, random);
    const path_template = like.path_template.replace(/\{[^}]*\}$/, random.pick(['17', 'special', 'other']));
    addRoute(content, { ...like, route_id: 'literal', path_template });
  },
  'a new route with a path of its own': (content) =>
    addRoute(content, {
      route_id: 'new',
      method: 'GET',
      path_template: '/v2/new',
      audience: ORIGIN,
      freshness_class: 'realtime',
    }),
  'a placeholder route beside all literals': (content, random) =>
    addRoute(content, {
      route_id: 'any',
      method: random.pick(['GET', 'POST']),
      path_template: '/v1/{any}',
      audience: ORIGIN,
      freshness_class: 'realtime',
    }),
  'the site loses an origin': (content, random) => {
    const gone = random.pick([PARTNERS_ORIGIN, INTERNAL_ORIGIN]);
    content.origins = content.origins.filter((origin) => origin !== gone);
    for (const { route_id: routeId, origins } of structuredClone(content.routes)) {
      if (origins?.includes(gone)) removeRoute(content, routeId);
    }
  },
  'the site gets an origin': (content) => void content.origins.push('https://new.shop.example'),
  'a route is for one origin': (content, random) => {
    someRoute(content, random).origins = [ORIGIN];
  },
  'a route gets another audience': (content, random) => {
    someRoute(content, random).audience = 'urn:other';
  },
  'a route requires another freshness': (content, random) => {
    const route = someRoute(content, random);
    route.freshness_class = random.pick(['realtime', 'bounded', 'eventual']);
    route.max_staleness_seconds = random.pick([1, 30, MAX_STALENESS_SECONDS]);
  },
  'the clock skew grows': (content) => {
    content.skew_seconds = (content.skew_seconds ?? 30) + 3;
  },
  'the clock skew shrinks': (content) => {
    content.skew_seconds = Math.max(1, (content.skew_seconds ?? 30) - 3);
  },
  'a route requires another signed header': (content, random) => {
    const route = someRoute(content, random);
    route.signed_headers = [
      ...new Set([...(route.signed_headers ?? []), random.pick(['x-tenant', 'x-other'])]),
    ];
  },
  'a route requires no signed header': (content, random) => {
    delete someRoute(content, random).signed_headers;
  },
  'a route binds the body otherwise': (content, random) => {
    const route = someRoute(content, random);
    route.body = route.body === 'unbound' ? 'bound' : 'unbound';
  },
  'the passport comes in another header': (content, random) => {
    const route = someRoute(content, random);
    delete route.forward_authorization;
    route.passport_header = 'X-Proofgate-Passport';
  },
  'a route accepts other proofs': (content, random) => {
    someRoute(content, random).accepted_proofs = random.pick(PROOF_SETS);
  },
  'a route requires another attribute': (content, random) => {
    required(someRoute(content, random), random)[random.pick(['zone', 'team', 'aaa'])] = [
      random.pick(['eu-1', 'payments', 'zzz']),
    ];
  },
  'a route allows another value': (content, random) => {
    for (const values of Object.values(required(someRoute(content, random), random))) values.push('another');
  },
  'a route allows other values': (content, random) => {
    const attributes = required(someRoute(content, random), random);
    for (const name of Object.keys(attributes)) attributes[name] = [random.pick(['eu-2', 'sha256:bbbb'])];
  },
  'a route requires an attribute no longer': (content, random) => {
    const attributes = required(someRoute(content, random), random);
    for (const name of Object.keys(attributes).slice(0, 1)) delete attributes[name];
  },
  'a source goes': (content, random) => {
    const { allowed_sources: sources } = sourcesAt(content, random);
    if (sources.length > 1) sources.splice(random.below(sources.length), 1);
  },
  'sources come in another order': (content, random) =>
    void sourcesAt(content, random).allowed_sources.reverse(),
  'a source requires another key binding': (content, random) => {
    for (const source of sourcesAt(content, random).allowed_sources) {
      source.required_key_binding = random.pick(['software', 'attested_workload']);
    }
  },
  'a source allows other subjects': (content, random) => {
    for (const source of sourcesAt(content, random).allowed_sources) {
      source.subject_exact &&= random.pick(['client:billing', 'client:other']);
      source.subject_prefix &&= source.subject_prefix.replace('/ns/prod/', random.pick(['/ns/dev/', '/']));
    }
  },
  'a grant goes': (content, random) => {
    const { grants } = someClient(content, random);
    grants.splice(random.below(grants.length), 1);
  },
  'grants become read only': (content, random) => {
    for (const grant of someClient(content, random).grants) grant.access = 'read';
  },
  'grants become write': (content, random) => {
    for (const grant of someClient(content, random).grants) grant.access = 'write';
  },
  'a route needs another grant': (content, random) => {
    someRoute(content, random).resource = random.pick(['orders', 'catalog', 'nothing']);
  },
  'a client gets another context': (content, random) => {
    someClient(content, random).context = {
      team: random.pick(['payments', 'search']),
      environment: 'production',
    };
  },
  'a client goes with its keys': (content, random) => {
    const { client_id: gone } = someClient(content, random);
    content.clients = content.clients?.filter(({ client_id }) => client_id !== gone) ?? [];
    content.derived_keys = content.derived_keys?.filter(({ client_id }) => client_id !== gone) ?? [];
  },
  'a broker goes': (content, random) => {
    const gone = someIssuer(content, random);
    content.issuers = content.issuers?.filter((issuer) => issuer !== gone) ?? [];
  },
  'a broker may speak for fewer subjects': (content, random) => {
    const issuer = someIssuer(content, random);
    issuer.subject_prefixes = [`spiffe://${TRUST_DOMAIN}/ns/prod/sa/b`].map((text) => `${text}/`);
  },
  'a broker may attest less': (content, random) => {
    someIssuer(content, random).key_binding = 'software';
  },
  'a broker gets another passport lifetime': (content, random) => {
    someIssuer(content, random).max_passport_ttl_seconds = random.pick([60, 300, 900]);
  },
  "a broker's key is another": (content, random) => {
    const [key] = someIssuer(content, random).keys;
    const { algorithm: alg, jwk } = newSigningKey().publicKey;
    if (key !== undefined) Object.assign(key, { alg, jwk });
  },
  "a broker's key has ended": (content, random) => {
    for (const key of someIssuer(content, random).keys) key.not_after = '2026-01-01T00:00:00Z';
  },
  'a subject is blocked': (content, random) => {
    const subject = random.pick(['client:billing', 'client:reporting']);
    content.blocked = [{ issuer: CLIENT_ISSUER, subject }];
  },
  'a holder is blocked': (content, random) => {
    const key = random.pick(content.derived_keys ?? []);
    content.blocked = [
      { issuer: CLIENT_ISSUER, holder_thumbprint: thumbprintOf(key.jwk) },
      { issuer: BROKER_ISSUER, holder_thumbprint: thumbprintOf(newSigningKey().publicKey.jwk) },
    ];
  },
  'a key is revoked': (content, random) => {
    random.pick(content.derived_keys ?? []).status = 'revoked';
  },
};
