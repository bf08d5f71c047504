/**
 * Which target each proxy sends with a check, and which it forwards. That they are the same is what a decision relies on.
 * docs/operate/forward-auth.md has the table.
 */
import { expect, it } from '@jest/globals';
import { type Observation, useMeasuredProxy } from './measured-proxy.ts';
import { describeProxies } from './proxies.ts';

/**
 * `same`: checked and forwarded as it was sent. `refused`: neither. Another target: checked and forwarded as that.
 * Two outcomes: over HTTP/1.1 and over HTTP/2.
 */
type Outcome = string | readonly [http1: string, http2: string];

interface TargetFact {
  readonly target: string;
  readonly nginx: Outcome;
  readonly caddy: Outcome;
  readonly envoy: Outcome;
  readonly traefik: Outcome;
}

const same = 'same';
const refused = 'refused';
/** Node.js, which serves the API here, rejects it. */
const refusedByApi = 'checked, refused by the API';

const TARGETS: readonly TargetFact[] = [
  { target: '/a?b=c', nginx: same, caddy: same, envoy: same, traefik: same },
  { target: '/a/./b/../c', nginx: same, caddy: same, envoy: '/a/c', traefik: '/a/c' },
  { target: '/../a', nginx: refused, caddy: same, envoy: '/a', traefik: '/a' },
  { target: '/a/%2e%2e/b', nginx: same, caddy: same, envoy: '/b', traefik: '/b' },
  { target: '/a%2fb', nginx: same, caddy: same, envoy: refused, traefik: refused },
  { target: '//a//b', nginx: same, caddy: same, envoy: same, traefik: '/a/b' },
  { target: '/a;x=1', nginx: same, caddy: same, envoy: same, traefik: same },
  { target: '/a#f', nginx: same, caddy: '/a%23f', envoy: refused, traefik: refused },
  { target: '/a?x#f', nginx: same, caddy: same, envoy: refused, traefik: same },
  { target: '/%61', nginx: same, caddy: same, envoy: '/a', traefik: '/a' },
  { target: '/a\\b', nginx: same, caddy: '/a%5Cb', envoy: '/a/b', traefik: refused },
  { target: '/a%5cb', nginx: same, caddy: same, envoy: refused, traefik: refused },
  { target: '/a%00b', nginx: refused, caddy: same, envoy: refused, traefik: refused },
  { target: '/a%zz', nginx: refused, caddy: refused, envoy: same, traefik: refused },
  { target: '/a?%zz', nginx: same, caddy: same, envoy: same, traefik: same },
  {
    target: '/a b',
    nginx: refused,
    caddy: refused,
    envoy: refused,
    traefik: [refused, '/a%20b'],
  },
  { target: '/a?b c', nginx: refused, caddy: refused, envoy: refused, traefik: refused },
  // A header with the target would lose spaces at its end. In HTTP/1.1 some take them for the space behind the target.
  {
    target: '/a?b=c   ',
    nginx: ['/a?b=c', refused],
    caddy: refused,
    envoy: ['/a?b=c', refused],
    traefik: refused,
  },
  {
    target: '/a|`{d}"<e>',
    nginx: same,
    caddy: '/a%7C%60%7Bd%7D%22%3Ce%3E',
    envoy: '/a%7C%60%7Bd%7D%22%3Ce%3E',
    traefik: '/a%7C%60%7Bd%7D%22%3Ce%3E',
  },
  // Placeholders of Caddy, variables of nginx.
  { target: '/a?{http.request.host}&$host', nginx: same, caddy: same, envoy: same, traefik: same },
  { target: '/é', nginx: refusedByApi, caddy: refused, envoy: [refused, '/%E9'], traefik: '/%E9' },
  { target: '/a?é', nginx: refusedByApi, caddy: refused, envoy: refused, traefik: refused },
  { target: '/a%E9', nginx: same, caddy: same, envoy: same, traefik: same },
  { target: '/a?', nginx: same, caddy: same, envoy: same, traefik: same },
  { target: '/a?x=/../y', nginx: same, caddy: same, envoy: same, traefik: same },
  { target: '*', nginx: refused, caddy: refused, envoy: refused, traefik: same },
  { target: 'a', nginx: refused, caddy: refused, envoy: refused, traefik: refused },
  { target: '?a', nginx: refused, caddy: refused, envoy: refused, traefik: refused },
  // Other hosts and ports than --external-origin must not get to the verifier.
  {
    target: 'http://api.shop.example/a?b',
    nginx: refused,
    caddy: refused,
    envoy: ['/a?b', refused],
    traefik: '/a?b',
  },
  {
    target: 'http://other.example/a',
    nginx: refused,
    caddy: refused,
    envoy: refused,
    traefik: [refused, '/a'],
  },
  {
    target: 'http://api.shop.example:9/a',
    nginx: refused,
    caddy: refused,
    envoy: refused,
    traefik: [refused, '/a'],
  },
];

describeProxies('targets', (kind) => {
  const proxy = useMeasuredProxy(kind);

  it.each(TARGETS)('$target', async ({ target, [kind.profile]: expected }) => {
    const [http1, http2] = typeof expected === 'string' ? [expected, expected] : expected;
    expect(outcomeOf(await proxy.observe('http1', { target }), target)).toBe(http1);
    expect(outcomeOf(await proxy.observe('http2', { target }), target)).toBe(http2);
  });
});

function outcomeOf({ checks, forwarded, read }: Observation, target: string): string {
  const checked = read?.facts.target;
  const arrived = forwarded[0]?.url;
  if (checks.length === 0 && arrived === undefined) return refused;
  if (arrived === undefined) return checked === target ? refusedByApi : `checked as ${checked}`;
  if (checked !== arrived) return `checked as ${checked}, forwarded as ${arrived}`;
  return arrived === target ? same : arrived;
}
