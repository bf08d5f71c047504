/**
 * Fuzzes paths and templates: lines of templates, an empty line, a target. A second matcher, without a tree, must find the same
 * route, and a canonical target must have only one reading.
 */
import { RouteTree } from '../../../src/bundle/compile/route-table.ts';
import type { Route } from '../../../src/bundle/compile/snapshot.ts';
import {
  foldSegment,
  type PathTemplate,
  parsePathTemplate,
  type TemplateSegment,
} from '../../../src/protocol/path-template.ts';
import {
  isCanonicalAuthority,
  isCanonicalTarget,
  normalizeAuthority,
  parseOrigin,
  pathOf,
} from '../../../src/protocol/request-target.ts';
import { readVectors } from '../../support/protocol/published-vectors.ts';
import { SITE_CONTENT } from '../site.ts';
import { type FuzzTarget, mustHold } from '../target.ts';

const ORIGIN = 'https://a.example';
const MAX_TEMPLATES = 12;

function run(input: Buffer): void {
  const text = input.toString('latin1');
  const end = text.indexOf('\n\n');
  const target = end === -1 ? text : text.slice(end + 2);
  checkAuthority(target);
  const isCanonical = isCanonicalTarget(target);
  if (isCanonical) checkCanonical(target);
  const templates = end === -1 ? [] : templatesOf(text.slice(0, end).split('\n').slice(0, MAX_TEMPLATES));
  const table = tableOf(templates);
  if (table === undefined) return;
  const found = table.match('GET', ORIGIN, pathOf(target));
  // Only canonical paths are matched (`steps/route.ts`); others must get an answer all the same.
  if (!isCanonical) return;
  const expected = naiveMatch(templates, pathOf(target));
  mustHold((found.kind === 'route' ? found.route.pathTemplate : undefined) === expected?.text, 'one route');
}

/** Checks that no upstream can read the target differently. */
function checkCanonical(target: string): void {
  const path = pathOf(target);
  mustHold(path.startsWith('/') && !/[^!-~]|#/.test(target), 'a target is visible and has no fragment');
  const decoded = decodeURIComponent(path);
  mustHold(!decoded.includes('%'), 'decoding twice is decoding once');
  mustHold(decoded.split('/').length === path.split('/').length, 'no separator is hidden');
  mustHold(!/[\\;\p{Cc}]/u.test(decoded), 'no other separator, and no control character');
  const inner = decoded.slice(1).split('/');
  mustHold(!inner.slice(0, -1).includes(''), 'no segment but the last is empty');
  mustHold(!inner.some((segment) => segment === '.' || segment === '..'), 'no dot segments');
  const standard = new URL(path, 'http://a.example').pathname;
  mustHold(decodeURIComponent(standard) === decoded, 'a URL parser leaves it as it is');
}

/** The text as an authority and as an origin. */
function checkAuthority(text: string): void {
  if (!isCanonicalAuthority('https', text)) return;
  mustHold(normalizeAuthority('https', text) === text, 'canonical is what normalising leaves');
  mustHold(parseOrigin(`https://${text}`)?.authority === text, 'an origin holds the authority');
  mustHold(!/[A-Z@/?#\\%\s]/.test(text), 'host and port, nothing else');
}

function templatesOf(lines: readonly string[]): readonly PathTemplate[] {
  return lines.flatMap((line) => {
    const template = parsePathTemplate(line);
    if (template.kind === 'problem') return [];
    const literals = template.segments.filter(({ kind }) => kind === 'literal');
    mustHold(`/${template.segments.map(textOf).join('/')}` === line, 'a template is its segments');
    mustHold(!literals.some((segment) => /[{}]/.test(textOf(segment))), 'braces are placeholders');
    return [template];
  });
}

function textOf(segment: TemplateSegment): string {
  if (segment.kind === 'literal') return segment.text;
  return segment.kind === 'one' ? `{${segment.name}}` : `{${segment.name}*}`;
}

/** Undefined where two templates conflict: no bundle would load. */
function tableOf(templates: readonly PathTemplate[]): RouteTree | undefined {
  const tree = new RouteTree(new Set([ORIGIN]));
  const hasConflict = templates.some(
    ({ segments, text }) => tree.add(routeFor(text), segments) !== undefined,
  );
  return hasConflict ? undefined : tree;
}

function routeFor(pathTemplate: string): Route {
  return {
    routeId: pathTemplate,
    method: 'GET',
    pathTemplate,
    audience: ORIGIN,
    freshness: { kind: 'realtime', maxStalenessSeconds: undefined },
    resource: 'r',
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

/** From the left, a literal before a placeholder, without going back: by leaving out templates that are out of the race. */
function naiveMatch(templates: readonly PathTemplate[], path: string): PathTemplate | undefined {
  const values = path.slice(1).split('/');
  let left = templates;
  for (const [at, value] of values.entries()) {
    const literals = left.filter(({ segments }) => segments[at]?.kind === 'literal');
    const exact = literals.filter(({ segments }) => literalAt(segments, at) === value);
    if (exact.length > 0) {
      left = exact;
      continue;
    }
    const isLookAlike = literals.some(
      ({ segments }) => foldSegment(literalAt(segments, at) ?? '') === foldSegment(value),
    );
    if (value === '' || isLookAlike) return undefined;
    const rest = left.find(({ segments }) => segments[at]?.kind === 'rest');
    if (rest !== undefined) return values.slice(at).includes('') ? undefined : rest;
    left = left.filter(({ segments }) => segments[at]?.kind === 'one');
  }
  return left.find(({ segments }) => segments.length === values.length);
}

function literalAt(segments: readonly TemplateSegment[], at: number): string | undefined {
  const segment = segments[at];
  return segment?.kind === 'literal' ? segment.text : undefined;
}

// The schema has been checked, and says the same.
const TARGETS = readVectors('targets.json') as {
  readonly canonical: readonly string[];
  readonly refused: { readonly [why: string]: readonly string[] };
};
const siteTemplates = SITE_CONTENT.routes.map(({ path_template }) => path_template).join('\n');
const targets = [...TARGETS.canonical, ...Object.values(TARGETS.refused).flat()];

export const pathTarget: FuzzTarget = {
  name: 'path',
  seeds: [
    ...targets.map((target) => `${siteTemplates}\n\n${target}`),
    ...SITE_CONTENT.routes.map(({ path_template }) => `${path_template}\n\n${path_template}`),
    '/a/{x}\n/a/b\n/{y}/c\n\n/a/c',
    '/a/{x*}\n/a/B%40/c\n\n/a/b@/c',
    'api.shop.example:8443',
    '[::1]:80',
  ].map((text) => Buffer.from(text, 'latin1')),
  dictionary: [
    ...[
      '/{a}',
      '/{a*}',
      '/{b}',
      '/v1',
      '/orders',
      '\n\n',
      '\n/',
      '/',
      '//',
      '/.',
      '/..',
      '/%2e',
      '%2F',
      '%5c',
    ],
    ...[
      '%25',
      '%00',
      '%7f',
      '%C3%A9',
      '%c2%85',
      '%F0%9F%98%80',
      '%80',
      '%',
      '%4',
      '%40',
      '@',
      '?',
      '#',
      ';',
      '\\',
    ],
    ...['~', '{', '}', '*', '\x80', ':443', ':80', '[::]', '.', '-'],
  ],
  maxBytes: 1024,
  maxStepsPerByte: 400,
  run,
};
