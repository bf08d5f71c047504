/**
 * Header lines that servers name, join or end differently (RFC 9112 section 5), around a signed header and around headers that
 * only the verifier may set. Sources: CVE-2023-30589, CVE-2024-27982, GHSA-7r4p-vjf4-gxv4 (Caddy), GHSA-rf44-j88r-hh8c (Traefik).
 */
import { type Http1Case, named } from '../../support/hostile/cases.ts';

/** Lines in place of the signed `X-Tenant: t1`. */
const TENANTS = named({
  'another behind': 'X-Tenant: t1\r\nX-Tenant: t2\r\n',
  'another before': 'X-Tenant: t2\r\nX-Tenant: t1\r\n',
  'the same again': 'X-Tenant: t1\r\nX-Tenant: t1\r\n',
  list: 'X-Tenant: t1, t2\r\n',
  'list that begins with a comma': 'X-Tenant: ,t1\r\n',
  'another with a space before the colon': 'X-Tenant: t1\r\nX-Tenant : t2\r\n',
  'another with a tab before the colon': 'X-Tenant: t1\r\nX-Tenant\t: t2\r\n',
  'another with an underscore': 'X-Tenant: t1\r\nX_Tenant: t2\r\n',
  'another with a dot': 'X-Tenant: t1\r\nX.Tenant: t2\r\n',
  'another in capitals': 'X-Tenant: t1\r\nX-TENANT: t2\r\n',
  'another with a NUL': 'X-Tenant: t1\r\nX-Tenant\x00: t2\r\n',
  'another with byte 0xff': 'X-Tenant: t1\r\nX-Tenant\xff: t2\r\n',
  folded: 'X-Tenant:\r\n t1\r\n',
  'folded behind': 'X-Tenant: t1\r\n t2\r\n',
  'folded with a tab behind': 'X-Tenant: t1\r\n\tt2\r\n',
  'folded with nothing behind': 'X-Tenant: t1\r\n \r\n',
  'bare LF behind': 'X-Tenant: t1\nX-Other: o\r\n',
  'bare LF and another': 'X-Tenant: t1\nX-Tenant: t2\r\n',
  'bare CR and another': 'X-Tenant: t1\rX-Tenant: t2\r\n',
  'CR CR LF': 'X-Tenant: t1\r\r\n',
  'LF CR': 'X-Tenant: t1\n\r',
  'NUL behind': 'X-Tenant: t1\x00\r\n',
  'NUL and more': 'X-Tenant: t1\x00t2\r\n',
  'vertical tab behind': 'X-Tenant: t1\x0b\r\n',
  'tabs around': 'X-Tenant:\tt1\t\r\n',
  'spaces around': 'X-Tenant:   t1   \r\n',
  'byte 0x7f behind': 'X-Tenant: t1\x7f\r\n',
  'byte 0xa0 behind': 'X-Tenant: t1\xa0\r\n',
  'byte 0x85 behind': 'X-Tenant: t1\x85\r\n',
  quoted: 'X-Tenant: "t1"\r\n',
  'another case': 'X-Tenant: T1\r\n',
  empty: 'X-Tenant:\r\n',
  'no colon': 'X-Tenant t1\r\n',
  'two colons': 'X-Tenant:: t1\r\n',
  'space before the colon': 'X-Tenant : t1\r\n',
  'space before the name': ' X-Tenant: t1\r\n',
  none: '',
  'named in Connection': 'Connection: X-Tenant\r\nX-Tenant: t1\r\n',
  'named in Connection with close': 'Connection: close, x-tenant\r\nX-Tenant: t1\r\n',
  'named in Keep-Alive': 'Keep-Alive: x-tenant\r\nX-Tenant: t1\r\n',
  'named in Trailer': 'Trailer: X-Tenant\r\nX-Tenant: t1\r\n',
});

