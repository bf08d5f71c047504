/** Headers beside a correctly signed request: names that only the verifier may set, and what proxies and callers add. */

import { CONTEXT_HEADERS, REQUEST_REWRITING_HEADERS } from '../../../src/protocol/wire-names.ts';
import { ALLOWED, type Protocol } from '../../../src/tools/conformance/wire/conformance-case.ts';
import type { HeaderLine, WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import type { ConformanceCase } from '../../support/points/conformance-case.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { AUTHORITY, ROUTES } from '../../support/site/routes.ts';
import { signedRequest, withHeader } from '../../support/site/signed-request.ts';
import type { Site } from '../../support/site/site.ts';
import { SMUGGLED_NAMES } from '../../support/site/smuggled-headers.ts';

const MARKER = 'smuggled';

function withLines(
  name: string,
  lines: readonly HeaderLine[],
  protocols?: readonly Protocol[],
): ConformanceCase {
  const plan = { route: ROUTES.readOrder, otherHeaders: lines };
  return {
    name: `header ${name}`,
    expected: ALLOWED,
    make: (site) => signedRequest(site, { caller: derivedKeyCaller(site), ...plan }),
    ...(protocols && { protocols }),
  };
}

/** HTTP/2 knows names in lower case only. */
const speaking = (name: string): readonly Protocol[] | undefined =>
  name === name.toLowerCase() ? undefined : ['HTTP/1.1'];

const line = (name: string, value = MARKER) =>
  withLines(`${name}: ${value}`, [[name, value]], speaking(name));

/** Every spelling of one of our names, and some of the others. */
const SMUGGLED: readonly ConformanceCase[] = SMUGGLED_NAMES.filter(
  (name) =>
    /s-?u-?b-?j-?e-?c-?t-?$/i.test(name) ||
    /^x-proofgate[a-z0-9-]*$/.test(name) ||
    REQUEST_REWRITING_HEADERS.some((one) =>
      [one, one.replaceAll('-', '_'), one.replaceAll('-', '.'), one.replaceAll('-', '')].includes(name),
    ),
)
  .map((name) => line(name))
  .concat(line('x-proofgate-passport'));

const TWICE: readonly ConformanceCase[] = [
  CONTEXT_HEADERS.subject,
  CONTEXT_HEADERS.keyBinding,
  'x-proofgate-roles',
  'x-original-url',
].map((name) =>
  withLines(`${name}, twice`, [
    [name, MARKER],
    ['x-other', 'o'],
    [name, `${MARKER} again`],
  ]),
);

const REWRITING: readonly ConformanceCase[] = [
  line('x-original-url', '/v1/payroll'),
  line('x-rewrite-url', '/v1/payroll'),
  line('x-http-method-override', 'DELETE'),
  line('x-http-method', 'DELETE'),
  line('x-method-override', 'DELETE'),
];

const FORWARDED: readonly ConformanceCase[] = [
  line('x-forwarded-for', '127.0.0.1'),
  line('x-forwarded-host', 'api.other.example'),
  line('x-forwarded-port', '8443'),
  line('x-forwarded-proto', 'https'),
  line('x-forwarded-proto', 'http'),
  line('x-forwarded-method', 'DELETE'),
  line('x-forwarded-uri', '/v1/payroll'),
  line('x-forwarded-server', 'api.other.example'),
  line('x-forwarded-prefix', '/v1'),
  line('x-forwarded-client-cert', 'By=spiffe://shop.example/a'),
  line('forwarded', 'for=127.0.0.1;host=api.other.example;proto=https'),
  line('x-real-ip', '127.0.0.1'),
  line('x-original-uri', '/v1/payroll'),
  line('x-original-method', 'DELETE'),
  line('x-auth-request-redirect', '/v1/payroll'),
  line('x-envoy-original-path', '/v1/payroll'),
  line('x-envoy-auth-partial-body', 'false'),
  line('x-accel-redirect', '/v1/payroll'),
  withLines('x-forwarded-proto, twice', [
    ['x-forwarded-proto', 'http'],
    ['x-forwarded-proto', 'https'],
  ]),
];

const H1: readonly Protocol[] = ['HTTP/1.1'];
const connection = (options: string, ...more: readonly HeaderLine[]) =>
  withLines(
    [`connection: ${options}`, ...more.map(([name]) => name)].join(', '),
    [['connection', options], ...more],
    H1,
  );

const HOP_BY_HOP: readonly ConformanceCase[] = [
  connection('close'),
  connection('keep-alive', ['keep-alive', 'timeout=5']),
  connection('te', ['te', 'trailers']),
  connection('authorization'),
  connection('x-proofgate-transcript'),
  {
    name: 'header connection: x-proofgate-passport, which the route needs',
    protocols: H1,
    expected: ALLOWED,
    make: (site) =>
      signedRequest(site, {
        caller: derivedKeyCaller(site),
        route: ROUTES.bearer,
        otherHeaders: [['connection', 'x-proofgate-passport']],
      }),
  },
  connection('close, x-proofgate-signature'),
  connection('x-proofgate-subject', ['x-proofgate-subject', MARKER]),
  connection('host'),
  connection('content-length'),
  connection(
    'upgrade',
    ['upgrade', 'websocket'],
    ['sec-websocket-key', 'AAAAAAAAAAAAAAAAAAAAAA=='],
    ['sec-websocket-version', '13'],
  ),
  connection('upgrade, http2-settings', ['upgrade', 'h2c'], ['http2-settings', 'AAMAAABkAAQAoAAAAAIAAAAA']),
  connection('x-other, x-other'),
  withLines('te: trailers', [['te', 'trailers']]),
  withLines('proxy-connection: close', [['proxy-connection', 'close']], H1),
  withLines('proxy-authorization', [['proxy-authorization', 'Basic YTpi']]),
  withLines('max-forwards: 0', [['max-forwards', '0']]),
  {
    name: 'header connection: x-tenant, which is signed',
    protocols: H1,
    expected: ALLOWED,
    make: (site) =>
      signedRequest(site, {
        caller: derivedKeyCaller(site),
        route: ROUTES.tenantOrders,
        signedHeaders: [{ name: 'x-tenant', value: 'north' }],
        otherHeaders: [['connection', 'x-tenant']],
      }),
  },
];

const read = (site: Site) => signedRequest(site, { caller: derivedKeyCaller(site), route: ROUTES.readOrder });

function respelled(
  name: string,
  change: (request: WireRequest) => WireRequest,
  protocols?: readonly Protocol[],
): ConformanceCase {
  return {
    name: `header ${name}`,
    expected: ALLOWED,
    make: (site) => change(read(site)),
    ...(protocols && { protocols }),
  };
}

const renamed = (change: (name: string) => string) => (request: WireRequest) => ({
  ...request,
  headers: (request.headers ?? []).map(([name, value]): HeaderLine => [change(name), value]),
});
const revalued = (change: (value: string) => string) => (request: WireRequest) => ({
  ...request,
  headers: (request.headers ?? []).map(([name, value]): HeaderLine => [name, change(value)]),
});
const scheme = (text: string) => (request: WireRequest) => {
  const [, value = ''] = request.headers?.find(([name]) => name === 'authorization') ?? [];
  return withHeader(request, 'authorization', value.replace('Passport', text));
};

const ODD: readonly ConformanceCase[] = [
  respelled(
    'names of the proof in capitals',
    renamed((name) => name.toUpperCase()),
    H1,
  ),
  respelled('the scheme in lower case', scheme('passport')),
  respelled('the scheme in capitals', scheme('PASSPORT')),
  respelled(
    'white space around the values',
    revalued((value) => ` \t${value}\t `),
    H1,
  ),
  respelled('the proof in another order', (request) => ({
    ...request,
    headers: [...(request.headers ?? [])].reverse(),
  })),
  withLines('an empty value', [['x-empty', '']]),
  withLines('a value that is not ASCII', [['x-name', 'caf\xe9']]),
  withLines('a value of 4 KiB', [['x-long', 'a'.repeat(4096)]]),
  ...[40, 80].map((count) =>
    withLines(
      `${count} more`,
      Array.from({ length: count }, (_, index): HeaderLine => [`x-h${index}`, 'v']),
    ),
  ),
  withLines('repeated lines of another name', [
    ['accept', 'text/html'],
    ['accept', 'text/plain'],
    ['x-other', '1'],
    ['x-other', '2'],
  ]),
  withLines('several cookies', [
    ['cookie', 'a=1'],
    ['cookie', 'b=2'],
  ]),
  withLines('x.other: v', [['x.other', 'v']]),
  withLines('x_other: v', [['x_other', 'v']]),
  withLines("x!#$%&'*+.^`|~: v", [["x!#$%&'*+.^`|~", 'v']]),
  // `:authority` counts (RFC 9113 section 8.3.1); the other must not arrive.
  withLines('host, another than :authority', [['host', 'api.other.example']], ['HTTP/2']),
  withLines('host, the same as :authority', [['host', AUTHORITY]], ['HTTP/2']),
  withLines('range: bytes=0-1', [['range', 'bytes=0-1']]),
  withLines('accept-encoding: gzip', [['accept-encoding', 'gzip']]),
  withLines('origin: https://evil.example', [['origin', 'https://evil.example']]),
];

const EXPECT: ConformanceCase = {
  name: 'header expect: 100-continue',
  expected: ALLOWED,
  make: (site) =>
    signedRequest(site, {
      caller: derivedKeyCaller(site),
      route: ROUTES.createOrder,
      body: '{"item":1}',
      framing: 'length',
      otherHeaders: [['expect', '100-continue']],
    }),
};

export const HEADER_CASES: readonly ConformanceCase[] = [
  ...SMUGGLED,
  ...TWICE,
  ...REWRITING,
  ...FORWARDED,
  ...HOP_BY_HOP,
  ...ODD,
  EXPECT,
];
