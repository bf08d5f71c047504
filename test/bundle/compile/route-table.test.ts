/** Tests which route a request matches: examples, then the table against a naive reference. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { RouteTree } from '../../../src/bundle/compile/route-table.ts';
import type { Route, RouteMatch } from '../../../src/bundle/compile/snapshot.ts';
import { parsePathTemplate } from '../../../src/protocol/path-template.ts';

const A = 'https://a.example';
const B = 'https://b.example';
const SITE = new Set([A, B]);

interface RouteSpec {
  readonly template: string;
  readonly method: string;
  readonly origins: readonly string[];
}

const spec = (template: string, method = 'GET', origins = [A, B]): RouteSpec => ({
  template,
  method,
  origins,
});

function routeOf({ template, method, origins }: RouteSpec): Route {
  return {
    routeId: `${method} ${template} ${origins.join(' ')}`,
    method,
    pathTemplate: template,
    audience: A,
    freshness: { kind: 'realtime', maxStalenessSeconds: undefined },
    resource: 'r',
    access: 'read',
    origins: new Set(origins),
    signedHeaders: [],
    body: 'bound',
    requiredProvenance: [],
    requiredContext: [],
    upgrade: undefined,
    passportHeader: 'authorization',
    forwardAuthorization: false,
    acceptedProofs: undefined,
    unbound: new Set(),
    needsDpopNonce: false,
    acceptsUnrevocable: false,
    observeUntilSeconds: undefined,
    sources: [],
  };
}

function segmentsOf(template: string) {
  const parsed = parsePathTemplate(template);
  if (parsed.kind === 'problem') throw new Error(`${template}: ${parsed.text}`);
  return parsed.segments;
}

/** Builds the tree of the routes. @throws when two of them conflict */
function tableOf(specs: readonly RouteSpec[]): RouteTree {
  const tree = new RouteTree(SITE);
  for (const one of specs) {
    const conflict = tree.add(routeOf(one), segmentsOf(one.template));
    if (conflict !== undefined) throw new Error(`${one.template}: ${conflict.kind}`);
  }
  return tree;
}

function answer(match: RouteMatch): string {
  return match.kind === 'route' ? match.route.pathTemplate : match.detail;
}

