/** Shapes of unmatched paths: bounded in every way that a caller chooses, and the same after a restart. */
import { mkdtemp, readFile, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parsePathTemplate } from '../../../src/protocol/path-template.ts';
import { deny } from '../../../src/protocol/reasons.ts';
import { MAX_SHAPES, ObservedPaths } from '../../../src/verifier/observation/observed-paths.ts';
import {
  readObservedPaths,
  writeObservedPaths,
} from '../../../src/verifier/observation/observed-paths-file.ts';
import { PathKeeper } from '../../../src/verifier/observation/path-keeper.ts';
import { signRequest } from '../../support/fixtures/signed-request.ts';
import { compileSite, newSiteKeys, siteContent } from '../../support/fixtures/snapshot.ts';
import { createTestVerifier } from '../../support/fixtures/test-verifier.ts';

const NOW_MS = Date.UTC(2026, 10, 28);
/** Routes whose literals may go with the next bundle. */
const NUMBERED = Array.from({ length: 61 }, (_, n) => ({ pathTemplate: `/${n}/${n}` }));
const keys = newSiteKeys();
const snapshot = await compileSite(siteContent(keys));

function counted(paths: ObservedPaths): readonly string[] {
  return paths.shapes().map(({ method, pathTemplate, requests }) => `${requests} ${method} ${pathTemplate}`);
}

function add(paths: ObservedPaths, count: number, pathOf: (n: number) => string, method = 'GET'): void {
  for (let n = 0; n < count; n++) paths.add(method, pathOf(n), NOW_MS + n);
}

