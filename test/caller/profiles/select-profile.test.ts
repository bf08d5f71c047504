import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { RouteTree } from '../../../src/bundle/compile/route-table.ts';
import type { Route } from '../../../src/bundle/compile/snapshot.ts';
import {
  matchTemplates,
  type ProfileChoice,
  selectProfile,
} from '../../../src/caller/profiles/select-profile.ts';
import { parseRequestUrl } from '../../../src/caller/request-url.ts';
import { type PathTemplate, parsePathTemplate } from '../../../src/protocol/path-template.ts';
import { codeOf, profilesOf, routeDocument } from '../../support/caller/signing.ts';

const ORIGIN = 'https://api.shop.example';
const ONLY_FIT: ProfileChoice = { kind: 'only_fit' };

function select(profiles: ReturnType<typeof profilesOf>, method: string, url: string, choice = ONLY_FIT) {
  return selectProfile(profiles.profiles, method, parseRequestUrl(url), choice).routeId;
}

function messageOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    return error instanceof Error ? error.message : '';
  }
  return '';
}

describe('selectProfile', () => {
  const profiles = profilesOf(
    routeDocument({ route_id: 'read' }),
    routeDocument({ route_id: 'delete', method: 'DELETE' }),
    routeDocument({ route_id: 'mine', path_template: '/v1/orders/mine' }),
    routeDocument({ route_id: 'eu', path_template: '/v1/eu', origins: [ORIGIN] }),
    routeDocument({
      route_id: 'us',
      path_template: '/v1/eu',
      origins: ['https://us.shop.example'],
      name: 'america',
    }),
    routeDocument({
      route_id: 'twin',
      path_template: '/v1/eu',
      origins: ['https://us.shop.example'],
      method: 'PUT',
    }),
    routeDocument({
      route_id: 'twin2',
      path_template: '/v1/eu',
      origins: ['https://us.shop.example'],
      method: 'PUT',
    }),
  );

  it('goes by path, then method, then origin', () => {
    expect(select(profiles, 'GET', `${ORIGIN}/v1/orders/7`)).toBe('read');
    expect(select(profiles, 'DELETE', `${ORIGIN}/v1/orders/7`)).toBe('delete');
    expect(select(profiles, 'GET', `${ORIGIN}/v1/orders/mine?x`)).toBe('mine');
    expect(select(profiles, 'GET', 'https://us.shop.example/v1/eu')).toBe('us');
    expect(select(profiles, 'GET', `${ORIGIN}/v1/eu`)).toBe('eu');
  });

  it.each([
    ['GET', `${ORIGIN}/v1/orders/MINE`, 'profile_not_found'],
    ['DELETE', `${ORIGIN}/v1/orders/mine`, 'profile_not_found'],
    ['GET', `${ORIGIN}/v1/orders/`, 'profile_not_found'],
    ['GET', `${ORIGIN}/v1/orders/7/`, 'profile_not_found'],
    ['PATCH', `${ORIGIN}/v1/orders/7`, 'profile_not_found'],
    ['GET', 'https://evil.example/v1/orders/7', 'origin_not_allowed'],
    ['PUT', 'https://us.shop.example/v1/eu', 'profile_ambiguous'],
    ['PUT', `${ORIGIN}/v1/eu`, 'origin_not_allowed'],
  ])('refuses %s %s: %s', (method, url, code) => {
    expect(codeOf(() => select(profiles, method, url))).toBe(code);
  });

  it.each([
    // The literal of another method's route takes precedence over the placeholder.
    ['GET', '/v1/orders', ['GET /v1/{p*}', 'POST /v1/orders', 'precedence'], []],
    ['DELETE', '/v1/orders', ['POST /v1/orders'], ['GET /v1/{p*}']],
    ['GET', '/v1/files/', ['slash', 'GET /v1/{p*}', '/v1/files'], []],
    ['GET', '/v2/files', ['GET /v1/{p*}', 'POST /v1/orders'], ['precedence', 'slash']],
  ])('says what is nearest to %s %s', (method, path, named, unnamed) => {
    const some = profilesOf(
      routeDocument({ route_id: 'files', path_template: '/v1/{p*}' }),
      routeDocument({ route_id: 'create', method: 'POST', path_template: '/v1/orders' }),
    );
    const text = messageOf(() => select(some, method, `${ORIGIN}${path}`));
    expect(named.filter((one) => !text.includes(one))).toEqual([]);
    expect(unnamed.filter((one) => text.includes(one))).toEqual([]);
  });

  it('holds a named profile to its method, template and origins', () => {
    const us = 'https://us.shop.example/v1/eu';
    expect(select(profiles, 'PUT', us, { kind: 'route_id', routeId: 'twin2' })).toBe('twin2');
    expect(select(profiles, 'GET', us, { kind: 'name', name: 'america' })).toBe('us');
    expect(codeOf(() => select(profiles, 'GET', us, { kind: 'name', name: 'us' }))).toBe('profile_not_found');
    expect(codeOf(() => select(profiles, 'PUT', us, { kind: 'name', name: 'america' }))).toBe(
      'profile_mismatch',
    );
    expect(codeOf(() => select(profiles, 'GET', `${us}/x`, { kind: 'name', name: 'america' }))).toBe(
      'profile_mismatch',
    );
    expect(codeOf(() => select(profiles, 'GET', `${ORIGIN}/v1/eu`, { kind: 'name', name: 'america' }))).toBe(
      'origin_not_allowed',
    );
  });
});