describe('matching', () => {
  const table = tableOf([
    spec('/'),
    spec('/v1/orders'),
    spec('/v1/orders/'),
    spec('/v1/orders/{id}'),
    spec('/v1/orders/{id}', 'DELETE', [A]),
    spec('/v1/orders/search'),
    spec('/v1/orders/{id}/items'),
    spec('/v1/files/{path*}'),
    spec('/v1/files/index'),
    spec('/v1/Case/{x}'),
    spec('/v1/caf%C3%A9'),
    spec('/v1/{any}'),
    spec('/only-a', 'GET', [A]),
  ]);
  it.each([
    ['/', '/'],
    ['/v1/orders', '/v1/orders'],
    ['/v1/orders/', '/v1/orders/'],
    ['/v1/orders/17', '/v1/orders/{id}'],
    ['/v1/orders/17/', 'no_match'],
    ['/v1/orders/17/items', '/v1/orders/{id}/items'],
    ['/v1/orders/17/items/', 'no_match'],
    ['/v1/orders/search', '/v1/orders/search'],
    // The literal was taken, and there is no going back.
    ['/v1/orders/search/items', 'no_match'],
    ['/v1/orders/Search', 'no_match'],
    ['/v1/ORDERS', 'no_match'],
    ['/v1/ORDERS/17', 'no_match'],
    ['/v1/other', '/v1/{any}'],
    ['/v1/', 'no_match'],
    ['/v1', 'no_match'],
    ['/v1/case/x', 'no_match'],
    ['/v1/Case/x', '/v1/Case/{x}'],
    ['/v1/caf%C3%A9', '/v1/caf%C3%A9'],
    ['/v1/caf%c3%a9', 'no_match'],
    ['/v1/files/a', '/v1/files/{path*}'],
    ['/v1/files/a/b/c', '/v1/files/{path*}'],
    ['/v1/files/a/', 'no_match'],
    ['/v1/files/', 'no_match'],
    ['/v1/files', 'no_match'],
    ['/v1/files/a//b', 'no_match'],
    ['/v1/files/index', '/v1/files/index'],
    ['/v1/files/index/x', 'no_match'],
    ['/v1/files/INDEX', 'no_match'],
    ['/V1/orders', 'no_match'],
    ['/__proto__', 'no_match'],
    ['/v1/__proto__', '/v1/{any}'],
    ['', 'no_match'],
    ['v1/orders', 'no_match'],
  ])('%s', (path, expected) => {
    expect(answer(table.match('GET', A, path))).toBe(expected);
  });

  it.each([
    ['an origin of no site', 'GET', 'https://c.example', '/v1/orders', 'origin'],
    ['an origin of no site, and no route', 'GET', 'https://c.example', '/nothing', 'origin'],
    ['another origin than the route’s', 'GET', B, '/only-a', 'origin'],
    ['another origin than the method’s', 'DELETE', B, '/v1/orders/17', 'origin'],
    ['the method at its origin', 'DELETE', A, '/v1/orders/17', '/v1/orders/{id}'],
    ['another method', 'PUT', A, '/v1/orders/17', 'no_match'],
    ['another case of the method', 'get', A, '/v1/orders/17', 'no_match'],
  ])('%s', (_name, method, origin, path, expected) => {
    expect(answer(table.match(method, origin, path))).toBe(expected);
  });

  it.each([
    ['/v1/orders%3Aexport', '/v1/orders:export'],
    ['/v1/ORDERS%3aexport', '/v1/orders:export'],
    ['/v1/%40admin', '/v1/@admin'],
    ['/v1/caf%c3%a9', '/v1/caf%C3%A9'],
    ['/v1/%40admin', '/v1/%40Admin'],
  ])('gives %s to no route beside %s: an upstream may decode it', (path, literal) => {
    const routes = tableOf([spec(literal), spec('/v1/{name}')]);
    expect(answer(routes.match('GET', A, path))).toBe('no_match');
    expect(answer(routes.match('GET', A, literal))).toBe(literal);
    expect(answer(routes.match('GET', A, '/v1/other%40'))).toBe('/v1/{name}');
  });

  it('counts its routes', () => {
    expect(table.size).toBe(13);
  });
});

/** The rules as sentences, at any cost: the reference that the tree is compared with. */
function referenceMatch(specs: readonly RouteSpec[], method: string, origin: string, path: string): string {
  if (!SITE.has(origin)) return 'origin';
  const segments = path.slice(1).split('/');
  let candidates = specs.map((one) => ({ one, parts: one.template.slice(1).split('/') }));
  for (const [index, segment] of segments.entries()) {
    const literal = candidates.filter(({ parts }) => parts[index] === segment);
    const isPlaceholder = (part: string | undefined) => part?.startsWith('{') === true;
    const siblings = candidates.map(({ parts }) => parts[index]).filter((part) => !isPlaceholder(part));
    if (literal.length > 0) candidates = literal;
    else if (siblings.some((part) => part !== undefined && fold(part) === fold(segment))) return 'no_match';
    else {
      candidates = candidates.filter(({ parts }) => isPlaceholder(parts[index]) && segment !== '');
      const rest = candidates.filter(({ parts }) => parts[index]?.endsWith('*}'));
      if (rest.length > 0) {
        if (segments.slice(index).includes('')) return 'no_match';
        return pick(
          rest.map(({ one }) => one),
          method,
          origin,
        );
      }
    }
  }
  return pick(
    candidates.filter(({ parts }) => parts.length === segments.length).map(({ one }) => one),
    method,
    origin,
  );
}

function pick(specs: readonly RouteSpec[], method: string, origin: string): string {
  const ofMethod = specs.filter((one) => one.method === method);
  if (ofMethod.length === 0) return 'no_match';
  return ofMethod.find(({ origins }) => origins.includes(origin))?.template ?? 'origin';
}

