/** Paths and authorities that might make a request pass for another one. */
import { otherAuthorities } from '../../../src/tools/conformance/cases/authority-cases.ts';
import { ambiguousTargets } from '../../../src/tools/conformance/cases/target-cases.ts';
import { AUTHORITY } from './routes.ts';

export { printable } from '../../../src/tools/conformance/cases/target-cases.ts';

/** Some verifiers or upstreams read them as another path than they spell. */
export const AMBIGUOUS_PATHS: readonly string[] = [
  ...ambiguousTargets('/v1/orders/4711').map(({ target }) => target),
  '/v1/orders/4711 HTTP/1.1\r\nX-A: b',
  '//api.shop.example/v1/orders/4711',
  '/v1/files/a/../../payroll',
  '/v1/files/a/%2e%2e/b',
  '/v1/files//etc',
  '/v1/files/',
];

/** Some read them as the site. */
export const OTHER_AUTHORITIES: readonly string[] = otherAuthorities('http', AUTHORITY);
