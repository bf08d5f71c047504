/** Ways to make the signer sign for an origin that is not configured, or for another request than the upstream serves. */
import type { HeaderLine, WireRequest } from '../../../../src/tools/conformance/wire/exchange.ts';

/** What may happen: nothing leaves the signer, or the request leaves for the configured origin with the given target. */
export type Allowed = 'refused' | { readonly target: string };

export interface DeputyCase {
  readonly name: string;
  readonly allowed: Allowed;
  /** Bytes of HTTP/1.1. */
  readonly bytes?: string;
  /** Header lines of HTTP/2. */
  readonly http2?: { readonly request: WireRequest; readonly lines: readonly HeaderLine[] };
}

export interface Addresses {
  /** `HOST:PORT` of the signer. */
  readonly own: string;
  /** Another server, which the attacker wants a signed request for. */
  readonly decoy: string;
  /** Authority of the configured origin. */
  readonly upstream: string;
}

const ORDER = '/v1/orders/1';
const OWN_REQUEST = { target: ORDER } as const;
const REFUSED = 'refused';

export function deputyCases(addresses: Addresses): readonly DeputyCase[] {
  return [...targets(addresses), ...hosts(addresses), ...headers(addresses), ...browsers(addresses)].concat(
    smuggling(addresses),
    http2(addresses),
  );
}

const get = (target: string, host: string, lines = '') =>
  `GET ${target} HTTP/1.1\r\nHost: ${host}\r\n${lines}Connection: close\r\n\r\n`;

function targets({ decoy, own, upstream }: Addresses): readonly DeputyCase[] {
  const port = own.split(':')[1];
  const raw = (name: string, target: string): DeputyCase => ({
    name: `target: ${name}`,
    allowed: REFUSED,
    bytes: get(target, own),
  });
  return [
    raw('absolute form of another origin', `http://${decoy}${ORDER}`),
    raw('absolute form of another origin over TLS', `https://${decoy}${ORDER}`),
    raw('absolute form of the upstream', `http://${upstream}${ORDER}`),
    raw('absolute form of the signer', `http://${own}${ORDER}`),
    raw('absolute form with userinfo', `http://${upstream}@${decoy}${ORDER}`),
    raw('another scheme', `file://${ORDER}`),
    raw('network path', `//${decoy}${ORDER}`),
    raw('back slashes', `/\\${decoy}${ORDER}`),
    raw('authority form', decoy),
    raw('userinfo in a path', `@${decoy}${ORDER}`),
    raw('dot segments', '/v1/admin/../orders/1'),
    raw('escaped dot segments', '/v1/admin/%2e%2e/orders/1'),
    raw('escaped slash', '/v1%2forders/1'),
    raw('fragment', `${ORDER}#@${decoy}`),
    raw('path parameter', `/v1;@${decoy}/orders/1`),
    raw('asterisk', '*'),
    raw('empty path with a query', `?${ORDER}`),
    raw('bytes above ASCII', '/v1/orders/\u00e9'),
    raw('overlong UTF-8', '/v1/orders/%c0%af'),
    {
      name: 'target: CONNECT to another server',
      allowed: REFUSED,
      bytes: `CONNECT ${decoy} HTTP/1.1\r\nHost: ${decoy}\r\n\r\n`,
    },
    {
      name: 'target: CONNECT to the signer',
      allowed: REFUSED,
      bytes: `CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: ${own}\r\n\r\n`,
    },
  ];
}

function hosts({ decoy, own, upstream }: Addresses): readonly DeputyCase[] {
  const port = own.split(':')[1];
  const host = (name: string, value: string): DeputyCase => ({
    name: `Host: ${name}`,
    allowed: REFUSED,
    bytes: get(ORDER, value),
  });
  return [
    host('another server', decoy),
    host('the upstream', upstream),
    host('a name that was rebound to loopback', `rebind.attacker.example:${port}`),
    host('a subdomain of localhost', `attacker.localhost:${port}`),
    host('another port', '127.0.0.1:1'),
    host('no port', '127.0.0.1'),
    host('userinfo', `user@${own}`),
    host('trailing dot', `localhost.:${port}`),
    host('two values in one line', `${own}, ${decoy}`),
    host('a number', `2130706433:${port}`),
    host('a short address', `127.1:${port}`),
    host('an address of IPv6 that maps to IPv4', `[::ffff:127.0.0.1]:${port}`),
    host('empty', ''),
    {
      name: 'Host: missing',
      allowed: REFUSED,
      bytes: `GET ${ORDER} HTTP/1.1\r\nConnection: close\r\n\r\n`,
    },
    { name: 'Host: twice', allowed: REFUSED, bytes: get(ORDER, own, `Host: ${decoy}\r\n`) },
    { name: 'Host: space before the colon', allowed: REFUSED, bytes: get(ORDER, own, `Host : ${decoy}\r\n`) },
    { name: 'Host: folded line', allowed: REFUSED, bytes: get(ORDER, `${own}\r\n ${decoy}`) },
  ];
}

function headers({ decoy, own }: Addresses): readonly DeputyCase[] {
  const header = (line: string): DeputyCase => ({
    name: `header: ${line.split(decoy).join('…')}`,
    allowed: OWN_REQUEST,
    bytes: get(ORDER, own, `${line}\r\n`),
  });
  return [
    header(`X-Forwarded-Host: ${decoy}`),
    header('X-Forwarded-Proto: https'),
    header('X-Forwarded-Prefix: /v1/admin'),
    header(`Forwarded: host=${decoy};proto=https`),
    header('X-Original-URL: /v1/admin/reload'),
    header('X-Rewrite-URL: /v1/admin/reload'),
    header('X-HTTP-Method-Override: POST'),
    header(`X-Original-Host: ${decoy}`),
    header(`Referer: http://${decoy}/`),
    header('Authorization: Passport x.y.z'),
    header('X-Proofgate-Route-Id: admin-reload'),
    header('X_Proofgate_Passport: x.y.z'),
    header('Proxy-Authorization: Basic eDp5'),
    { name: 'header: Connection', allowed: REFUSED, bytes: get(ORDER, own, 'Connection: X-Tenant\r\n') },
  ];
}