/** Written apart from the tree's own. */
function fold(segment: string): string {
  return decodeURIComponent(segment).toLowerCase();
}

describe('the tree against the reference', () => {
  const literal = fc.constantFrom('a', 'b', 'A', 'ab', 'v1');
  const segment = fc.oneof({ weight: 3, arbitrary: literal }, { weight: 2, arbitrary: fc.constant('{x}') });
  const template = fc
    .tuple(fc.array(segment, { maxLength: 3 }), fc.constantFrom('', 'a', '{rest*}', '{last}'))
    .map(([front, last]) => `/${[...front.map((part, i) => part.replace('x', `x${i}`)), last].join('/')}`);
  const specs = fc.array(
    fc.record({
      template,
      method: fc.constantFrom('GET', 'POST'),
      origins: fc.constantFrom([A], [B], [A, B]),
    }),
    { maxLength: 12 },
  );
  const path = fc
    .array(fc.constantFrom('a', 'b', 'A', 'B', 'ab', 'AB', 'v1', 'V1', 'z', ''), {
      minLength: 1,
      maxLength: 5,
    })
    .map((parts) => `/${parts.join('/')}`);

  it('gives the same answer for any routes and any path', () => {
    fc.assert(
      fc.property(
        specs,
        fc.array(fc.tuple(fc.constantFrom('GET', 'POST'), fc.constantFrom(A, B, 'https://c.example'), path), {
          minLength: 20,
          maxLength: 20,
        }),
        (candidates, requests) => {
          const taken = withoutConflicts(candidates);
          const table = tableOf(taken);
          for (const routeId of taken.map((one) => routeOf(one).routeId)) {
            expect(table.find(routeId)?.routeId).toBe(routeId);
          }
          expect(table.find('of no route')).toBeUndefined();
          for (const [method, origin, at] of requests) {
            expect(`${at} ${answer(table.match(method, origin, at))}`).toBe(
              `${at} ${referenceMatch(taken, method, origin, at)}`,
            );
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  it('takes any text for a path', () => {
    const table = tableOf([spec('/a/{x}'), spec('/b/{y*}')]);
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(['route', 'no_route']).toContain(table.match('GET', A, text).kind);
      }),
    );
  });

  it('refuses exactly the routes that could match one request', () => {
    fc.assert(
      fc.property(specs, (candidates) => {
        const taken: RouteSpec[] = [];
        for (const one of candidates) {
          const tree = tableOf(taken);
          const conflict = tree.add(routeOf(one), segmentsOf(one.template));
          expect(conflict !== undefined).toBe(conflicts(one, taken));
          if (conflict === undefined) taken.push(one);
        }
      }),
      { numRuns: 300 },
    );
  });
});

function withoutConflicts(candidates: readonly RouteSpec[]): readonly RouteSpec[] {
  const taken: RouteSpec[] = [];
  for (const one of candidates) if (!conflicts(one, taken)) taken.push(one);
  return taken;
}

/** Placeholders without their names. */
function shapeOf(template: string): string {
  return template.replaceAll(/\{\w+(\*?)\}/g, '{$1}');
}

function conflicts(one: RouteSpec, taken: readonly RouteSpec[]): boolean {
  const parts = shapeOf(one.template).split('/');
  return taken.some((other) => {
    const otherParts = shapeOf(other.template).split('/');
    const meets = parts.some((part, index) => {
      const otherPart = otherParts[index];
      const isSamePlace = parts.slice(0, index).join('/') === otherParts.slice(0, index).join('/');
      return isSamePlace && [part, otherPart].sort().join(' ') === '{*} {}';
    });
    const isSameRequest =
      shapeOf(one.template) === shapeOf(other.template) &&
      one.method === other.method &&
      one.origins.some((origin) => other.origins.includes(origin));
    return meets || isSameRequest;
  });
}
