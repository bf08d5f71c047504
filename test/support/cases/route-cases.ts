/** Targets, origins and templates: which route a request matches, if any. */
import { readFileSync } from 'node:fs';
import type { RequestEdits, WireRequest } from '../fixtures/signed-request.ts';
import type { SiteContent } from '../fixtures/snapshot.ts';
import { BILLING, type BundleVariant, replaced, type VectorCase } from './vector-case.ts';

const NOT_CANONICAL = 'bundle_route_missing/path_not_canonical 403';
const ORIGIN = 'bundle_route_missing/origin 403';
const NO_MATCH = 'bundle_route_missing/no_match 403';

const TARGETS: {
  readonly canonical: readonly string[];
  readonly refused: { readonly [rule: string]: readonly string[] };
} = JSON.parse(readFileSync(new URL('../../vectors/targets.json', import.meta.url), 'utf8'));

/** Sends and signs the same, if a transcript can contain it. */
function sendsTarget(target: string): RequestEdits {
  const isSignable = /^\/(?:[ -~]*[!-~])?$/.test(target);
  return {
    ...(isSignable && { transcript: (draft) => void Object.assign(draft, { target }) }),
    received: (request) => ({ ...request, target }),
  };
}

/** Sends and signs a request that differs from the plan's route. */
function sends(
  change: Partial<Pick<WireRequest, 'method' | 'scheme' | 'authority' | 'target'>>,
): RequestEdits {
  return {
    transcript: (draft) => void Object.assign(draft, change),
    received: (request) => ({ ...request, ...change }),
  };
}

/** The received request differs from the signed one. */
function arrives(change: Partial<WireRequest>): RequestEdits {
  return { received: (request) => ({ ...request, ...change }) };
}

/** Two of each rule; targets.json has more. */
const REFUSED_TARGETS: readonly VectorCase[] = Object.entries(TARGETS.refused).flatMap(([rule, targets]) =>
  [targets.at(0), targets.at(-1)].map((target = '') => ({
    name: `target, ${rule}: ${JSON.stringify(target)}`,
    plan: BILLING,
    edits: sendsTarget(target),
    outcome: NOT_CANONICAL,
  })),
);

/** The canonical targets that match the template `/v1/uploads/{name*}`. */
const CANONICAL_TARGETS: readonly VectorCase[] = TARGETS.canonical
  .filter((target) => /^\/[^/?]/.test(target) && !target.split('?')[0]?.endsWith('/'))
  .map((target) => ({
    name: `target, canonical: ${JSON.stringify(target)}`,
    plan: { caller: 'billing', route: 'uploads' },
    edits: sends({ target: `/v1/uploads${target}` }),
    outcome: 'allowed',
  }));

const SIBLING: BundleVariant = {
  name: 'site, with /v1/orders/export',
  change: (content) => {
    const [first] = content.routes;
    const [sources] = content.route_sources;
    if (first === undefined || sources === undefined) throw new Error('no route');
    content.routes.push({ ...first, route_id: 'orders-export', path_template: '/v1/orders/export' });
    content.route_sources.push({ ...sources, route_id: 'orders-export' });
  },
};

const withOrigin = (origin: string) => (content: SiteContent) => void content.origins.push(origin);
const IPV6: BundleVariant = {
  name: 'site, on an IPv6 address',
  change: withOrigin('https://[2001:db8::1]:8443'),
};
const IDN: BundleVariant = {
  name: 'site, on a name beyond ASCII',
  change: withOrigin('https://xn--bcher-kva.example'),
};

const TEMPLATES: readonly VectorCase[] = [
  { name: 'a method in lower case', edits: sends({ method: 'get' }), outcome: NO_MATCH },
  { name: 'a method that no route has', edits: sends({ method: 'HEAD' }), outcome: NO_MATCH },
  { name: 'an empty method', edits: arrives({ method: '' }), outcome: NO_MATCH },
  {
    name: 'a literal in capitals',
    edits: sends({ target: '/V1/orders/17' }),
    outcome: NO_MATCH,
    onWire: { what: 'a literal in other capitals' },
  },
  {
    name: 'a trailing slash',
    edits: sends({ target: '/v1/orders/17/' }),
    outcome: NO_MATCH,
    onWire: { what: 'a trailing slash' },
  },
  { name: 'an empty placeholder', edits: sends({ target: '/v1/orders/' }), outcome: NO_MATCH },
  { name: 'a segment too many', edits: sends({ target: '/v1/orders/17/18' }), outcome: NO_MATCH },
  { name: 'a segment too few', edits: sends({ target: '/v1' }), outcome: NO_MATCH },
  { name: 'the root', edits: sends({ target: '/' }), outcome: NO_MATCH },
  {
    name: 'a placeholder with its sibling in other capitals',
    bundle: SIBLING,
    edits: sends({ target: '/v1/orders/Export' }),
    outcome: NO_MATCH,
  },
  {
    name: 'a placeholder with another value than its sibling',
    bundle: SIBLING,
    edits: sends({ target: '/v1/orders/exports' }),
    outcome: 'allowed',
  },
  {
    name: 'a literal before a placeholder',
    bundle: SIBLING,
    edits: sends({ target: '/v1/orders/export' }),
    outcome: 'request_binding_mismatch/route-id 403',
  },
].map((vector) => ({ ...vector, name: `route: ${vector.name}`, plan: BILLING }));

