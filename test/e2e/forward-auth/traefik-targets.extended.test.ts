/** Facts about Traefik: which method, target and host it tells the verifier, and which ones the API gets. docs/operate/forward-auth.md. */
import { describe, expect, it } from '@jest/globals';
import type { WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import { traefikUnavailable, withoutEntryPointSetting } from '../../support/harness/traefik.ts';
import { traefik as shipped, traefikWith } from '../../support/proxies/traefik.ts';
import { AUTHORITY } from '../../support/site/routes.ts';
import { checkedHeader, forwardedHeader, type Observation, useMeasuredProxy } from './measured-proxy.ts';

const PROTOCOLS = ['http1', 'http2'] as const;
const unavailable = traefikUnavailable();
const suite = unavailable === undefined ? describe : describe.skip;

const get = (target: string): WireRequest => ({ method: 'GET', target, authority: AUTHORITY });

/** Method, target and host as the verifier sees them and as the API does. */
function seen(observed: Observation): object {
  const [request] = observed.forwarded;
  const line = ['method', 'uri', 'host'].flatMap((name) => checkedHeader(observed, `x-forwarded-${name}`));
  return {
    verifier: observed.checks.length === 0 ? undefined : line,
    api: request && [request.method, request.url, ...forwardedHeader(observed, 'host')],
  };
}

const both = (...line: readonly string[]) => ({ verifier: line, api: line });

suite('Traefik tells the verifier the target that the API gets', () => {
  const traefik = useMeasuredProxy(shipped);

  it.each([
    ['a plain path', '/v1/orders/1', '/v1/orders/1'],
    ['a query', '/a?x=1&y=2', '/a?x=1&y=2'],
    ['an empty query', '/a?', '/a?'],
    ['dot segments', '/a/../b', '/b'],
    ['encoded dot segments', '/a/%2e%2e/b', '/b'],
    ['a current segment', '/a/./b', '/a/b'],
    ['two slashes', '/a//b', '/a/b'],
    ['two slashes at the start', '//b', '/b'],
    ['a semicolon in the path', '/a;b', '/a;b'],
    ['an encoded semicolon', '/a%3Bb', '/a%3Bb'],
    ['a semicolon in the query', '/a?x=1;y=2', '/a?x=1%3By=2'],
    ['a fragment after a query', '/a?q#f', '/a?q#f'],
    ['an unreserved character, encoded', '/a%7eb%41', '/a~bA'],
    ['lower-case hexadecimal digits', '/a%c3%a9', '/a%C3%A9'],
    ['characters that paths must encode', '/a"b<c>|{}^`', '/a%22b%3Cc%3E%7C%7B%7D%5E%60'],
    ['bytes that are not ASCII', '/\u00c3\u00a9', '/%C3%A9'],
    ['an encoded question mark, percent and hash', '/a%3fb%25c%23', '/a%3Fb%25c%23'],
    ['an invalid escape in the query', '/a?x=%zz', '/a?x=%zz'],
    ['an encoded null in the query', '/a?x=%00', '/a?x=%00'],
    ['plus signs', '/a+b?x=a%20b+c', '/a+b?x=a%20b+c'],
    ['an absolute target', `http://${AUTHORITY}/abs`, '/abs'],
    ['an absolute target of another scheme', `https://${AUTHORITY}/abs`, '/abs'],
    ['an absolute target with user information', `http://user:pw@${AUTHORITY}/abs`, '/abs'],
    ['an absolute target without path', `http://${AUTHORITY}`, '/'],
    ['an asterisk', '*', '*'],
  ])('%s', async (_, target, told) => {
    for (const protocol of PROTOCOLS) {
      const measured = await traefik.observe(protocol, get(target));
      expect({ protocol, ...seen(measured) }).toEqual({ protocol, ...both('GET', told, AUTHORITY) });
    }
  });

  it.each([
    ['an encoded slash', '/a%2fb'],
    ['an encoded backslash', '/a%5cb'],
    ['a backslash', '/a\\b'],
    ['an encoded null', '/a%00b'],
    ['a fragment', '/a#f'],
    ['an invalid escape', '/a%zz'],
    ['an incomplete escape', '/%'],
    ['no leading slash', 'foo'],
    ['only a query', '?x'],
    ['an opaque target', 'mailto:x'],
    ['an authority', `${AUTHORITY}:80`],
  ])('refuses %s by itself', async (_, target) => {
    for (const protocol of PROTOCOLS) {
      const measured = await traefik.observe(protocol, get(target));
      expect([400, 0]).toContain(measured.status);
      expect(seen(measured)).toEqual({ verifier: undefined, api: undefined });
    }
  });

  it('refuses a space over HTTP/1.1 and encodes it over HTTP/2', async () => {
    expect((await traefik.observe('http1', get('/a b'))).status).toBe(400);
    expect(seen(await traefik.observe('http2', get('/a b')))).toEqual(both('GET', '/a%20b', AUTHORITY));
  });

  it.each(['HEAD', 'OPTIONS', 'DELETE', 'PUT', 'PATCH', 'TRACE'])('%s', async (method) => {
    for (const protocol of PROTOCOLS) {
      const measured = await traefik.observe(protocol, { ...get('/a'), method });
      expect(seen(measured)).toEqual(both(method, '/a', AUTHORITY));
      expect(measured.checks.map((one) => one.method)).toEqual(['GET']);
    }
  });

  it('tells a method of an unknown name or in lower case as it is', async () => {
    for (const method of ['get', 'FOO', 'G-ET']) {
      const measured = await traefik.observe('http1', { ...get('/a'), method });
      expect(checkedHeader(measured, 'x-forwarded-method')).toEqual([method]);
    }
  });

  it('never forwards CONNECT', async () => {
    const connect = { ...get('/a'), method: 'CONNECT' };
    expect((await traefik.observe('http1', connect)).status).toBe(501);
    for (const protocol of PROTOCOLS) {
      expect((await traefik.observe(protocol, connect)).forwarded).toEqual([]);
    }
  });
});

suite('Traefik and the host', () => {
  const traefik = useMeasuredProxy(shipped);

  it.each([
    ['another host', 'evil.example', [404]],
    ['a port', `${AUTHORITY}:80`, [404]],
    ['upper case', AUTHORITY.toUpperCase(), [404]],
    ['a trailing dot', `${AUTHORITY}.`, [404]],
    ['user information', `x@${AUTHORITY}`, [400, 0]],
    ['none', '', [400, 404]],
  ])('refuses %s', async (_, authority, statuses) => {
    for (const protocol of PROTOCOLS) {
      const measured = await traefik.observe(protocol, { ...get('/a'), authority });
      expect(statuses).toContain(measured.status);
      expect(seen(measured)).toEqual({ verifier: undefined, api: undefined });
    }
  });

  it('refuses a second Host over HTTP/1.1, and hides one beside :authority from verifier and API', async () => {
    const second = { ...get('/a'), headers: [['host', 'evil.example']] as const };
    expect((await traefik.observe('http1', second)).status).toBe(400);
    expect(seen(await traefik.observe('http2', second))).toEqual(both('GET', '/a', AUTHORITY));
  });

  it('takes the host of an absolute target over HTTP/1.1, :authority over HTTP/2', async () => {
    const foreign = get('http://evil.example/a');
    expect((await traefik.observe('http1', foreign)).status).toBe(404);
    expect(seen(await traefik.observe('http2', foreign))).toEqual(both('GET', '/a', AUTHORITY));
    const own = { ...get(`http://${AUTHORITY}/a`), authority: 'evil.example' };
    expect(seen(await traefik.observe('http1', own))).toEqual(both('GET', '/a', AUTHORITY));
  });

  it('tells the scheme of the connection, whatever :scheme says', async () => {
    const measured = await traefik.observe('http2', { ...get('/a'), scheme: 'https' });
    expect(checkedHeader(measured, 'x-forwarded-proto')).toEqual(['http']);
    expect((await traefik.observe('http2', { ...get('/a'), scheme: 'ftp' })).forwarded).toEqual([]);
  });
});

suite('Traefik without a setting that deploy/traefik/ has', () => {
  const traefik = useMeasuredProxy(
    traefikWith(
      withoutEntryPointSetting('encodeQuerySemicolons'),
      withoutEntryPointSetting('encodedCharacters'),
    ),
  );

  it('without encodeQuerySemicolons replaces a semicolon by an ampersand, for both', async () => {
    const measured = await traefik.observe('http1', get('/a?x=1;y=2'));
    expect(seen(measured)).toEqual(both('GET', '/a?x=1&y=2', AUTHORITY));
  });

  it('without encodedCharacters passes encoded slashes on', async () => {
    const measured = await traefik.observe('http1', get('/a%2fb'));
    expect(seen(measured)).toEqual(both('GET', '/a%2Fb', AUTHORITY));
  });
});
