/**
 * Tests ways around the check through a real Envoy. In each case the upstream receives exactly what was signed and allowed, or
 * nothing.
 */
import { describe, expect, it } from '@jest/globals';
import {
  type HeaderLine,
  headerValues,
  NoResponse,
  type WireRequest,
} from '../../src/tools/conformance/wire/exchange.ts';
import { statusesUntilClosed } from '../../src/tools/conformance/wire/http1.ts';
import { requestLines, sendLines } from '../../src/tools/conformance/wire/http2.ts';
import { AMBIGUOUS_PATHS, OTHER_AUTHORITIES, printable } from '../support/site/ambiguous-targets.ts';
import { derivedKeyCaller } from '../support/site/callers.ts';
import { type GatewayVariant, useEnvironment } from '../support/site/environment.ts';
import { type Gateway, PROTOCOLS, type Protocol } from '../support/site/gateway.ts';
import { AUTHORITY, ROUTES } from '../support/site/routes.ts';
import { type RequestPlan, signedRequest, withMoreHeaders } from '../support/site/signed-request.ts';
import { LANE_ENVOYS } from './lane-envoys.ts';

const { createOrder, files, readOrder } = ROUTES;
const environment = useEnvironment(['usual']);
const H1: GatewayVariant = { name: 'shipped' };
const H2C: GatewayVariant = { name: 'h2c upstream', upstream: { protocol: 'h2c' } };

const signed = (plan: Partial<RequestPlan> = {}) =>
  signedRequest(environment.site, { caller: derivedKeyCaller(environment.site), route: readOrder, ...plan });

interface Attempt {
  readonly status: number;
  /** Method, authority, target and body of what arrived at the upstream. */
  readonly arrived: readonly (readonly string[])[];
}

const refused = { status: expect.any(Number), arrived: [] };
const asSigned = [['GET', AUTHORITY, '/v1/orders/4711', '']];

async function attempt(gateway: Gateway, send: () => Promise<{ status: number }>): Promise<Attempt> {
  gateway.upstream.clear();
  const status = await send().then(
    (response) => response.status,
    (error: unknown) => {
      if (error instanceof NoResponse && error.kind !== 'timeout') return 400;
      throw error;
    },
  );
  if (status === 503) throw new Error('no decision: 503');
  const arrived = gateway.upstream.requests.map(({ method, url, headers, body }) => [
    method,
    headers.find(([name]) => name === ':authority' || name.toLowerCase() === 'host')?.[1] ?? '',
    url,
    body.toString('latin1'),
  ]);
  return { status, arrived };
}

async function attemptOver(
  version: string,
  protocol: Protocol,
  request: WireRequest,
  variant?: GatewayVariant,
): Promise<Attempt> {
  const gateway = await environment.gateway(version, 'usual', variant);
  return attempt(gateway, () => gateway.client(protocol).send(request));
}