describe('matchTemplates', () => {
  it('finds what the route table of a verifier finds', () => {
    const segment = fc.constantFrom('a', 'A', 'b', 'x', '', '{p}', '{r*}');
    const template = fc.array(segment, { minLength: 1, maxLength: 4 }).map((parts) => `/${parts.join('/')}`);
    const path = fc
      .array(fc.constantFrom('a', 'A', 'b', 'B', 'x', ''), { minLength: 1, maxLength: 5 })
      .map((parts) => `/${parts.join('/')}`)
      .filter((text) => !text.includes('//'));
    fc.assert(
      fc.property(
        fc.array(template, { minLength: 1, maxLength: 6 }),
        fc.array(path, { minLength: 1 }),
        (templates, paths) => {
          const { tree, kept } = treeOf(templates);
          for (const candidate of paths) {
            const match = tree.match('GET', ORIGIN, candidate);
            const expected = match.kind === 'route' ? [match.route.routeId] : [];
            expect(matchTemplates(kept, candidate).map((entry) => entry.template.text)).toEqual(expected);
          }
        },
      ),
    );
  });
});

/** The templates that form a valid route table, and that table. */
function treeOf(templates: readonly string[]) {
  let kept: readonly { readonly template: PathTemplate }[] = [];
  let tree = new RouteTree(new Set([ORIGIN]));
  for (const text of templates) {
    const template = parsePathTemplate(text);
    if (template.kind === 'problem') continue;
    const wider = [...kept, { template }];
    const candidate = buildTree(wider.map((entry) => entry.template.text));
    if (candidate === undefined) continue;
    kept = wider;
    tree = candidate;
  }
  return { tree, kept };
}

/** Undefined when two templates conflict. */
function buildTree(templates: readonly string[]): RouteTree | undefined {
  const tree = new RouteTree(new Set([ORIGIN]));
  for (const text of templates) {
    const parsed = parsePathTemplate(text);
    if (parsed.kind === 'problem' || tree.add(routeOf(text), parsed.segments) !== undefined) return undefined;
  }
  return tree;
}

function routeOf(text: string): Route {
  return {
    routeId: text,
    method: 'GET',
    pathTemplate: text,
    audience: ORIGIN,
    freshness: { kind: 'bounded', maxStalenessSeconds: 60 },
    resource: text,
    access: 'read',
    origins: new Set([ORIGIN]),
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
