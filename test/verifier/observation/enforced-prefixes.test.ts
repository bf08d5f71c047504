/** Which unmatched paths begin like an enforced route. Routes of one beginning may differ, and beginnings lie within each other. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Route } from '../../../src/bundle/compile/snapshot.ts';
import { EnforcedPrefixes, foldPath } from '../../../src/verifier/observation/enforced-prefixes.ts';

const routeOf = (pathTemplate: string, routeId = pathTemplate) => ({ pathTemplate, routeId }) as Route;

function covers(path: string, enforced: readonly string[], observed: readonly string[]): boolean {
  const isEnforced = (route: Route) => enforced.includes(route.routeId);
  return new EnforcedPrefixes([...enforced, ...observed].map((template) => routeOf(template))).covers(
    path,
    isEnforced,
  );
}

describe('a path is covered', () => {
  it.each<[path: string, enforced: string[], observed: string[], expected: boolean]>([
    ['/v1/orders/7/items', ['/v1/orders'], [], true],
    ['/v1/orders/7/items', ['/v1/orders'], ['/v1/orders/7'], true],
    ['/v1/orders/7/items', [], ['/v1/orders'], false],
    ['/v1/other', ['/v1/orders'], ['/v1/orders/{id}'], false],
    ['/v1/other', ['/{tenant}/orders'], ['/v1/{p*}'], true],
    ['/', ['/v1'], [], false],
    ['/anything', [], ['/{p*}'], false],
    ['/V1/Orders/', ['/v1/orders'], [], true],
    // Of the small sigma, a letter that follows says which form an upper case one gets.
    ['/%CE%BF%CE%B4%CE%BF%CF%82.json', ['/%CE%BF%CE%B4%CE%BF%CF%82'], [], true],
    // Compatibility forms of `/` and `\\`, and segments of which nothing is left.
    ['/v1%EF%BC%8Forders', ['/v1/orders'], [], true],
    ['/v1%EF%BC%BCorders', ['/v1/orders'], [], true],
    ['/v1%3Bx%EF%BC%8Forders', ['/v1/orders'], [], true],
    ['/x%EF%BC%8F..%EF%BC%8Fv1', ['/v1'], [], true],
    ['/v1/%3Bx/orders', ['/v1/orders'], [], true],
    ['/%E2%80%8B/v1/%20/orders', ['/v1/orders'], [], true],
  ])('%s by %j beside the observed %j: %s', (path, enforced, observed, expected) => {
    expect(covers(path, enforced, observed)).toBe(expected);
  });

  it('by one enforced route among several with the same beginning', () => {
    const routes = ['read', 'write', 'list'].map((id) => routeOf(`/v1/orders/{${id}}`, id));
    const prefixes = new EnforcedPrefixes(routes);
    const coveredBy = (id: string) => prefixes.covers('/v1/orders/7', ({ routeId }) => routeId === id);
    expect(['read', 'write', 'list', 'none'].map(coveredBy)).toEqual([true, true, true, false]);
  });

  it('exactly when an enforced route begins it, for any routes', () => {
    const template = fc
      .array(fc.constantFrom('a', 'ab', 'b', '{p}'), { minLength: 1, maxLength: 3 })
      .map((segments) => `/${segments.map((one, i) => (one === '{p}' ? `{p${i}}` : one)).join('/')}`);
    const templates = fc.uniqueArray(template, { maxLength: 8 });
    const path = fc
      .array(fc.constantFrom('a', 'ab', 'b', 'abc'), { minLength: 1, maxLength: 4 })
      .map((segments) => `/${segments.join('/')}`);
    fc.assert(
      fc.property(templates, templates, path, (enforced, others, asked) => {
        const observed = others.filter((one) => !enforced.includes(one));
        const beginnings = enforced.map((one) => foldPath(one.split('{', 1)[0] ?? ''));
        const expected = beginnings.some((beginning) => foldPath(asked)?.startsWith(beginning ?? ''));
        expect(covers(asked, enforced, observed)).toBe(expected);
      }),
      { numRuns: 500 },
    );
  });
});