function browsers({ own }: Addresses): readonly DeputyCase[] {
  const browser = (line: string): DeputyCase => ({
    name: `browser: ${line}`,
    allowed: REFUSED,
    bytes: get(ORDER, own, `${line}\r\n`),
  });
  return [
    browser('Origin: https://attacker.example'),
    browser('Origin: null'),
    browser('Sec-Fetch-Site: cross-site'),
    browser('Sec-Fetch-Site: same-origin'),
    browser('Sec-Fetch-Dest: image'),
    {
      name: 'browser: form',
      allowed: REFUSED,
      bytes: `POST /v1/orders HTTP/1.1\r\nHost: ${own}\r\nOrigin: http://x.example\r\nContent-Length: 1\r\n\r\na`,
    },
    {
      name: 'browser: preflight',
      allowed: REFUSED,
      bytes: `OPTIONS ${ORDER} HTTP/1.1\r\nHost: ${own}\r\nOrigin: http://x.example\r\nAccess-Control-Request-Method: GET\r\n\r\n`,
    },
  ];
}

function smuggling({ decoy, own }: Addresses): readonly DeputyCase[] {
  const hidden = `GET /v1/admin/reload HTTP/1.1\r\nHost: ${decoy}\r\n\r\n`;
  const post = (lines: string, body: string) =>
    `POST /v1/orders HTTP/1.1\r\nHost: ${own}\r\nConnection: close\r\n${lines}\r\n${body}`;
  const chunked = 'Transfer-Encoding: chunked\r\n';
  const order = { target: '/v1/orders' };
  const one = (name: string, allowed: Allowed, bytes: string): DeputyCase => ({
    name: `smuggling: ${name}`,
    allowed,
    bytes,
  });
  return [
    one(
      'length and chunks',
      REFUSED,
      post(`Content-Length: ${hidden.length + 5}\r\n${chunked}`, `0\r\n\r\n${hidden}`),
    ),
    one('chunks and length', REFUSED, post(`${chunked}Content-Length: 4\r\n`, `0\r\n\r\n${hidden}`)),
    one('two lengths', REFUSED, post(`Content-Length: 0\r\nContent-Length: ${hidden.length}\r\n`, hidden)),
    one('unknown coding', REFUSED, post('Transfer-Encoding: xchunked\r\n', `0\r\n\r\n${hidden}`)),
    one('chunked twice', REFUSED, post(`${chunked}${chunked}`, `0\r\n\r\n${hidden}`)),
    one('length with a sign', REFUSED, post('Content-Length: +4\r\n', hidden)),
    one('a request as body', order, post(`Content-Length: ${Buffer.byteLength(hidden)}\r\n`, hidden)),
    one('trailers', order, post(chunked, `1\r\na\r\n0\r\nHost: ${decoy}\r\nX-Proofgate-Subject: a\r\n\r\n`)),
    one('line feeds alone', REFUSED, `GET ${ORDER} HTTP/1.1\nHost: ${own}\nHost: ${decoy}\n\n`),
    one('HTTP/1.0', REFUSED, `GET ${ORDER} HTTP/1.0\r\nHost: ${own}\r\n\r\n`),
    one('HTTP/0.9', REFUSED, `GET ${ORDER}\r\n\r\n`),
    one('a space in the target', REFUSED, get(`${ORDER} HTTP/1.1 /x`, own)),
    one('offer of h2c', { target: ORDER }, get(ORDER, own, 'Upgrade: h2c\r\n')),
    one('another upgrade', REFUSED, get(ORDER, own, 'Upgrade: h2c, foo\r\n')),
    one(
      'WebSocket',
      REFUSED,
      `GET ${ORDER} HTTP/1.1\r\nHost: ${own}\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`,
    ),
  ];
}

function http2({ decoy, own, upstream }: Addresses): readonly DeputyCase[] {
  const usual: readonly (readonly [string, string])[] = [
    [':method', 'GET'],
    [':scheme', 'http'],
    [':authority', own],
    [':path', ORDER],
  ];
  const request: WireRequest = { method: 'GET', target: ORDER, authority: own };
  const changed = (
    name: string,
    changes: { readonly [name: string]: string },
    allowed: Allowed = REFUSED,
  ) => ({
    name: `HTTP/2: ${name}`,
    allowed,
    http2: {
      request,
      lines: [
        ...usual.map(([header, value]) => [header, changes[header] ?? value] as const),
        ...Object.entries(changes).filter(([header]) => !header.startsWith(':')),
      ],
    },
  });
  return [
    changed('authority of another server', { ':authority': decoy }),
    changed('authority of the upstream', { ':authority': upstream }),
    changed('Host differs from the authority', { host: decoy }),
    changed('another scheme', { ':scheme': 'https' }),
    changed('absolute path', { ':path': `http://${decoy}${ORDER}` }),
    changed('network path', { ':path': `//${decoy}${ORDER}` }),
    changed('CONNECT', { ':method': 'CONNECT' }),
    changed('Origin', { origin: 'null' }),
    changed('forwarded host', { 'x-forwarded-host': decoy }, OWN_REQUEST),
  ];
}
