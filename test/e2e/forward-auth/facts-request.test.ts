/** What each proxy shows the verifier of methods, headers and bodies, and what the API gets. docs/operate/forward-auth.md has the table. */
import { expect, it } from '@jest/globals';
import type { HeaderLine, WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import type { ProxyKind } from '../../support/proxies/proxy.ts';
import {
  AUTHORITY,
  checkedHeader,
  forwardedHeader,
  type Observation,
  useMeasuredProxy,
} from './measured-proxy.ts';
import { describeProxies } from './proxies.ts';

/** Two outcomes: over HTTP/1.1 and over HTTP/2. */
type Outcome = string | readonly [http1: string, http2: string];

interface RequestFact {
  readonly fact: string;
  readonly request: Partial<WireRequest>;
  /** What the verifier sees, and what the API. Default `allowed`. */
  readonly show?: (seen: Observation) => string;
  /** Outcomes over HTTP/2 that are as good. */
  readonly orOverHttp2?: readonly string[];
  /** `refused`: neither sees anything. */
  readonly expected: { readonly [P in ProxyKind['profile']]: Outcome };
}

/** Lines of a header at the verifier and at the API. */
const lines = (name: string) => (seen: Observation) =>
  `${checkedHeader(seen, name).join('|')} > ${forwardedHeader(seen, name).join('|')}`;
const methods = ({ forwarded, read }: Observation) => `${read?.facts.method} > ${forwarded[0]?.method}`;
const bodies = ({ checks, forwarded, read }: Observation) =>
  `${read?.facts.body.kind} ${checks[0]?.body.length} > ${forwarded[0]?.body.length}`;
const sent = (...headers: readonly HeaderLine[]) => ({ headers });
const many = Array.from({ length: 150 }, (_, at): HeaderLine => [`x-many-${at}`, 'v']);

const FACTS: readonly RequestFact[] = [
  {
    fact: 'a method in lower case',
    request: { method: 'get' },
    show: methods,
    expected: {
      nginx: 'refused',
      caddy: ['get > undefined', 'refused'],
      envoy: 'refused',
      traefik: 'get > undefined',
    },
  },
  {
    fact: 'an unknown method',
    request: { method: 'FOO' },
    show: methods,
    expected: {
      nginx: 'FOO > undefined',
      caddy: ['FOO > undefined', 'refused'],
      envoy: 'refused',
      traefik: 'FOO > undefined',
    },
  },
  {
    fact: 'TRACE',
    request: { method: 'TRACE' },
    show: methods,
    expected: {
      nginx: 'refused',
      caddy: ['TRACE > TRACE', 'refused'],
      envoy: 'TRACE > TRACE',
      traefik: 'TRACE > TRACE',
    },
  },
  {
    fact: 'CONNECT',
    request: { method: 'CONNECT', target: AUTHORITY },
    show: methods,
    expected: {
      nginx: 'refused',
      caddy: 'refused',
      envoy: 'refused',
      traefik: ['CONNECT > undefined', 'refused'],
    },
  },
  {
    fact: 'a repeated header',
    request: sent(['x-tenant', 'a'], ['x-tenant', 'b']),
    show: lines('x-tenant'),
    expected: { nginx: 'a|b > a|b', caddy: 'a|b > a|b', envoy: 'a|b > a|b', traefik: 'a|b > a|b' },
  },
  {
    fact: 'a repeated Accept',
    request: sent(['accept', 'a'], ['accept', 'b']),
    show: lines('accept'),
    expected: { nginx: 'a|b > a|b', caddy: 'a|b > a|b', envoy: 'a,b > a,b', traefik: 'a|b > a|b' },
  },
  {
    fact: 'a name with `_`',
    request: sent(['x_tenant', 'a']),
    show: lines('x_tenant'),
    expected: { nginx: 'a > a', caddy: ' > ', envoy: 'refused', traefik: 'refused' },
  },
  {
    fact: 'a name with `.`',
    request: sent(['x.tenant', 'a']),
    show: lines('x.tenant'),
    expected: { nginx: 'a > a', caddy: ' > ', envoy: 'a > a', traefik: 'refused' },
  },
  {
    fact: 'bytes that are not UTF-8',
    request: sent(['x-tenant', '\u00e9\u00ff']),
    show: lines('x-tenant'),
    expected: { nginx: 'éÿ > éÿ', caddy: 'éÿ > éÿ', envoy: 'éÿ > éÿ', traefik: 'éÿ > éÿ' },
  },
  {
    fact: 'an empty value',
    request: sent(['x-tenant', '']),
    show: lines('x-tenant'),
    expected: { nginx: ' > ', caddy: ' > ', envoy: ' > ', traefik: ' > ' },
  },
  {
    fact: 'Connection: x-tenant',
    request: sent(['connection', 'x-tenant'], ['x-tenant', 'a']),
    show: lines('x-tenant'),
    expected: {
      nginx: 'a > a',
      caddy: ['a > a', 'refused'],
      envoy: [' > ', 'refused'],
      traefik: [' > ', 'refused'],
    },
  },
  {
    fact: 'Upgrade',
    request: sent(['connection', 'upgrade'], ['upgrade', 'websocket']),
    show: lines('upgrade'),
    expected: { nginx: ' > ', caddy: [' > ', 'refused'], envoy: 'refused', traefik: [' > ', 'refused'] },
  },
  {
    fact: 'TE',
    request: sent(['te', 'trailers']),
    show: lines('te'),
    expected: {
      nginx: ' > ',
      caddy: 'trailers > trailers',
      envoy: 'trailers > trailers',
      traefik: ' > trailers',
    },
  },
  {
    fact: 'X-Forwarded-For',
    request: sent(['x-forwarded-for', '6.6.6.6']),
    show: lines('x-forwarded-for'),
    expected: {
      nginx: '127.0.0.1 > 127.0.0.1',
      caddy: '127.0.0.1 > 127.0.0.1',
      envoy: '6.6.6.6,192.0.2.2 > 6.6.6.6,192.0.2.2',
      traefik: '127.0.0.1 > 127.0.0.1',
    },
  },
  {
    fact: 'no Host',
    request: { authority: '' },
    expected: { nginx: 'refused', caddy: 'refused', envoy: 'refused', traefik: 'refused' },
  },
  {
    fact: 'another Host',
    request: { authority: 'other.example' },
    expected: { nginx: 'refused', caddy: 'refused', envoy: 'refused', traefik: 'refused' },
  },
  {
    fact: 'another port',
    request: { authority: `${AUTHORITY}:9` },
    expected: { nginx: 'refused', caddy: 'refused', envoy: 'refused', traefik: 'refused' },
  },
  {
    fact: 'a second Host',
    request: sent(['host', 'other.example']),
    show: (seen) => forwardedHeader(seen, 'host').join('|'),
    expected: {
      nginx: 'refused',
      caddy: 'refused',
      envoy: ['refused', AUTHORITY],
      traefik: ['refused', AUTHORITY],
    },
  },
  {
    fact: 'the same Host twice',
    request: sent(['host', AUTHORITY]),
    expected: {
      nginx: 'refused',
      caddy: ['refused', 'allowed'],
      envoy: ['refused', 'allowed'],
      traefik: ['refused', 'allowed'],
    },
  },
  {
    fact: '150 headers',
    request: sent(...many),
    show: lines('x-many-149'),
    expected: { nginx: 'v > v', caddy: 'v > v', envoy: 'refused', traefik: 'v > v' },
  },
  {
    fact: 'a header of 20,000 bytes',
    request: sent(['x-tenant', 'a'.repeat(20_000)]),
    show: (seen) => lines('x-tenant')(seen).replace(/a+/g, 'a…'),
    expected: { nginx: 'refused', caddy: 'a… > a…', envoy: 'a… > a…', traefik: 'a… > a…' },
  },
  {
    fact: 'a body with a length',
    request: { method: 'POST', body: 'body', framing: 'length' },
    show: bodies,
    expected: { nginx: 'refused', caddy: 'refused', envoy: 'exact 4 > 4', traefik: 'exact 4 > 4' },
  },
  {
    fact: 'a body without a length',
    request: { method: 'POST', body: 'body', framing: 'open' },
    show: bodies,
    expected: {
      // 413 after the check
      nginx: ['refused', 'none 0 > undefined'],
      caddy: 'refused',
      envoy: 'exact 4 > 4',
      traefik: 'exact 4 > 4',
    },
  },
  {
    fact: 'an empty body without a length',
    request: { method: 'POST', body: '', framing: 'open' },
    show: bodies,
    expected: {
      nginx: ['refused', 'none 0 > 0'],
      caddy: 'refused',
      envoy: 'none 0 > 0',
      traefik: 'refused',
    },
  },
  {
    fact: 'a body of a DELETE',
    request: { method: 'DELETE', body: 'body', framing: 'length' },
    show: bodies,
    expected: { nginx: 'refused', caddy: 'refused', envoy: 'exact 4 > 4', traefik: 'exact 4 > 4' },
  },
  {
    fact: 'no body',
    request: {},
    show: bodies,
    expected: { nginx: 'none 0 > 0', caddy: 'none 0 > 0', envoy: 'none 0 > 0', traefik: 'none 0 > 0' },
  },
  {
    fact: 'trailers',
    request: { method: 'POST', body: '', trailers: [['x-tenant', 'a']] },
    show: ({ forwarded }) => `${forwarded[0]?.trailers.length}`,
    expected: { nginx: 'refused', caddy: 'refused', envoy: '0', traefik: 'refused' },
  },
  {
    fact: 'announced trailers',
    // nginx resets the HTTP/2 stream when they come: before the check, after it, or after it has forwarded the request.
    orOverHttp2: ['refused', 'undefined'],
    request: { body: '', trailers: [['x-tenant', 'a']], headers: [['trailer', 'x-tenant']] },
    show: ({ forwarded }) => `${forwarded[0]?.trailers.length}`,
    expected: { nginx: ['undefined', '0'], caddy: ['refused', '0'], envoy: '0', traefik: 'refused' },
  },
];

describeProxies('requests', (kind) => {
  const proxy = useMeasuredProxy(kind);

  it.each(FACTS)('$fact', async ({ expected, orOverHttp2 = [], request, show = () => 'allowed' }) => {
    const { [kind.profile]: outcome } = expected;
    const [http1, http2] = typeof outcome === 'string' ? [outcome, outcome] : outcome;
    const outcomeOf = (seen: Observation) =>
      seen.checks.length === 0 && seen.forwarded.length === 0 ? 'refused' : show(seen);
    expect(outcomeOf(await proxy.observe('http1', request))).toBe(http1);
    expect([http2, ...orOverHttp2]).toContain(outcomeOf(await proxy.observe('http2', request)));
  });
});