const ORIGINS: readonly VectorCase[] = [
  {
    name: 'another host',
    edits: sends({ authority: 'evil.example' }),
    outcome: ORIGIN,
    onWire: { what: 'another host' },
  },
  {
    name: 'another port',
    edits: sends({ authority: 'api.shop.example:444' }),
    outcome: ORIGIN,
    onWire: { what: 'another port' },
  },
  {
    name: 'a port with a zero in front',
    edits: arrives({ authority: 'api.shop.example:0443' }),
    outcome: ORIGIN,
  },
  { name: 'no authority', edits: arrives({ authority: '' }), outcome: ORIGIN },
  { name: 'a user name', edits: sends({ authority: 'shop@api.shop.example' }), outcome: ORIGIN },
  { name: 'a scheme in capitals', edits: arrives({ scheme: 'HTTPS' }), outcome: ORIGIN },
  { name: 'no scheme', edits: arrives({ scheme: '' }), outcome: ORIGIN },
  { name: 'another scheme', edits: sends({ scheme: 'http' }), outcome: ORIGIN },
  {
    name: 'another host after the right one',
    edits: arrives({ authority: 'api.shop.example.evil.example' }),
    outcome: ORIGIN,
  },
  { name: 'IPv6', bundle: IPV6, edits: sends({ authority: '[2001:db8::1]:8443' }), outcome: 'allowed' },
  {
    name: 'IPv6, received in capitals',
    bundle: IPV6,
    edits: { ...sends({ authority: '[2001:db8::1]:8443' }), ...arrives({ authority: '[2001:DB8::1]:8443' }) },
    outcome: 'allowed',
  },
  {
    name: 'IPv6 in another spelling',
    bundle: IPV6,
    edits: sends({ authority: '[2001:db8:0::1]:8443' }),
    outcome: ORIGIN,
  },
  {
    name: 'IPv6 without brackets',
    bundle: IPV6,
    edits: sends({ authority: '2001:db8::1:8443' }),
    outcome: ORIGIN,
  },
  {
    name: 'a name beyond ASCII, as its A-label',
    bundle: IDN,
    edits: sends({ authority: 'xn--bcher-kva.example' }),
    outcome: 'allowed',
  },
  {
    name: 'a name beyond ASCII as such',
    bundle: IDN,
    edits: arrives({ authority: 'b\xfccher.example' }),
    outcome: ORIGIN,
  },
].map((vector) => ({ ...vector, name: `origin: ${vector.name}`, plan: BILLING }));

const SIGNED_OTHERWISE: readonly VectorCase[] = [
  ['the authority in capitals', /authority=.*\n/, 'authority=API.shop.example\n', 'authority'],
  ['the default port', /authority=.*\n/, 'authority=api.shop.example:443\n', 'authority'],
  ['a trailing dot', /authority=.*\n/, 'authority=api.shop.example.\n', 'authority'],
  ['the target without its query', /target=([^?]*)\?.*\n/, 'target=$1\n', 'target'],
  ['the target decoded', /target=.*\n/, 'target=/v1/orders/1 7\n', 'target'],
  ['the query in another order', /\?(.*)&(.*)\n/, '?$2&$1\n', 'target'],
  ['the method in lower case', 'method=GET', 'method=get', 'method'],
].map(([what, from, to, detail]) => ({
  name: `signed otherwise: ${String(what)}`,
  plan: BILLING,
  edits: { transcriptText: (text: string) => replaced(text, from ?? '', String(to)) },
  outcome: `request_binding_mismatch/${String(detail)} 403`,
}));

export const ROUTE_CASES: readonly VectorCase[] = [
  ...REFUSED_TARGETS,
  ...CANONICAL_TARGETS,
  ...TEMPLATES,
  ...ORIGINS,
  ...SIGNED_OTHERWISE,
];
