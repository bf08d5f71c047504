/** Settings of nginx that weaken or bypass the check by ngx_http_auth_request_module. */

import { PROOF_FIELDS } from '../../../protocol/wire-names.ts';
import type { Rule } from '../gateway/gateway.ts';
import { asksForAllProofs, CONTEXT_HEADERS } from '../gateway/header-names.ts';
import { type Directive, everyDirective } from './configuration.ts';

type Nginx = readonly Directive[];

const FORWARDING = /^(?:proxy|fastcgi|uwsgi|scgi|grpc|memcached)_pass$/;

/** A directive of a block, which nginx inherits from the nearest enclosing block that has it. */
function effective(block: Directive | undefined, name: string): Directive | undefined {
  return block && (block.block.findLast((one) => one.name === name) ?? effective(block.parent, name));
}

function own(block: Directive, name: string): readonly Directive[] {
  return block.block.filter((one) => one.name === name);
}

function locations(nginx: Nginx): readonly Directive[] {
  return everyDirective(nginx).filter(({ name }) => name === 'location');
}

/** The location that a check uses; undefined without a check. */
function checkOf(location: Directive): string | undefined {
  const [target] = effective(location, 'auth_request')?.values ?? [];
  return target === 'off' ? undefined : target;
}

/** The locations that checks use. nginx does not check subrequests, so these locations are unchecked. */
function checkLocations(nginx: Nginx): readonly Directive[] {
  const targets = new Set(locations(nginx).flatMap((location) => checkOf(location) ?? []));
  return locations(nginx).filter(({ values }) => targets.has(values.at(-1) ?? ''));
}

function checked(nginx: Nginx): readonly Directive[] {
  const checks = checkLocations(nginx);
  return locations(nginx).filter((location) => checkOf(location) !== undefined && !checks.includes(location));
}

/** The directives including those in `if` and `limit_except`, without other locations. */
function inside(block: Directive): readonly Directive[] {
  return everyDirective(block.block.filter(({ name }) => name !== 'location'));
}

/** The directives in the location and its `if`s, and those that it inherits, from `http` too. */
function inForce(location: Directive, names: readonly string[]): readonly Directive[] {
  const inherited = names.flatMap((name) => effective(location, name) ?? []);
  return [...new Set([...inside(location).filter(({ name }) => names.includes(name)), ...inherited])];
}

const passes = (location: Directive) => inside(location).filter(({ name }) => FORWARDING.test(name));
const proxyPasses = (location: Directive) => inside(location).filter(({ name }) => name === 'proxy_pass');

/** Locations that forward without a check. */
function unchecked(nginx: Nginx): readonly Directive[] {
  const checks = checkLocations(nginx);
  return locations(nginx).filter(
    (location) =>
      passes(location).length > 0 && checkOf(location) === undefined && !checks.includes(location),
  );
}

/** Whether a path may select a location by its prefix, or by a regular expression, which is not evaluated. */
function mayServe({ values }: Directive, path: string): boolean {
  const [modifier = '', pattern = modifier] = values;
  if (!path.startsWith('/') || modifier === '=') return path.split('?', 1)[0] === pattern;
  return modifier.startsWith('~') || path.startsWith(pattern);
}

/** Includes directives of enclosing blocks, up to the location's `server`. */
function within(location: Directive, names: readonly string[]): readonly Directive[] {
  return around(location)
    .flatMap(inside)
    .filter(({ name }) => names.includes(name));
}

function around(block: Directive): readonly Directive[] {
  const isOutermost = block.name === 'server' || block.parent === undefined;
  return isOutermost ? [block] : [block, ...around(block.parent)];
}

/** Whether the target has a URI, unlike `http://name` or a socket file without `:/uri`. */
function hasUri({ values: [target = ''] }: Directive): boolean {
  return !/^https?:\/\/(?:unix:[^:$]+|[^/?$]+)$/.test(target);
}

const CACHING = ['proxy', 'fastcgi', 'uwsgi', 'scgi'].flatMap((name) => [`${name}_cache`, `${name}_store`]);

