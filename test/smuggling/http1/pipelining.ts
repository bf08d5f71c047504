/** Requests behind requests: with and without a proof, in bodies, across writes, and far too long. */
import { HIDDEN, HIDDEN_OPEN, type Http1Case, type SignedPlan } from '../../support/hostile/cases.ts';

const HOST = 'Host: api.shop.example\r\n';
const READ: SignedPlan = { route: 'readOrder' };
const first = `GET /v1/orders/4711 HTTP/1.1\r\n${HOST}{proof}\r\n`;
const second = `GET /v1/orders/4711 HTTP/1.1\r\n${HOST}{proof.2}\r\n`;

type Parts = Pick<Http1Case, 'signs' | 'writes'>;

const SEQUENCES: Readonly<Record<string, Parts>> = {
  'two with proofs': { signs: [READ, READ], writes: [first + second] },
  'two with proofs in two writes': { signs: [READ, READ], writes: [first, second] },
  'the same proof twice': { signs: [READ], writes: [first + first] },
  'the second without a proof': { signs: [READ], writes: [first + HIDDEN] },
  'the first without a proof': { signs: [READ], writes: [HIDDEN + first] },
  'the second cut inside its head': { signs: [READ], writes: [first + HIDDEN_OPEN] },
  'cut inside the request line': { signs: [READ], writes: [first.slice(0, 9), first.slice(9)] },
  'cut inside the credentials': { signs: [READ], writes: [first.slice(0, 60), first.slice(60) + HIDDEN] },
  'cut between CR and LF': { signs: [READ], writes: [first.slice(0, -1), '\n'] },
  'CRLF between them': { signs: [READ, READ], writes: [`${first}\r\n\r\n${second}`] },
  'LF between them': { signs: [READ, READ], writes: [`${first}\n${second}`] },
  'garbage between them': { signs: [READ, READ], writes: [`${first}garbage\r\n\r\n${second}`] },
  'NUL between them': { signs: [READ, READ], writes: [`${first}\x00${second}`] },
  'Connection: close, and a second': {
    signs: [READ, READ],
    writes: [`GET /v1/orders/4711 HTTP/1.1\r\n${HOST}{proof}Connection: close\r\n\r\n${second}`],
  },
  'the proof of the second at the first': {
    signs: [{ route: 'createOrder', body: '' }, READ],
    writes: [`GET /v1/orders/4711 HTTP/1.1\r\n${HOST}{proof}\r\n${second}`],
  },
  'swapped proofs': {
    signs: [READ, { route: 'cancelOrder' }],
    writes: [
      `GET /v1/orders/4711 HTTP/1.1\r\n${HOST}{proof.2}\r\nDELETE /v1/cancellations/4711 HTTP/1.1\r\n${HOST}{proof}\r\n`,
    ],
  },
  'a denied request whose body is a request with a proof': {
    signs: [{ route: 'createOrder', body: 'x' }, READ],
    writes: [`POST /v1/orders HTTP/1.1\r\n${HOST}{proof}Content-Length: ${second.length}\r\n\r\n${second}`],
  },
  'a denied request, its body cut': {
    signs: [READ],
    writes: [`POST /v1/orders HTTP/1.1\r\n${HOST}Content-Length: 1000\r\n\r\n${first}`],
  },
  'a denied request without an end of chunks': {
    signs: [READ],
    writes: [`POST /v1/orders HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n${first}`],
  },
  'a signed body that is a request with a proof': {
    signs: [{ route: 'createOrder', body: second }, READ],
    writes: [`POST /v1/orders HTTP/1.1\r\n${HOST}{proof}Content-Length: {length}\r\n\r\n{body}`],
  },
  'a signed body in chunks that is a request with a proof': {
    signs: [{ route: 'createOrder', body: second }, READ],
    writes: [
      `POST /v1/orders HTTP/1.1\r\n${HOST}{proof}Transfer-Encoding: chunked\r\n\r\n{hex}\r\n{body}\r\n0\r\n\r\n`,
    ],
  },
  'a signed body, and the length one less': {
    signs: [{ route: 'createOrder', body: second }, READ],
    writes: [`POST /v1/orders HTTP/1.1\r\n${HOST}{proof}Content-Length: {length-1}\r\n\r\n{body}`],
  },
  'a signed body, and the length one more': {
    signs: [{ route: 'createOrder', body: second }, READ],
    writes: [`POST /v1/orders HTTP/1.1\r\n${HOST}{proof}Content-Length: {length+1}\r\n\r\n{body}`],
  },
  'a signed body, and the length four more': {
    signs: [{ route: 'createOrder', body: HIDDEN }],
    writes: [`POST /v1/orders HTTP/1.1\r\n${HOST}{proof}Content-Length: {length+4}\r\n\r\n{body}`],
  },
  'an unbound body that is a request': {
    signs: [{ route: 'upload' }, { route: 'createOrder', body: HIDDEN }],
    writes: [`PUT /v1/uploads HTTP/1.1\r\n${HOST}{proof}Content-Length: {length.2}\r\n\r\n{body.2}`],
  },
  'an unbound body in chunks that is a request': {
    signs: [{ route: 'upload' }, { route: 'createOrder', body: HIDDEN }],
    writes: [
      `PUT /v1/uploads HTTP/1.1\r\n${HOST}{proof}Transfer-Encoding: chunked\r\n\r\n{hex.2}\r\n{body.2}\r\n0\r\n\r\n`,
    ],
  },
  'an unbound body, cut': {
    signs: [{ route: 'upload' }],
    writes: [`PUT /v1/uploads HTTP/1.1\r\n${HOST}{proof}Content-Length: 1000\r\n\r\n${HIDDEN}`],
  },
  'an unbound body with bad chunks': {
    signs: [{ route: 'upload' }],
    writes: [
      `PUT /v1/uploads HTTP/1.1\r\n${HOST}{proof}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n${HIDDEN}`,
    ],
  },
  'an unbound body with a chunk extension': {
    signs: [{ route: 'upload' }],
    writes: [
      `PUT /v1/uploads HTTP/1.1\r\n${HOST}{proof}Transfer-Encoding: chunked\r\n\r\n3;\n\r\nabc\r\n0\r\n\r\n${HIDDEN}`,
    ],
  },
  'an unbound body with a length and chunks': {
    signs: [{ route: 'upload' }],
    writes: [
      `PUT /v1/uploads HTTP/1.1\r\n${HOST}{proof}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
    ],
  },
  'an unbound body with Expect': {
    signs: [{ route: 'upload' }],
    writes: [
      `PUT /v1/uploads HTTP/1.1\r\n${HOST}{proof}Expect: 100-continue\r\nContent-Length: 5\r\n\r\n`,
      `order${HIDDEN}`,
    ],
  },
  'HEAD, and a second': {
    signs: [READ, READ],
    writes: [`HEAD /v1/orders/4711 HTTP/1.1\r\n${HOST}{proof}\r\n${second}`],
  },
  'twenty without a proof': { signs: [READ], writes: [first + HIDDEN.repeat(20)] },
};

/** Larger than common limits: what is cut off must not be read as a request. */
const LONG: Readonly<Record<string, string>> = {
  'target of 100 KB': `GET /v1/orders/${'a'.repeat(100_000)} HTTP/1.1\r\n${HOST}{proof}\r\n${HIDDEN}`,
  'header of 70 KB': `GET /v1/orders/4711 HTTP/1.1\r\n${HOST}{proof}X-Long: ${'a'.repeat(70_000)}\r\n\r\n${HIDDEN}`,
  'header name of 70 KB': `GET /v1/orders/4711 HTTP/1.1\r\n${HOST}{proof}X-${'a'.repeat(70_000)}: a\r\n\r\n${HIDDEN}`,
  'header of 300 KB': `GET /v1/orders/4711 HTTP/1.1\r\n${HOST}{proof}X-Long: ${'a'.repeat(300_000)}\r\n\r\n${HIDDEN}`,
  '150 headers': `GET /v1/orders/4711 HTTP/1.1\r\n${HOST}${'X-A: b\r\n'.repeat(150)}{proof}\r\n${HIDDEN}`,
  '5,000 headers': `GET /v1/orders/4711 HTTP/1.1\r\n${HOST}${'X-A: b\r\n'.repeat(5000)}{proof}\r\n${HIDDEN}`,
  '1,999 headers, Host behind them': `GET /v1/orders/4711 HTTP/1.1\r\n${'X-A: b\r\n'.repeat(1999)}${HOST}{proof}\r\n`,
  '2,001 headers, a length behind them': `POST /v1/orders HTTP/1.1\r\n${HOST}{proof}${'X-A: b\r\n'.repeat(2001)}Content-Length: 5\r\n\r\norder`,
  '1,000 headers of ours': `GET /v1/orders/4711 HTTP/1.1\r\n${HOST}{proof}${'X-Proofgate-A: b\r\n'.repeat(1000)}\r\n`,
  '2,000 folded lines': `GET /v1/orders/4711 HTTP/1.1\r\n${HOST}{proof}X-A: b\r\n${' c\r\n'.repeat(2000)}\r\n${HIDDEN}`,
  'empty lines without end': `${'\r\n'.repeat(20_000)}GET /v1/orders/4711 HTTP/1.1\r\n${HOST}{proof}\r\n`,
  'method of 70 KB': `${'G'.repeat(70_000)} /v1/orders/4711 HTTP/1.1\r\n${HOST}{proof}\r\n${HIDDEN}`,
};

export const PIPELINING: readonly Http1Case[] = [
  ...Object.entries(SEQUENCES).map(
    ([name, parts]): Http1Case => ({
      name: `sequence: ${name}`,
      family: 'pipelining',
      success: 'more requests reach the upstream than were allowed, or with other proofs',
      ...parts,
    }),
  ),
  ...Object.entries(LONG).map(
    ([name, text]): Http1Case => ({
      name: `long: ${name}`,
      family: 'long',
      success: 'what is behind a limit is read as a request, or the point stops serving',
      signs: [READ],
      writes: [text],
    }),
  ),
];
