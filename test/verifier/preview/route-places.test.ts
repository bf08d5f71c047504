/** Where the requests of a route `r` of one site go at another: told only where it holds for every path of `r`. */
import { describe, expect, it } from '@jest/globals';
import { ORIGIN } from '../../support/fixtures/bundle-content.ts';
import { previewOf } from '../../support/fixtures/previewed.ts';
import { newSiteKeys, PARTNERS_ORIGIN, siteContent } from '../../support/fixtures/snapshot.ts';

const keys = newSiteKeys();

/** Templates by route_id, for GET and the site's origins unless the template says otherwise. */
type Templates = Readonly<Record<string, string | { path: string; method?: string; origins?: string[] }>>;

async function placesOf(templates: Templates, moreOrigins: readonly string[] = []) {
  const content = siteContent(keys);
  content.origins.push(...moreOrigins);
  const allowed_sources = content.route_sources[0]?.allowed_sources ?? [];
  const ids = Object.keys(templates);
  content.routes = Object.entries(templates).map(([route_id, template]) => {
    const { method = 'GET', origins, path } = typeof template === 'string' ? { path: template } : template;
    return {
      ...{ route_id, method, path_template: path, audience: ORIGIN, freshness_class: 'realtime' },
      ...(origins && { origins }),
    };
  });
  content.route_sources = ids.map((route_id) => ({ route_id, allowed_sources }));
  return (await previewOf(content)).places;
}

async function verdictOf(before: Templates, after: Templates): Promise<string> {
  const verdict = (await placesOf(after)).verdict('r', await placesOf(before));
  return verdict.kind === 'route' ? verdict.route.routeId : verdict.kind;
}

describe('a request of the route', () => {
  it.each<[expected: string, before: Templates, after: Templates]>([
    ['r', { r: '/a/{x}' }, { r: '/a/{y}' }],
    ['r', { r: '/a/{x}' }, { r: '/a/{x}', s: '/b/new' }],
    ['r', { r: '/a/{x}', s: '/a/old' }, { r: '/a/{x}', s: '/a/old' }],
    ['r', { r: '/a/{x}', s: '/a/old' }, { r: '/a/{x}' }],
    ['r', { r: '/a/b' }, { r: '/a/b', s: '/a/{x}' }],
    ['none', { r: '/a/b' }, { s: '/b' }],
    ['none', { r: '/a/b' }, { s: '/a' }],
    ['none', { r: '/a/b' }, { s: '/a/b/c' }],
    ['none', { r: '/a/b' }, { s: '/a/c' }],
    ['none', { r: '/a/b' }, { s: { path: '/a/b', method: 'POST' } }],
    ['none', { r: '/a/b' }, { r: { path: '/a/b', method: 'POST' } }],
    ['none', { r: '/a/{x}' }, { r: '/a/{x}/more' }],
    ['none', { r: '/a/{x*}' }, { s: '/b/c' }],
    // A literal beside the placeholder took these requests before, too.
    ['none', { r: '/a/{x}', s: '/a/17' }, { s: '/a/17' }],
  ])('meets %s: %j, then %j', async (expected, before, after) => {
    expect(await verdictOf(before, after)).toBe(expected);
  });

  it.each<[before: Templates, after: Templates]>([
    [{ r: '/a/b' }, { s: '/a/b' }],
    [{ r: '/a/b' }, { s: '/a/b', t: '/c' }],
    [{ r: '/a/b' }, { s: '/a/{x}' }],
    [{ r: '/a/b' }, { s: '/{x*}' }],
    [{ r: '/a/{x}' }, { s: '/a/{y}' }],
    [{ r: '/a/{x}' }, { s: '/{y}/{x}' }],
    [{ r: '/a/{x}' }, { s: '/a/17' }],
    [{ r: '/a/{x}' }, { r: '/a/{x*}' }],
    [
      { r: '/a/{x}', s: '/a/new' },
      { r: '/a/{x}', s: '/a/new', t: '/a/~new' },
    ],
    [{ r: '/a/{x}', s: '/a/new' }, { t: '/a/~new' }],
    [{ r: '/a/{x}' }, { r: '/a/{x}', s: '/a/new' }],
    [{ r: '/a/{x}' }, { r: '/a/{x}', s: '/a/new/more' }],
    [{ r: '/a/{x*}' }, { s: '/a/b/c' }],
    [{ r: '/a/{x*}' }, { s: '/a/b' }],
    [{ r: '/a/{x}' }, { r: { path: '/a/{x}', origins: [ORIGIN] } }],
    [{ s: '/a/{x}' }, { r: '/a/{x}' }],
  ])('may meet this or that, as its path says: %j, then %j', async (before, after) => {
    expect(await verdictOf(before, after)).toBe('unknown');
  });

  it('is compared anew for another site', async () => {
    const after = await placesOf({ r: '/a/{x}' });
    const befores = [await placesOf({ r: '/a/{x}' }), await placesOf({ r: '/b' })];
    const kinds = [...befores, ...befores].map((before) => after.verdict('r', before).kind);
    expect(kinds).toEqual(['route', 'none', 'route', 'none']);
  });
});

describe('two sites', () => {
  const SITE: Templates = { r: '/a/{x}', s: { path: '/b', method: 'POST' } };

  it('match alike whatever their routes and placeholders are called', async () => {
    const origins = [ORIGIN, PARTNERS_ORIGIN];
    const before = await placesOf({ ...SITE, t: { path: '/c', origins } });
    const renamed = {
      ...{ last: { path: '/c', origins: origins.toReversed() } },
      ...{ other: { path: '/b', method: 'POST' }, one: '/a/{y}' },
    };
    expect(before.equals(await placesOf(renamed))).toBe(true);
  });

  it.each<[what: string, other: Templates]>([
    ['a route more', { ...SITE, t: '/c' }],
    ['another method', { ...SITE, s: '/b' }],
    ['another path', { ...SITE, r: '/a/x' }],
    ['a path to the end', { ...SITE, r: '/a/{x*}' }],
    ['another origin', { ...SITE, r: { path: '/a/{x}', origins: [PARTNERS_ORIGIN] } }],
  ])('do not match alike with %s', async (_what, other) => {
    expect((await placesOf(SITE)).equals(await placesOf(other))).toBe(false);
  });

  it('do not match alike when one has another origin', async () => {
    const more = await placesOf({ r: { path: '/a', origins: [ORIGIN] } }, ['https://new.shop.example']);
    expect(more.equals(await placesOf({ r: { path: '/a', origins: [ORIGIN] } }))).toBe(false);
  });
});
