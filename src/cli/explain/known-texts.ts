/**
 * Collects the bundle's own texts that relate to the request. A text of the request that is among them can be shown; any
 * other text could be a secret.
 */
import type { BundleKey, RequiredAttribute, Route, SourceRule } from '../../bundle/compile/snapshot.ts';
import { parsePathTemplate } from '../../protocol/path-template.ts';
import type { Explanation } from '../../verifier/decision/explain/explain.ts';

export interface KnownTexts {
  /** Identities, identifiers, attribute values. */
  readonly texts: ReadonlySet<string>;
  /** Allowed prefixes of subjects. */
  readonly prefixes: readonly string[];
  /** Literal segments of the route's path. */
  readonly segments: ReadonlySet<string>;
  /** Headers that the route requires to be signed, lower case. */
  readonly headers: ReadonlySet<string>;
  /** @param origin `scheme://authority`, canonical */
  hasOrigin(origin: string): boolean;
}

export function knownTextsOf({ caller, credentials, route, snapshot }: Explanation): KnownTexts {
  const key = caller?.bundleKey;
  const texts = [
    snapshot?.authSite,
    snapshot && String(snapshot.revision),
    // One of two fixed values.
    caller?.keyBinding,
    // A hash of a signed text, so it cannot be reversed by trying values.
    credentials?.passport.sha256,
    ...(route === undefined ? [] : textsOfRoute(route)),
    ...(key === undefined ? [] : textsOfKey(key)),
  ];
  return {
    texts: new Set(texts.filter((text) => text !== undefined)),
    prefixes: [
      ...(route === undefined ? [] : route.sources.flatMap(prefixesOfRule)),
      ...(key?.kind === 'issuer_key' ? key.issuer.subjectPrefixes : []),
    ],
    segments: new Set(route === undefined ? [] : literalSegments(route.pathTemplate)),
    headers: new Set(route?.signedHeaders),
    hasOrigin: (origin) => snapshot !== undefined && isOriginOf(snapshot, origin),
  };
}

function textsOfRoute(route: Route): readonly string[] {
  return [
    route.routeId,
    route.method,
    route.audience,
    ...route.sources.flatMap(textsOfRule),
    ...[...route.requiredProvenance, ...route.requiredContext].flatMap(textsOfAttribute),
  ];
}

function textsOfRule({ issuer, subject, trustDomain }: SourceRule): readonly string[] {
  return [issuer, trustDomain, ...(subject.kind === 'exact' ? [subject.value] : [])];
}

function prefixesOfRule({ subject }: SourceRule): readonly string[] {
  return subject.kind === 'prefix' ? [subject.value] : [];
}

function textsOfAttribute({ name, allowed }: RequiredAttribute): readonly string[] {
  return [name, ...allowed];
}

function textsOfKey(key: BundleKey): readonly string[] {
  if (key.kind === 'issuer_key') return [key.keyId, key.issuer.issuer, key.issuer.trustDomain];
  const { client, keyId, provenance } = key;
  const { clientId, context, issuer, subject, trustDomain } = client;
  return [keyId, clientId, issuer, trustDomain, subject, ...provenance.values(), ...context.values()];
}

function literalSegments(pathTemplate: string): readonly string[] {
  const template = parsePathTemplate(pathTemplate);
  if (template.kind === 'problem') return [];
  return template.segments.flatMap((segment) => (segment.kind === 'literal' ? [segment.text] : []));
}

/** A path without a slash matches no route, so this only tells whether the site has the origin. */
function isOriginOf({ routes }: NonNullable<Explanation['snapshot']>, origin: string): boolean {
  const match = routes.match('GET', origin, '');
  return match.kind === 'no_route' && match.detail !== 'origin';
}