describe.each(LANE_ENVOYS)('Envoy %s', (version) => {
  describe.each(PROTOCOLS)('%s', (protocol) => {
    it.each([H1, H2C])('refuses ambiguous paths, although signed: $name', async (variant) => {
      for (const target of AMBIGUOUS_PATHS) {
        const route = target.startsWith('/v1/files') ? files : readOrder;
        const request = signed({ route, target: printable(target) });
        expect({
          target,
          ...(await attemptOver(version, protocol, { ...request, target }, variant)),
        }).toEqual({ target, ...refused });
      }
    });

    it('refuses every other authority', async () => {
      for (const authority of OTHER_AUTHORITIES) {
        const made = await attemptOver(version, protocol, { ...signed(), authority });
        expect({ authority, ...made }).toEqual({ authority, ...refused });
      }
    });

    it('takes the same authority in other capitals, and with the default port', async () => {
      for (const authority of ['API.Shop.Example', 'api.shop.example:80']) {
        const { status, arrived } = await attemptOver(version, protocol, { ...signed(), authority });
        expect([status, arrived]).toEqual([200, [['GET', authority, '/v1/orders/4711', '']]]);
      }
    });

    it.each([H1, H2C])('refuses a query changed in any byte: $name', async (variant) => {
      const target = '/v1/orders/4711?q=a!b,c&r=%2F';
      for (const sent of [
        '/v1/orders/4711?q=a\xffb,c&r=%2F',
        '/v1/orders/4711?q=a\x80b,c&r=%2F',
        '/v1/orders/4711?q=a!b,c&r=/',
        '/v1/orders/4711?q=a!b,c&r=%2f',
        '/v1/orders/4711?r=%2F&q=a!b,c',
        '/v1/orders/4711?q=a!b,c&r=%2F&',
        '/v1/orders/4711?q=a%21b,c&r=%2F',
        '/v1/orders/4711',
        '/v1/orders/4711#?q=a!b,c&r=%2F',
        '/v1/orders/4711??q=a!b,c&r=%2F',
      ]) {
        const made = await attemptOver(version, protocol, { ...signed({ target }), target: sent }, variant);
        expect({ sent, ...made }).toEqual({ sent, ...refused });
      }
      const { arrived } = await attemptOver(version, protocol, signed({ target }), variant);
      expect(arrived).toEqual([['GET', AUTHORITY, target, '']]);
    });

    it.each([
      'get',
      'Get',
      'HEAD',
      'POST',
      'PUT',
      'DELETE',
      'OPTIONS',
      'TRACE',
      'PATCH',
      'CONNECT',
      'G\xffT',
    ])('refuses the method %j for a GET', async (method) => {
      expect(await attemptOver(version, protocol, { ...signed(), method })).toEqual(refused);
    });

    it('refuses one credential with the other of somebody else', async () => {
      const mine = signed();
      const theirs = signed({ caller: derivedKeyCaller(environment.site, 'dk_plain') });
      for (const name of ['authorization', 'x-proofgate-transcript', 'x-proofgate-signature']) {
        const [value = ''] = headerValues(theirs.headers ?? [], name);
        const headers = (mine.headers ?? []).map(
          ([key, own]): HeaderLine => [key, key === name ? value : own],
        );
        expect(await attemptOver(version, protocol, { ...mine, headers })).toEqual(refused);
      }
    });
  });

  describe('HTTP/1.1', () => {
    it('serves an absolute target as the origin that it names, and no other', async () => {
      const absolute = (origin: string, authority = AUTHORITY) =>
        attemptOver(version, 'HTTP/1.1', { ...signed(), authority, target: `${origin}/v1/orders/4711` });
      const { status, arrived } = await absolute(`http://${AUTHORITY}`, 'api.other.example');
      expect([status, arrived]).toEqual([200, asSigned]);
      for (const origin of [
        'http://api.other.example',
        `http://${AUTHORITY}@api.other.example`,
        `https://${AUTHORITY}`,
        `ftp://${AUTHORITY}`,
        `//${AUTHORITY}`,
        'http://',
      ]) {
        expect({ origin, ...(await absolute(origin)) }).toEqual({ origin, ...refused });
      }
      // Envoy takes the userinfo away, for verifier and upstream alike.
      expect((await absolute(`http://admin@${AUTHORITY}`)).arrived).toEqual(asSigned);
    });

    it.each<[string, readonly HeaderLine[]]>([
      ['a length beside a transfer coding', [['Transfer-Encoding', 'chunked']]],
      ['two lengths', [['Content-Length', '0']]],
      ['a transfer coding that is none', [['Transfer-Encoding', 'xchunked']]],
      ['a second transfer coding', [['Transfer-Encoding', 'identity, chunked']]],
      ['a transfer coding behind white space', [['Transfer-Encoding', '\tchunked']]],
      ['a signed length', [['Content-Length', '+5']]],
      ['another host', [['Host', 'api.other.example']]],
      ['the same host again', [['Host', AUTHORITY]]],
    ])('refuses framing and routing that can be read in two ways: %s', async (_what, headers) => {
      const smuggled = '0\r\n\r\nGET /v1/payroll HTTP/1.1\r\nHost: api.shop.example\r\n\r\n';
      const request = signed({ route: createOrder, body: smuggled, framing: 'length' });
      const made = await attemptOver(version, 'HTTP/1.1', withMoreHeaders(request, headers));
      expect(made).toEqual(refused);
    });

    it('checks each request of a connection, pipelined ones too', async () => {
      const gateway = await environment.gateway(version);
      const head = (request: WireRequest) =>
        `${request.method} ${request.target} HTTP/1.1\r\nHost: ${AUTHORITY}\r\n` +
        `${(request.headers ?? []).map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
      const first = signed();
      const unsigned = { method: 'GET', target: '/v1/orders/1', authority: AUTHORITY, headers: [] };
      const last = withMoreHeaders(signed(), [['Connection', 'close']]);
      const bytes = Buffer.from([first, first, unsigned, last].map(head).join(''));
      gateway.upstream.clear();
      expect(await statusesUntilClosed(gateway.envoy, bytes)).toEqual([200, 403, 401, 200]);
      expect(gateway.upstream.requests.map(({ url }) => url)).toEqual(['/v1/orders/4711', '/v1/orders/4711']);
    });
  });

  describe('HTTP/2', () => {
    const evil: HeaderLine = ['x-a', 'b\r\nx-proofgate-subject: root'];
    it.each<[string, (lines: readonly HeaderLine[]) => readonly HeaderLine[]]>([
      ['a second path', (lines) => [[':path', '/v1/payroll'], ...lines]],
      [
        'a second path behind',
        (lines) => [...lines.slice(0, 4), [':path', '/v1/payroll'], ...lines.slice(4)],
      ],
      ['a second method', (lines) => [[':method', 'DELETE'], ...lines]],
      ['a second authority', (lines) => [[':authority', 'api.other.example'], ...lines]],
      ['an unknown pseudo header', (lines) => [[':subject', 'root'], ...lines]],
      ['a status', (lines) => [[':status', '200'], ...lines]],
      ['an extended CONNECT', (lines) => [[':protocol', 'websocket'], ...lines]],
      ['a line break in a value', (lines) => [...lines, evil]],
      ['a line break in a name', (lines) => [...lines, ['x-a: b\r\nx-proofgate-subject', 'root']]],
      ['a NUL in a value', (lines) => [...lines, ['x-a', 'b\0c']]],
      ['a name in capitals', (lines) => [...lines, ['X-Proofgate-Subject', 'root']]],
      ['a space in a name', (lines) => [...lines, ['x-proofgate-subject ', 'root']]],
      ['a transfer coding', (lines) => [...lines, ['transfer-encoding', 'chunked']]],
      ['a Connection header', (lines) => [...lines, ['connection', 'x-proofgate-signature']]],
      ['a length that is wrong', (lines) => [...lines, ['content-length', '5']]],
      ['a request line for a method', replaced(':method', 'GET /v1/payroll HTTP/1.1\r\nx-a:')],
      ['a request line in the path', replaced(':path', '/v1/orders/4711 HTTP/1.1\r\nx-a: b')],
      ['an absolute path', replaced(':path', `http://${AUTHORITY}/v1/orders/4711`)],
    ])('refuses %s', async (_what, change) => {
      const gateway = await environment.gateway(version);
      const request = signed();
      const send = () => sendLines(gateway.envoy, request, change(requestLines(request)));
      expect(await attempt(gateway, send)).toEqual(refused);
    });

    it.each<[string, (lines: readonly HeaderLine[]) => readonly HeaderLine[]]>([
      ['a host header beside :authority', (lines) => [...lines, ['host', 'api.other.example']]],
      ['pseudo headers behind others', (lines) => [...lines.slice(4), ...lines.slice(0, 4)]],
      ['a scheme that is none', replaced(':scheme', 'http://api.other.example/?')],
    ])('forwards what was signed, if anything, for %s', async (_what, change) => {
      const gateway = await environment.gateway(version);
      const request = signed();
      const { arrived } = await attempt(gateway, () =>
        sendLines(gateway.envoy, request, change(requestLines(request))),
      );
      expect([[], asSigned]).toContainEqual(arrived);
    });

    it('takes the scheme from the listener, not from the caller', async () => {
      const claimed = await attemptOver(version, 'HTTP/2', { ...signed(), scheme: 'https' });
      expect(claimed.arrived).toHaveLength(1);
      const signedSo = signed({ transcript: { scheme: 'https' } });
      expect(await attemptOver(version, 'HTTP/2', { ...signedSo, scheme: 'https' })).toEqual(refused);
    });
  });
});

function replaced(name: string, value: string): (lines: readonly HeaderLine[]) => readonly HeaderLine[] {
  return (lines) => lines.map(([key, own]): HeaderLine => [key, key === name ? value : own]);
}
