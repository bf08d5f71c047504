/** Unchanged requests. They must be served, or a campaign shows nothing. */
import type { Http1Case } from '../../support/hostile/cases.ts';

const control = (name: string, rest: Pick<Http1Case, 'signs' | 'writes'>): Http1Case => ({
  name: `control: ${name}`,
  family: 'control',
  success: 'none: the request is served as it was signed',
  ...rest,
});

export const CONTROL: readonly Http1Case[] = [
  control('GET', {
    signs: [{ route: 'readOrder' }],
    writes: ['GET /v1/orders/4711 HTTP/1.1\r\nHost: api.shop.example\r\n{proof}\r\n'],
  }),
  control('POST with a length', {
    signs: [{ route: 'createOrder', body: 'order' }],
    writes: ['POST /v1/orders HTTP/1.1\r\nHost: api.shop.example\r\n{proof}Content-Length: 5\r\n\r\norder'],
  }),
  control('POST with chunks', {
    signs: [{ route: 'createOrder', body: 'order' }],
    writes: [
      'POST /v1/orders HTTP/1.1\r\nHost: api.shop.example\r\n{proof}Transfer-Encoding: chunked\r\n\r\n3\r\nord\r\n2\r\ner\r\n0\r\n\r\n',
    ],
  }),
];
