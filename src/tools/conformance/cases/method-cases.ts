/** Methods that are not the route's. */
import { denied, type PublicCase } from '../wire/conformance-case.ts';

const ROUTELESS = [
  'get',
  'Get',
  'HEAD',
  'POST',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'PATCH',
  'PROPFIND',
  'QUERY',
  'GETT',
  'CONNECT',
];

const NO_METHOD: readonly string[] = ['G\xffT', 'G T', '', 'G(T'];

/** Statuses of servers that do not know such a method or never allow it. */
const NOT_FORWARDED: readonly number[] = [404, 405];

function methodCase(method: string, expected: PublicCase['expected']): PublicCase {
  return {
    name: `method ${JSON.stringify(method)}`,
    expected,
    rejections: NOT_FORWARDED,
    appliesTo: (subject) => subject.method !== method,
    make: (subject) => ({ ...subject.sign().request, method }),
  };
}

export const METHOD_CASES: readonly PublicCase[] = [
  ...ROUTELESS.map((method) => methodCase(method, denied('bundle_route_missing', 'no_match'))),
  ...NO_METHOD.map((method) => methodCase(method, denied('bundle_route_missing', 'no_match'))),
  {
    name: 'method signed for another one, and overridden by a header',
    appliesTo: (subject) => subject.method !== 'DELETE',
    expected: denied('bundle_route_missing', 'no_match'),
    make: (subject) => {
      const otherHeaders = [['x-http-method-override', 'GET']] as const;
      return { ...subject.sign({ otherHeaders }).request, method: 'DELETE' };
    },
  },
  {
    name: 'CONNECT as its target form',
    rejections: NOT_FORWARDED,
    protocols: ['HTTP/1.1'],
    expected: denied('bundle_route_missing', 'path_not_canonical'),
    make: (subject) => ({ ...subject.sign().request, method: 'CONNECT', target: 'api.shop.example:80' }),
  },
  {
    // A request about the server, which some servers answer themselves (RFC 9110 section 9.3.7).
    name: 'OPTIONS *',
    mayPass: true,
    expected: denied('bundle_route_missing', 'path_not_canonical'),
    make: (subject) => ({ ...subject.sign().request, method: 'OPTIONS', target: '*' }),
  },
];
