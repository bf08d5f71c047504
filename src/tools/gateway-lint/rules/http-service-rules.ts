/** Rules for an Envoy that checks over HTTP with `http_service`, for which the verifier has `--http-listen`. */
import type { Gateway, Rule } from '../gateway/gateway.ts';
import { unless, where } from '../gateway/gateway-queries.ts';
import { CONTEXT_HEADERS } from '../gateway/header-names.ts';
import type { View } from '../gateway/view.ts';

/** Checks over HTTP that the verifier can answer; the rule `http-service` finds the others. */
function httpChecks({ checks }: Gateway): readonly View[] {
  return checks.filter((check) => check.at('http_service', 'path_prefix')?.text === '/check');
}

/** Whether a list of string matchers accepts every name. */
function isEveryName(list: View): boolean {
  return list.list('patterns').some((pattern) => pattern.at('safe_regex', 'regex')?.text === '.*');
}

/** Whether the list has each context header by its exact name. */
function hasContextHeaders(list: View): boolean {
  const names = new Set(list.list('patterns').map((pattern) => pattern.get('exact')?.text));
  return CONTEXT_HEADERS.every((name) => names.has(name));
}

const ANSWER = 'http_service.authorization_response';

export const HTTP_SERVICE_RULES: readonly Rule[] = [
  {
    id: 'http-headers-hidden',
    severity: 'error',
    effect: 'hides headers from the verifier, which then cannot refuse those that must not reach the API',
    fix: 'allowed_headers: { patterns: [{ safe_regex: { regex: ".*" } }] }',
    find: (gateway) => unless(httpChecks(gateway), 'allowed_headers', isEveryName),
  },
  {
    id: 'http-answer-not-copied',
    severity: 'error',
    effect: "does not replace callers' context headers by the verifier's",
    fix: 'every x-proofgate-… context header under allowed_upstream_headers, as in envoy/http-service.yaml',
    find: (gateway) => unless(httpChecks(gateway), `${ANSWER}.allowed_upstream_headers`, hasContextHeaders),
  },
  {
    id: 'http-answer-appended',
    severity: 'error',
    effect: "adds the verifier's headers to those of the caller",
    fix: 'allowed_upstream_headers, and no allowed_upstream_headers_to_append',
    find: (gateway) => where(httpChecks(gateway), `${ANSWER}.allowed_upstream_headers_to_append`),
  },
  {
    id: 'http-any-host',
    severity: 'error',
    effect: 'asks about every host: the verifier takes each request for one to --external-origin',
    fix: 'domains: the host of --external-origin, and no other',
    find: (gateway) =>
      httpChecks(gateway).length === 0
        ? []
        : gateway.routeParts
            .flatMap((part) => part.list('domains'))
            .filter(({ text }) => text === undefined || text.includes('*')),
  },
];