const signedTenants = TENANTS.map(
  ([name, lines]): Http1Case => ({
    name: `signed header: ${name}`,
    family: 'header-lines',
    success: 'the upstream reads another value of the signed header',
    signs: [{ route: 'tenantOrders', headers: [{ name: 'x-tenant', value: 't1' }] }],
    writes: [`GET /v1/tenant/orders HTTP/1.1\r\nHost: api.shop.example\r\n{credentials}${lines}\r\n`],
  }),
);

const LINES = named({
  plain: 'X-Proofgate-Subject: root\r\n',
  twice: 'X-Proofgate-Subject: root\r\nX-Proofgate-Subject: root\r\n',
  'lower case': 'x-proofgate-subject: root\r\n',
  underscores: 'X_Proofgate_Subject: root\r\n',
  'underscore last': 'X-Proofgate_Subject: root\r\n',
  dots: 'X.Proofgate.Subject: root\r\n',
  'two dashes': 'X--Proofgate-Subject: root\r\n',
  'dash last': 'X-Proofgate-Subject-: root\r\n',
  'space before the colon': 'X-Proofgate-Subject : root\r\n',
  'tab before the colon': 'X-Proofgate-Subject\t: root\r\n',
  'space before the name': ' X-Proofgate-Subject: root\r\n',
  'folded behind another': 'X-A: b\r\n X-Proofgate-Subject: root\r\n',
  'folded name': 'X-Proofgate-\r\n Subject: root\r\n',
  'bare LF before': 'X-A: b\nX-Proofgate-Subject: root\r\n',
  'bare CR before': 'X-A: b\rX-Proofgate-Subject: root\r\n',
  'CR CR LF before': 'X-A: b\r\r\nX-Proofgate-Subject: root\r\n',
  'NUL behind the name': 'X-Proofgate-Subject\x00: root\r\n',
  'byte 0x7f in the name': 'X-Proofgate\x7f-Subject: root\r\n',
  'byte 0xff in the name': 'X-Proofgate-Subject\xff: root\r\n',
  'colon first': ':X-Proofgate-Subject: root\r\n',
  'empty name before': ': a\r\nX-Proofgate-Subject: root\r\n',
  'name without a colon before': 'X-A\r\nX-Proofgate-Subject: root\r\n',
  'quote in the name': '"X-Proofgate-Subject": root\r\n',
  'named in Connection': 'Connection: X-Proofgate-Subject\r\nX-Proofgate-Subject: root\r\n',
  'an invented decision': 'X-Proofgate-Decision-Id: 00000000-0000-4000-8000-000000000000\r\n',
  'another client': 'X-Proofgate-Client-Id: root\r\n',
  'another name of ours': 'X-Proofgate-Roles: root\r\n',
  'a prefix alone': 'X-Proofgate: root\r\n',
  'method override': 'X-HTTP-Method-Override: DELETE\r\n',
  'method override with _': 'X_HTTP_Method_Override: DELETE\r\n',
  'original URL': 'X-Original-URL: /v1/payroll\r\n',
  'rewrite URL': 'X-Rewrite-URL: /v1/payroll\r\n',
  'second authorization': 'Authorization: Bearer root\r\n',
  'authorization with a space before the colon': 'Authorization : Bearer root\r\n',
  'authorization with an underscore first': '_Authorization: Bearer root\r\n',
  'partial body': 'x-envoy-auth-partial-body: false\r\n',
  'original path of Envoy': 'x-envoy-original-path: /v1/payroll\r\n',
});

const contextLines = LINES.map(
  ([name, lines]): Http1Case => ({
    name: `foreign header: ${name}`,
    family: 'header-lines',
    success: 'the upstream receives a header that the verifier did not write',
    signs: [{ route: 'readOrder' }],
    writes: [`GET /v1/orders/4711 HTTP/1.1\r\nHost: api.shop.example\r\n{proof}${lines}\r\n`],
  }),
);

export const HEADER_LINES: readonly Http1Case[] = [...signedTenants, ...contextLines];