/** Whether the status is neither an error nor 444, which sends no answer. */
function isAnswer({ values: [status = ''] }: Directive): boolean {
  return !/^[45][0-9]{2}$/.test(status);
}

/** Headers that the API gets only from the verifier's answer. */
const REPLACED = [
  'authorization',
  'x-proofgate-passport',
  'x-proofgate-transcript',
  'x-proofgate-signature',
  ...CONTEXT_HEADERS,
];

function variablesOf(value: string): readonly string[] {
  return [...value.matchAll(/\$\{?(\w+)/g)].flatMap(([, name = '']) => name);
}

/** Variables that auth_request_set sets from the verifier's answer; `set` and `map` may set them from the caller. */
function ofVerifier(location: Directive): ReadonlySet<string> {
  const block = effective(location, 'auth_request_set')?.parent;
  const all = block === undefined ? [] : own(block, 'auth_request_set');
  return new Set(
    all.flatMap(({ values: [name = '', value = ''] }) =>
      /^\$upstream_http_\w+$/.test(value) ? variablesOf(name) : [],
    ),
  );
}

/** Whether the verifier lets routes behind the location accept all proofs. */
function acceptsAllProofs(nginx: Nginx, location: Directive): boolean {
  const checks = locations(nginx).filter(({ values }) => values.at(-1) === checkOf(location));
  return checks.some((check) => proxyPasses(check).some(({ values: [url = ''] }) => asksForAllProofs(url)));
}

/** Whether the location forwards none of the caller's own; unknown with an `include`, which is not read here. */
function replacesHeaders(location: Directive, names: readonly string[]): boolean {
  const block = effective(location, 'proxy_set_header')?.parent;
  const around = block ?? location;
  if (own(around, 'include').length > 0) return true;
  const ofAnswer = ofVerifier(location);
  const replaced = own(around, 'proxy_set_header')
    .filter(({ values: [, value = ''] }) => variablesOf(value).every((name) => ofAnswer.has(name)))
    .map(({ values: [name = ''] }) => name.toLowerCase());
  return names.every((name) => replaced.includes(name));
}

export const NGINX_RULES: readonly Rule<Nginx>[] = [
  {
    id: 'satisfy-any',
    severity: 'error',
    effect: 'lets a request through that another access rule accepts, without the check',
    fix: 'satisfy all, which is the default',
    find: (nginx) =>
      checked(nginx).flatMap((location) => {
        const satisfy = effective(location, 'satisfy');
        return satisfy?.values[0] === 'any' ? [satisfy] : [];
      }),
  },
  {
    id: 'target-rewritten',
    severity: 'error',
    effect: 'may forward another target than the one that is checked',
    fix: 'neither rewrite nor try_files where the check is',
    find: (nginx) => checked(nginx).flatMap((location) => within(location, ['rewrite', 'try_files'])),
  },
  {
    id: 'request-changed',
    severity: 'error',
    effect: 'forwards another method or body than the ones that are checked',
    fix: 'neither proxy_method nor proxy_set_body where the check is',
    find: (nginx) =>
      checked(nginx).flatMap((location) => inForce(location, ['proxy_method', 'proxy_set_body'])),
  },
  {
    id: 'not-in-file',
    severity: 'warning',
    effect: 'includes a file whose settings count here and were not linted here',
    fix: 'the lines of the file in its place, or a comment that allows the include',
    find: (nginx) => checked(nginx).flatMap((location) => within(location, ['include'])),
  },
  {
    id: 'proxy-pass-uri',
    severity: 'error',
    effect: 'forwards a normalised or rewritten target, not the one that is checked',
    fix: 'proxy_pass http://api; without a path, a slash or variables',
    find: (nginx) => checked(nginx).flatMap((location) => proxyPasses(location).filter(hasUri)),
  },
  {
    id: 'headers-not-replaced',
    severity: 'error',
    effect: "lets a caller's passport, proof or own identity headers reach the API",
    fix: 'each proxy_set_header of deploy/nginx/nginx.conf: those of the answer, and the credentials empty',
    find: (nginx) =>
      checked(nginx).filter((location) => {
        const names = acceptsAllProofs(nginx, location) ? [...REPLACED, ...PROOF_FIELDS] : REPLACED;
        return proxyPasses(location).length > 0 && !replacesHeaders(location, names);
      }),
  },
  {
    id: 'error-page-forwards',
    severity: 'error',
    effect: 'forwards a denied request: its error page is a location that asks the API',
    fix: 'error_page of locations that only return',
    find: (nginx) => {
      const open = locations(nginx).filter((location) => passes(location).length > 0);
      const names = new Set(open.map(({ values }) => values.at(-1)));
      return checked(nginx).flatMap((location) => {
        const inherited = effective(location, 'error_page')?.parent;
        const pages = [
          ...inside(location).filter(({ name }) => name === 'error_page'),
          ...(inherited === undefined || inherited === location ? [] : own(inherited, 'error_page')),
        ];
        return pages.filter(({ values }) => {
          const page = values.at(-1) ?? '';
          return names.has(page) || page.includes('$') || unchecked(nginx).some((one) => mayServe(one, page));
        });
      });
    },
  },
  {
    id: 'accel-redirect',
    severity: 'error',
    effect: "serves another location when the API's answer says so (X-Accel-Redirect)",
    fix: 'proxy_ignore_headers X-Accel-Redirect',
    find: (nginx) =>
      checked(nginx).filter(
        (location) =>
          proxyPasses(location).length > 0 &&
          !effective(location, 'proxy_ignore_headers')?.values.some((name) =>
            /^x-accel-redirect$/i.test(name),
          ),
      ),
  },
  {
    id: 'upstream-retried',
    severity: 'error',
    effect: 'may send one checked request, or one check, twice',
    fix: 'proxy_next_upstream off (also fastcgi_, uwsgi_, scgi_, grpc_ and memcached_)',
    find: (nginx) =>
      [...checked(nginx), ...checkLocations(nginx)].filter((location) =>
        passes(location).some(
          ({ name }) =>
            effective(location, name.replace('_pass', '_next_upstream'))?.values.join(' ') !== 'off',
        ),
      ),
  },
  {
    id: 'mirrored',
    severity: 'error',
    effect: 'sends a checked request to a second server as well',
    fix: 'mirror off, which is the default, and no post_action',
    find: (nginx) =>
      checked(nginx).flatMap((location) =>
        inForce(location, ['mirror', 'post_action']).filter(({ values }) => values[0] !== 'off'),
      ),
  },
  {
    id: 'answer-cached',
    severity: 'error',
    effect: 'answers without the API, with what it answered to another caller',
    fix: 'no proxy_cache, proxy_store or the like of fastcgi_, uwsgi_ and scgi_ where the check is',
    find: (nginx) =>
      checked(nginx).flatMap((location) =>
        CACHING.flatMap((name) => {
          const cache = effective(location, name);
          return cache === undefined || cache.values[0] === 'off' ? [] : [cache];
        }),
      ),
  },
  {
    id: 'answers-before-check',
    severity: 'error',
    effect: 'answers before the verifier is asked: nginx runs `return` first',
    fix: 'return only statuses from 400 where the check is; other answers in a location of their own',
    find: (nginx) => checked(nginx).flatMap((location) => within(location, ['return']).filter(isAnswer)),
  },
  {
    id: 'check-cached',
    severity: 'error',
    effect: 'answers a check from a cache: a decision is for one request',
    fix: 'proxy_cache off',
    find: (nginx) =>
      checkLocations(nginx).flatMap((location) => {
        const cache = effective(location, 'proxy_cache');
        return cache === undefined || cache.values[0] === 'off' ? [] : [cache];
      }),
  },
  {
    id: 'check-exposed',
    severity: 'warning',
    effect: 'lets callers ask the verifier themselves',
    fix: 'internal',
    find: (nginx) => checkLocations(nginx).filter((location) => own(location, 'internal').length === 0),
  },
  {
    id: 'location-unchecked',
    severity: 'error',
    effect: 'forwards what matches here without asking the verifier',
    fix: 'auth_request, or a comment that allows it where no proof is needed',
    find: unchecked,
  },
];
