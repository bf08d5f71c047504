/**
 * What a caller may try to make a proxy or the verifier believe: that it sent the request that it has a proof of, that it is
 * somebody else, or that its connection is another one. Each header is one that some proxy or framework trusts.
 */
import type { HeaderLine } from '../../../src/tools/conformance/wire/exchange.ts';

export interface SpoofedHeaders {
  readonly name: string;
  readonly headers: readonly HeaderLine[];
}

const METHOD = 'GET';
const TARGET = '/v1/orders/4711';
const HOST = 'api.shop.example';
export const CLAIMED_TARGET = TARGET;

const claim = (method: string, target: string): readonly HeaderLine[] => [
  [method, METHOD],
  [target, TARGET],
];
const one = (name: string, value: string): SpoofedHeaders => ({ name, headers: [[name, value]] });
const lines = (name: string, headers: readonly HeaderLine[]): SpoofedHeaders => ({ name, headers });

/** Sent with the proof of {@link CLAIMED_TARGET}, on a request for something else. The API must not get that request. */
export const OTHER_REQUEST: readonly SpoofedHeaders[] = [
  lines('X-Forwarded-Method, -Uri', claim('x-forwarded-method', 'x-forwarded-uri')),
  lines('X-Forwarded-Method, -Uri in upper case', claim('X-FORWARDED-METHOD', 'X-FORWARDED-URI')),
  lines('with underscores', claim('x_forwarded_method', 'x_forwarded_uri')),
  lines('with dots', claim('x.forwarded.method', 'x.forwarded.uri')),
  lines('twice', [
    ...claim('x-forwarded-method', 'x-forwarded-uri'),
    ...claim('x-forwarded-method', 'x-forwarded-uri'),
  ]),
  lines('empty ones', [
    ['x-forwarded-method', ''],
    ['x-forwarded-uri', ''],
  ]),
  lines('a list', [
    ['x-forwarded-method', `${METHOD}, DELETE`],
    ['x-forwarded-uri', `${TARGET}, /x`],
  ]),
  lines("named by Connection, so that the proxy's own may vanish", [
    ['connection', 'x-forwarded-method, x-forwarded-uri'],
    ...claim('x-forwarded-method', 'x-forwarded-uri'),
  ]),
  lines('named by Connection, without own ones', [
    ['connection', 'close, X-Forwarded-Uri, X-Forwarded-Method, X-Proofgate-Request'],
  ]),
  lines('X-Original-Method, -URI', claim('x-original-method', 'x-original-uri')),
  lines('X-Original-Method, -URL', claim('x-original-method', 'x-original-url')),
  lines('X-Auth-Request-Method, -Uri', claim('x-auth-request-method', 'x-auth-request-uri')),
  lines('X-Envoy-Original-Method, -Path', claim('x-envoy-original-method', 'x-envoy-original-path')),
  lines('X-HTTP-Method, X-Rewrite-URL', claim('x-http-method', 'x-rewrite-url')),
  lines('X-HTTP-Method-Override, X-Replaced-Path', claim('x-http-method-override', 'x-replaced-path')),
  lines('X-Method-Override, X-Forwarded-Path', claim('x-method-override', 'x-forwarded-path')),
  lines('X-Forwarded-Prefix', [
    ['x-forwarded-prefix', TARGET],
    ...claim('x-forwarded-method', 'x-forwarded-uri'),
  ]),
  lines('Forwarded', [
    ['forwarded', `for=127.0.0.1;host=${HOST};proto=http`],
    ...claim('x-forwarded-method', 'x-forwarded-uri'),
  ]),
  one('x-proofgate-request', `${METHOD} ${TARGET}`),
  one('X-Proofgate-Request', `x1IhJ0Yxg9fA6bqk3cTn5rWz8mVdPeSa ${METHOD} ${TARGET}`),
  one('X_Proofgate_Request', ` ${METHOD} ${TARGET}`),
  one('x-envoy-auth-partial-body', 'false'),
  lines('X-Envoy-Auth-Headers-To-Remove', [['x-envoy-auth-headers-to-remove', 'x-proofgate-decision-id']]),
  one('x-proofgate-decision-id', '00000000-0000-4000-8000-000000000000'),
  one('x-accel-redirect', TARGET),
];

/** Sent with a correct proof. The API may get the request as it was signed, from the caller that signed it, and nothing of these. */
export const OTHER_CALLER: readonly SpoofedHeaders[] = [
  ...[
    'x-proofgate-subject',
    'X-PROOFGATE-SUBJECT',
    'x_proofgate_subject',
    'X.Proofgate.Subject',
    'x-proofgate_subject',
    'x-proofgate.subject',
    'x~proofgate~subject',
    'x-proofgate-client-id',
    'x-proofgate-decision-id',
    'x-proofgate-reason',
    'x-proofgate-roles',
    'x-proofgate',
    'x-original-url',
    'x_http_method_override',
  ].map((name) => one(name, 'root')),
  lines('a subject named by Connection', [
    ['connection', 'x-proofgate-subject'],
    ['x-proofgate-subject', 'root'],
  ]),
  lines('the subject twice', [
    ['x-proofgate-subject', 'root'],
    ['X-Proofgate-Subject', 'root'],
  ]),
];

/** Sent with a proof for HTTPS, over plain text. The API must not get the request. */
export const OTHER_SCHEME: readonly SpoofedHeaders[] = [
  one('x-forwarded-proto', 'https'),
  one('x-forwarded-scheme', 'https'),
  one('x-forwarded-ssl', 'on'),
  one('x-scheme', 'https'),
  one('x-url-scheme', 'https'),
  one('front-end-https', 'on'),
  one('forwarded', 'proto=https'),
];

/** Sent to another host with a proof for the API's. The API must not get the request. */
export const OTHER_HOST: readonly SpoofedHeaders[] = [
  one('x-forwarded-host', HOST),
  one('x-forwarded-server', HOST),
  one('x-host', HOST),
  one('x-original-host', HOST),
  one('forwarded', `host=${HOST}`),
];
