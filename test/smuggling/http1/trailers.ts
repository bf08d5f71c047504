/**
 * Trailer fields that name what was verified, framed or routed (RFC 9110 section 6.5: they must not be merged into headers
 * unless that is known to be safe; RFC 9112 section 7.1.2).
 */
import { HIDDEN, type Http1Case } from '../../support/hostile/cases.ts';

const LINES: readonly string[] = [
  'X-Tenant: t2',
  'x-proofgate-subject: root',
  'X_Proofgate_Subject: root',
  'X-Proofgate-Client-Id: root',
  'X-Proofgate-Decision-Id: 00000000-0000-4000-8000-000000000000',
  'X-Proofgate-Transcript: AAAA',
  'X-Proofgate-Signature: AAAA',
  'Authorization: Passport a.b.c',
  'Authorization: Bearer root',
  'Host: api.other.example',
  'Content-Length: 0',
  'Content-Length: 500',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: identity',
  'Connection: keep-alive, x-proofgate-subject',
  'Upgrade: websocket',
  'Expect: 100-continue',
  'Trailer: X-Proofgate-Subject',
  'TE: trailers',
  'X-HTTP-Method-Override: DELETE',
  'X-Original-URL: /v1/payroll',
  'X-Forwarded-For: 10.0.0.1',
  'Cookie: admin=1',
  ':path: /v1/payroll',
  ' X-Proofgate-Subject: root',
  'X-Proofgate-Subject : root',
  'X-Proofgate-Subject',
  ': root',
  'X-A: b\rX-Proofgate-Subject: root',
  'X-A: b\nX-Proofgate-Subject: root',
  'X-A: b\r\n X-Proofgate-Subject: root',
  'X-A: \x00',
  'GET /v1/payroll HTTP/1.1',
];

export const TRAILERS: readonly Http1Case[] = LINES.flatMap((line): readonly Http1Case[] =>
  [false, true].map((isAnnounced) => ({
    name: `trailer ${JSON.stringify(line)}${isAnnounced ? ', announced' : ''}`,
    family: 'trailers',
    success: 'the upstream takes a trailer for a header, or what follows it for a request',
    signs: [{ route: 'createOrder', body: 'order', headers: [{ name: 'x-tenant', value: 't1' }] }],
    writes: [
      'POST /v1/orders HTTP/1.1\r\nHost: api.shop.example\r\n{proof}' +
        `${isAnnounced ? `Trailer: ${/[A-Za-z_-]*/.exec(line.trim())?.[0] || 'x'}\r\nTE: trailers\r\nConnection: TE\r\n` : ''}` +
        `Transfer-Encoding: chunked\r\n\r\n5\r\norder\r\n0\r\n${line}\r\n\r\n${isAnnounced ? '' : HIDDEN}`,
    ],
  })),
);
