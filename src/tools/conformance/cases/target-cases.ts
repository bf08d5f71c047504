/** Paths that an upstream could read as another path. Each is signed as far as a transcript can contain it. */
import { denied, MALFORMED, type Protocol, type PublicCase, type Subject } from '../wire/conformance-case.ts';
import { requestLines } from '../wire/http2.ts';

export interface AmbiguousTarget {
  readonly target: string;
  /** Default `path_not_canonical`. */
  readonly detail?: 'no_match';
}

/** @param path at least two segments, such as `/v1/orders/4711`, the last of at least two characters */
export function ambiguousTargets(path: string): readonly AmbiguousTarget[] {
  const parent = path.replace(/\/[^/]*$/, '');
  const last = path.slice(parent.length + 1);
  const escaped = `%${last.charCodeAt(0).toString(16)}${last.slice(1)}`;
  const notCanonical = [
    `${parent}/../payroll`,
    `${parent}/%2e%2e/payroll`,
    `${parent}/.%2E/payroll`,
    `${parent}/..;/payroll`,
    `${parent}/..%2fpayroll`,
    `${parent}/..%5cpayroll`,
    `${parent}/..\\payroll`,
    `${parent}\\${last}`,
    `${parent}%2f${last}`,
    `${parent}%5c${last}`,
    `${parent}/%252e%252e`,
    `${path}/.`,
    `${path}/..`,
    `${path}/x/..`,
    `${parent}/./${last}`,
    `${parent}//${last}`,
    `/${path}`,
    `${path}//`,
    `${path};jsessionid=1`,
    `${path}%3bx=1/..`,
    `${path}%00`,
    `${path}%0a`,
    `${path}%0d%0aX-A:%20b`,
    `${path}%09`,
    `${path}%7f`,
    `${path}%c2%80`,
    `${parent}/${escaped}`,
    `${path}#/payroll`,
    `${path}#`,
    `${path}%`,
    `${path}%4`,
    `${path}%zz`,
    `${parent}/%u0034`,
    `${parent}/%c0%ae%c0%ae`,
    `${parent}/%80`,
    `${parent}/%2541`,
    `${parent}/\xe9`,
    `${path}\xff`,
    `${path}\x7f`,
    `${path} x`,
    `${path}\t`,
    path.slice(1),
    '',
    '*',
    '?',
  ];
  const noMatch = [`${path}/`, `${parent}/`, capitalised(path), `${path}/more`];
  return [
    ...notCanonical.map((target) => ({ target })),
    ...noMatch.map((target) => ({ target, detail: 'no_match' as const })),
  ];
}

/** A path without letters has no capitals. */
const capitalised = (path: string) =>
  /[a-z]/.test(path) ? path.replace(/[a-z]/, (letter) => letter.toUpperCase()) : `${path}/A`;

/** The part of a target that a transcript can contain; anything else could not be signed. */
export function printable(target: string): string {
  const visible = target.replace(/[^\x21-\x7e]/g, '!');
  return visible.startsWith('/') ? visible : `/${visible}`;
}

/** The list has the same length for every path, so a case is found by its position and named by the usual path. */
const USUAL_PATH = '/v1/orders/4711';
const pathOf = ({ target }: Subject) => target.split('?')[0] ?? '';

function ambiguousTarget({ target, detail }: AmbiguousTarget, index: number): PublicCase {
  return {
    name: `target ${JSON.stringify(target)}`,
    expected: denied('bundle_route_missing', detail ?? 'path_not_canonical'),
    appliesTo: (subject) =>
      detail === undefined || !subject.isOfRoute(ambiguousTargets(pathOf(subject))[index]?.target ?? ''),
    make: (subject) => {
      const sent = ambiguousTargets(pathOf(subject))[index]?.target ?? '';
      return { ...subject.sign({ target: printable(sent) }).request, target: sent };
    },
  };
}

/** A query with bytes that no transcript can contain, or signed as something else. */
function query(sent: string): PublicCase {
  return {
    name: `query ${JSON.stringify(sent)}`,
    expected: denied('bundle_route_missing', 'path_not_canonical'),
    make: (subject) => {
      const target = `${pathOf(subject)}${sent}`;
      return { ...subject.sign({ target: printable(target) }).request, target };
    },
  };
}

function absolute(
  origin: (subject: Subject) => string,
  what: string,
  expected: PublicCase['expected'],
): PublicCase {
  return {
    name: `absolute target: ${what}`,
    protocols: ['HTTP/1.1'],
    expected,
    mayPass: expected === MALFORMED,
    rejections: [404],
    make: (subject) => ({ ...subject.sign().request, target: `${origin(subject)}${subject.target}` }),
  };
}

const OTHER_ORIGIN = denied('bundle_route_missing', 'origin');

const ABSOLUTE: readonly PublicCase[] = [
  absolute(() => 'http://api.other.example', 'another host', OTHER_ORIGIN),
  absolute(
    ({ authority }) => `http://${authority}@api.other.example`,
    'another host behind a user name',
    OTHER_ORIGIN,
  ),
  // Some servers drop the scheme and read the rest as a relative target.
  absolute(({ authority }) => `ftp://${authority}`, 'another scheme', MALFORMED),
  absolute(() => 'http://', 'no host', MALFORMED),
  absolute(
    ({ authority }) => `//${authority}`,
    'no scheme',
    denied('bundle_route_missing', 'path_not_canonical'),
  ),
];

const splitLine = (name: string, protocol: Protocol, target: (path: string) => string): PublicCase => ({
  name: `target: ${name}`,
  protocols: [protocol],
  expected: MALFORMED,
  mayPass: true,
  make: (subject) => {
    const { request } = subject.sign();
    return { request, lines: requestLines({ ...request, target: target(pathOf(subject)) }) };
  },
});

export const TARGET_CASES: readonly PublicCase[] = [
  ...ambiguousTargets(USUAL_PATH).map(ambiguousTarget),
  ...['?q=a\xffb', '?q=a\x80b', '?q=a b', '?q=a#b', '?q=\x00', '?q=\xc3\xa9'].map(query),
  ...ABSOLUTE,
  splitLine('a line break in :path', 'HTTP/2', (path) => `${path} HTTP/1.1\r\nX-A: b`),
  splitLine('an absolute :path', 'HTTP/2', (path) => `http://api.other.example${path}`),
];
