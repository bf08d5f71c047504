/** Finds rules that no caller in the bundle can satisfy, and entries that no rule uses. Most are misspellings. */
import { grantCovers } from '../../protocol/access.ts';
import { satisfiesKeyBinding } from '../../protocol/identifiers.ts';
import { acceptsDpop } from '../compile/compile-dpop.ts';
import { accessOf } from '../compile/compile-routes.ts';
import { pointer, showValue } from '../format/bundle-error.ts';
import type {
  AllowedSourceContent,
  BlockedCallerContent,
  BundleContent,
  ClientContent,
  IssuerContent,
  OAuthIssuerContent,
  RouteContent,
  RouteSourcesContent,
} from '../format/schema.ts';
import { type Finding, notice, warning } from './findings.ts';

export function lintReachability(content: BundleContent): readonly Finding[] {
  const index = indexIdentities(content);
  const routes = new Map(content.routes.map((route) => [route.route_id, route]));
  return [
    ...content.route_sources.flatMap((entry, position) => {
      const route = routes.get(entry.route_id);
      return route === undefined ? [] : lintSources(entry, route, pointer('route_sources', position), index);
    }),
    ...lintUnusedIssuers(content),
    ...lintClients(content),
    ...lintBlocked(content),
  ];
}

/** By issuer and trust domain; neither contains a space. */
interface Identities {
  readonly issuers: ReadonlyMap<string, IssuerContent>;
  readonly oauthIssuers: ReadonlyMap<string, OAuthIssuerContent>;
  readonly clients: ReadonlyMap<string, readonly ClientContent[]>;
}

function placeOf(entry: { readonly issuer: string; readonly trust_domain: string }): string {
  return `${entry.issuer} ${entry.trust_domain}`;
}

function indexIdentities(content: BundleContent): Identities {
  const clients = new Map<string, ClientContent[]>();
  for (const client of content.clients ?? []) {
    const known = clients.get(placeOf(client));
    if (known === undefined) clients.set(placeOf(client), [client]);
    else known.push(client);
  }
  return {
    issuers: new Map((content.issuers ?? []).map((issuer) => [placeOf(issuer), issuer])),
    oauthIssuers: new Map((content.oauth_issuers ?? []).map((issuer) => [placeOf(issuer), issuer])),
    clients,
  };
}

function lintSources(
  entry: RouteSourcesContent,
  route: RouteContent,
  path: string,
  identities: Identities,
): readonly Finding[] {
  const findings: Finding[] = [];
  for (const [index, source] of entry.allowed_sources.entries()) {
    if (canMatch(source, route, identities)) continue;
    const text = `${showValue(route.route_id)}: no issuer and no client of the bundle can satisfy this rule`;
    findings.push(warning('source_unreachable', `${path}/allowed_sources/${index}`, text));
  }
  if (findings.length === entry.allowed_sources.length) {
    const text = `${showValue(route.route_id)}: no caller can call this route`;
    findings.push(warning('route_unreachable', `${path}/allowed_sources`, text));
  }
  return findings;
}

function canMatch(source: AllowedSourceContent, route: RouteContent, identities: Identities): boolean {
  const issuer = identities.issuers.get(placeOf(source));
  if (issuer !== undefined && issuerCanMatch(issuer, source)) return true;
  const server = identities.oauthIssuers.get(placeOf(source));
  if (server !== undefined && acceptsDpop(route) && serverCanMatch(server, source)) return true;
  const clients = identities.clients.get(placeOf(source)) ?? [];
  return clients.some((client) => clientCanMatch(client, source, route));
}

function issuerCanMatch(issuer: IssuerContent, source: AllowedSourceContent): boolean {
  if (!satisfiesKeyBinding(issuer.key_binding, source.required_key_binding)) return false;
  const { subject_exact: exact, subject_prefix: wanted = '' } = source;
  return issuer.subject_prefixes.some((prefix) =>
    exact === undefined ? prefix.startsWith(wanted) || wanted.startsWith(prefix) : exact.startsWith(prefix),
  );
}

/** Callers with access tokens are always of class `software`. */
function serverCanMatch(
  { subject_claim = 'sub' }: OAuthIssuerContent,
  source: AllowedSourceContent,
): boolean {
  if (source.required_key_binding !== 'software') return false;
  const { subject_exact: exact, subject_prefix: prefix = '' } = source;
  const claim = `${subject_claim}:`;
  return exact === undefined ? prefix.startsWith(claim) || claim.startsWith(prefix) : exact.startsWith(claim);
}

/** Derived keys are always of class `software`. */
function clientCanMatch(client: ClientContent, source: AllowedSourceContent, route: RouteContent): boolean {
  if (source.required_key_binding !== 'software') return false;
  const isSubject =
    source.subject_exact === undefined
      ? client.subject.startsWith(source.subject_prefix ?? '')
      : client.subject === source.subject_exact;
  const resource = route.resource ?? route.route_id;
  const isGranted = client.grants.some(
    ({ resource: granted, access }) => granted === resource && grantCovers(access, accessOf(route)),
  );
  return isSubject && isGranted;
}

function lintUnusedIssuers(content: BundleContent): readonly Finding[] {
  const wanted = new Set(
    content.route_sources.flatMap((entry) => entry.allowed_sources.map((source) => placeOf(source))),
  );
  return (content.issuers ?? []).flatMap((issuer, index) => {
    if (wanted.has(placeOf(issuer))) return [];
    const text = `no route takes passports of ${showValue(issuer.issuer)} for this trust domain`;
    return [notice('issuer_unused', pointer('issuers', index), text)];
  });
}

function lintClients(content: BundleContent): readonly Finding[] {
  const resources = new Set(content.routes.map((route) => route.resource ?? route.route_id));
  const owners = new Map<string, string>();
  return (content.clients ?? []).flatMap((client, index) => {
    const path = pointer('clients', index);
    const findings: Finding[] = [];
    const identity = `${placeOf(client)} ${client.subject}`;
    const owner = owners.get(identity);
    owners.set(identity, owner ?? client.client_id);
    if (owner !== undefined) {
      const text = `rules cannot tell ${showValue(client.client_id)} from ${showValue(owner)}`;
      findings.push(warning('client_identity_shared', `${path}/subject`, text));
    }
    for (const [position, { resource }] of client.grants.entries()) {
      if (resources.has(resource)) continue;
      const text = `${showValue(client.client_id)}: no route has resource ${showValue(resource)}`;
      findings.push(notice('grant_unused', `${path}/grants/${position}/resource`, text));
    }
    return findings;
  });
}

/** An entry of `blocked` that applies to no caller is most likely misspelled, and its caller is still allowed. */
function lintBlocked(content: BundleContent): readonly Finding[] {
  return (content.blocked ?? []).flatMap((entry, index) => {
    if (canApply(entry, content)) return [];
    const text = `no issuer and no client of the bundle has callers that this entry blocks`;
    return [warning('block_unreachable', pointer('blocked', index), text)];
  });
}

function canApply({ issuer, subject }: BlockedCallerContent, content: BundleContent): boolean {
  const isOfBroker = content.issuers?.some(
    (entry) =>
      entry.issuer === issuer &&
      (subject === undefined || entry.subject_prefixes.some((prefix) => subject.startsWith(prefix))),
  );
  if (isOfBroker || content.oauth_issuers?.some((entry) => entry.issuer === issuer)) return true;
  return (content.clients ?? []).some(
    (client) => client.issuer === issuer && (subject === undefined || client.subject === subject),
  );
}