describe('shapes of paths', () => {
  it('keep the values of a segment up to twenty, and one placeholder for more', () => {
    const paths = new ObservedPaths();
    add(paths, 20, (n) => `/v2/reports/${n}`);
    expect(paths.shapes()).toHaveLength(20);
    add(paths, 30, (n) => `/v2/reports/${n}`);
    add(paths, 1, () => '/v2/status');
    expect(counted(paths)).toEqual(['50 GET /v2/reports/{p3}', '1 GET /v2/status']);
    expect(paths.shapes()[0]).toMatchObject({ firstSeenMs: NOW_MS, lastSeenMs: NOW_MS + 29 });
  });

  it('keep what follows a placeholder', () => {
    const paths = new ObservedPaths();
    add(paths, 40, (n) => `/v2/reports/${n}/pages/${n % 2}`);
    add(paths, 40, (n) => `/v2/reports/${n}`, 'DELETE');
    expect(counted(paths)).toEqual([
      '40 DELETE /v2/reports/{p3}',
      '20 GET /v2/reports/{p3}/pages/0',
      '20 GET /v2/reports/{p3}/pages/1',
    ]);
  });

  it('keep literals of known routes beside the placeholder', () => {
    const paths = new ObservedPaths();
    paths.follow(snapshot.routes);
    add(paths, 30, (n) => `/${n}`);
    add(paths, 1, () => '/v1');
    add(paths, 30, (n) => `/${n}x`);
    expect(counted(paths)).toEqual(['60 GET /{p1}', '1 GET /v1']);
  });

  it('end after eight segments, and take a long segment for a value', () => {
    const paths = new ObservedPaths();
    add(paths, 3, (n) => `/a/b/c/d/e/f/g/h/${n}/${n}`);
    add(paths, 2, (n) => `/${'x'.repeat(65 + n)}`);
    expect(counted(paths)).toEqual(['3 GET /a/b/c/d/e/f/g/h/{rest*}', '2 GET /{p1}']);
  });

  it('count requests of other methods together', () => {
    const paths = new ObservedPaths();
    add(paths, 5, (n) => `/${n}`, 'PURGE');
    expect([paths.others, paths.shapes()]).toEqual([5, []]);
  });

  it('are at most 200 after a bundle without the literals that kept values apart', () => {
    const paths = new ObservedPaths();
    paths.follow({ all: () => NUMBERED });
    add(paths, 25, (n) => `/${n}`);
    add(paths, 25, (n) => `/7/${n}`);
    expect(paths.shapes()).toHaveLength(50);
    const others = Array.from({ length: 15 }, (_, n) => ({ pathTemplate: `/other${n}` }));
    paths.follow({ all: () => others });
    add(paths, 1, () => '/7/8');
    expect(counted(paths)).toEqual(['26 GET /{p1}/{p2}', '25 GET /{p1}']);
    for (const { pathTemplate } of others) add(paths, 20, (n) => `${pathTemplate}/${n}`);
    expect(paths.shapes()).toHaveLength(MAX_SHAPES);
  });

  it('are at most 200, whatever callers send, and count each request once', () => {
    const segment = fc.oneof(
      fc.constantFrom('a', 'b', 'v1', 'orders', 'x'.repeat(70), '{a', '{*}', '{}', '{p2}', '{rest*}'),
      fc.nat(60).map(String),
    );
    const path = fc
      .array(segment, { minLength: 1, maxLength: 11 })
      .map((segments) => `/${segments.join('/')}`);
    const request = fc.tuple(fc.constantFrom('GET', 'POST', 'PUT', 'BREW'), path);
    fc.assert(
      fc.property(
        fc.array(request, { minLength: 200, maxLength: 1_000 }),
        fc.boolean(),
        (requests, hasRoutes) => {
          const paths = new ObservedPaths();
          if (hasRoutes) paths.follow({ all: () => NUMBERED });
          for (const [at, [method, target]] of requests.entries()) {
            if (at === 150) paths.follow({ all: () => [] });
            paths.add(method, target, NOW_MS);
          }
          const shapes = paths.shapes();
          expect(shapes.length).toBeLessThanOrEqual(MAX_SHAPES);
          for (const { pathTemplate } of shapes)
            expect(parsePathTemplate(pathTemplate).kind).toBe('template');
          expect(new Set(shapes.map(({ method, pathTemplate }) => `${method} ${pathTemplate}`)).size).toBe(
            shapes.length,
          );
          expect(shapes.reduce((sum, shape) => sum + shape.requests, paths.others)).toBe(requests.length);
          const again = new ObservedPaths(shapes, paths.others);
          expect([again.shapes(), again.others]).toEqual([shapes, paths.others]);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('the file', () => {
  const newFile = async () => join(await mkdtemp(join(tmpdir(), 'proofgate-paths-')), 'paths.json');

  it('holds what an earlier run saw, for its owner alone', async () => {
    const file = await newFile();
    const onFailed = (error: unknown) => {
      throw error;
    };
    const first = new PathKeeper({ file, authSite: 'shop', kept: undefined, onFailed });
    first.follow(snapshot);
    for (let n = 0; n < 25; n++) first.add('GET', `/v2/reports/${n}?page=${n}`, NOW_MS);
    await first.close();
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const kept = await readObservedPaths(file);
    expect(kept.authSite).toBe('shop');
    const second = new PathKeeper({ file, authSite: 'shop', kept, onFailed });
    second.add('GET', '/v2/reports/26', NOW_MS + 1_000);
    await second.close();
    expect((await readObservedPaths(file)).shapes).toEqual([
      {
        method: 'GET',
        pathTemplate: '/v2/reports/{p3}',
        requests: 26,
        firstSeenMs: NOW_MS,
        lastSeenMs: NOW_MS + 1_000,
      },
    ]);
    for (const { pathTemplate } of kept.shapes) expect(parsePathTemplate(pathTemplate).kind).toBe('template');
  });

  it('is not read when it is damaged in any place', async () => {
    const file = await newFile();
    const shape = {
      method: 'GET',
      pathTemplate: '/a/{p2}',
      requests: 1,
      firstSeenMs: NOW_MS,
      lastSeenMs: NOW_MS,
    };
    await writeObservedPaths(file, { authSite: 'shop', shapes: [shape], others: 0 });
    const text = await readFile(file, 'utf8');
    const damages: readonly (readonly [from: string, to: string])[] = [
      ['observed-paths/v1', 'observed-paths/v2'],
      ['"shop"', '7'],
      ['"other_requests": 0', '"other_requests": -1'],
      ['"GET"', '"get"'],
      ['"/a/{p2}"', '7'],
      ['/a/{p2}', '/a/../{p2}'],
      ['"requests": 1', '"requests": 1.5'],
      ['2026-11-28', '2026-13-28'],
      ['"shapes"', '"shape"'],
      ['{', '{"format": "x",'],
    ];
    for (const [from, to] of damages) {
      expect(text).toContain(from);
      await writeFile(file, text.replace(from, to));
      await expect(readObservedPaths(file)).rejects.toMatchObject({ code: 'observed_paths_invalid' });
    }
  });
});

it('hears of unmatched requests alone', () => {
  const unmatched: string[] = [];
  const onUnmatched = (method: string, target: string) => unmatched.push(`${method} ${target}`);
  const { verifier } = createTestVerifier({ snapshot, onUnmatched });
  const { facts } = signRequest(keys, { caller: 'billing', route: 'everything' });
  for (const target of ['/v9/absent?x=1', '/v9/../absent', facts.target]) {
    void verifier.check({ ...facts, target });
  }
  void verifier.check({ ...facts, authority: 'elsewhere.example', target: '/v9/absent' });
  verifier.refuse({ ...facts, target: '/v9/absent' }, deny('bundle_route_missing', 'no_match'));
  expect(unmatched).toEqual([`${facts.method} /v9/absent?x=1`]);
});
