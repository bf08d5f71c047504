/** Allowed requests, and the headers that must not reach the upstream. */
import {
  type HeaderLine,
  type RequestEdits,
  type RequestPlan,
  type WireRequest,
  withHeader,
  withoutHeader,
} from '../fixtures/signed-request.ts';
import { routeContentOf } from '../fixtures/snapshot.ts';
import { OTHER_TEST_KEYS } from '../fixtures/test-keys.ts';
import { BILLING, BROKER, type VectorCase } from './vector-case.ts';

const sendsToo = (...lines: readonly HeaderLine[]): RequestEdits => ({
  received: (request) => ({ ...request, headers: [...lines, ...request.headers] }),
});
const named = (...names: readonly string[]) => sendsToo(...names.map((name) => ({ name, value: 'forged' })));

const signing = (...headers: readonly HeaderLine[]): RequestEdits => ({
  transcript: (draft) => {
    draft.headers = [...draft.headers, ...headers].sort((a, b) => (a.name < b.name ? -1 : 1));
  },
});
const signsToo = (...headers: readonly HeaderLine[]): RequestEdits => ({
  ...sendsToo(...headers),
  ...signing(...headers),
});

const plans: readonly (readonly [string, RequestPlan])[] = [
  ['GET with a query', BILLING],
  ['POST with a body', { caller: 'billing', route: 'orders-write' }],
  ['POST with an empty body', { caller: 'billing', route: 'orders-write', body: Buffer.alloc(0) }],
  [
    'a body of every byte',
    {
      caller: 'billing',
      route: 'orders-write',
      body: Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)),
    },
  ],
  ['DELETE', { caller: 'billing', route: 'orders-cancel' }],
  ['DELETE with a body', { caller: 'billing', route: 'orders-cancel', body: Buffer.from('why') }],
  ['a body that is not bound', { caller: 'billing', route: 'uploads' }],
  ['headers that the route wants', { caller: 'billing', route: 'tenants' }],
  ['a route that forwards the passport', { caller: 'billing', route: 'forward' }],
  ['a route with the passport in a header of its own', { caller: 'billing', route: 'bearer' }],
  ["an origin of the route's own, with a port", { caller: 'billing', route: 'partners' }],
  ['http, and another audience', { caller: 'billing', route: 'internal' }],
  ['a realtime route', { caller: 'billing', route: 'prices' }],
  ['a P-256 derived key', { caller: 'reporting', route: 'orders-read' }],
  ['a P-256 broker', { caller: 'brokerEc', route: 'orders-read' }],
  ['a broker for an Ed25519 holder', { ...BROKER, holder: OTHER_TEST_KEYS.holder }],
  ['a broker for a P-256 holder', { ...BROKER, holder: OTHER_TEST_KEYS.holderEc }],
  ['an issuer of software keys', { caller: 'automation', route: 'orders-read' }],
  ['everything that a route can ask for', { caller: 'broker', route: 'everything' }],
];

const CHANGED = 'request_binding_mismatch/header.authorization 403';
const SIGNED_AUTHORIZATION: readonly (readonly [string, (request: WireRequest) => WireRequest, string])[] = [
  ['as it was signed', (request) => request, 'allowed'],
  ['changed', (request) => withHeader(request, 'authorization', () => 'Bearer of-another'), CHANGED],
  ['taken away', (request) => withoutHeader(request, 'authorization'), CHANGED],
  [
    'on two lines',
    ({ headers, ...request }) => ({
      ...request,
      headers: [...headers, ...headers.filter(({ name }) => name === 'authorization')],
    }),
    CHANGED,
  ],
];

export const UPSTREAM_CASES: readonly VectorCase[] = [
  ...plans.map(([name, plan]) => ({ name: `request: ${name}`, plan, outcome: 'allowed' })),
  {
    name: 'request: headers of its own are signed, values with commas, spaces and equals signs',
    plan: BILLING,
    edits: signsToo(
      { name: 'x-b', value: 'b' },
      { name: 'x-a_c', value: '1=2' },
      { name: 'x-a-c', value: 'one,  two' },
      { name: 'x0', value: '"' },
      { name: 'x-a', value: '-' },
    ),
    outcome: 'allowed',
  },
  ...SIGNED_AUTHORIZATION.map(
    ([what, received, outcome]): VectorCase => ({
      name: `request: the Authorization of the application, signed, ${what}`,
      plan: { caller: 'billing', route: 'bearer' },
      edits: { ...signing({ name: 'authorization', value: 'Bearer of-the-application' }), received },
      outcome,
    }),
  ),
  {
    name: 'request: the route wants the Authorization of the application signed, and it is not',
    bundle: {
      name: 'site, with a route that signs Authorization',
      change: (content) => {
        routeContentOf(content, 'bearer').signed_headers = ['authorization'];
      },
    },
    plan: { caller: 'billing', route: 'bearer' },
    outcome: 'request_binding_mismatch/headers 403',
  },
  {
    name: 'upstream: context headers that the caller sends are overwritten',
    plan: BILLING,
    edits: named('x-proofgate-subject', 'X-Proofgate-Route-Id'),
    outcome: 'allowed',
  },
  {
    name: 'upstream: a client ID that nobody set is removed',
    plan: BROKER,
    edits: named('X-Proofgate-Client-Id'),
    alsoRemoved: ['x-proofgate-client-id'],
    outcome: 'allowed',
  },
  {
    name: 'upstream: other names of ours are removed, in any punctuation',
    plan: BILLING,
    edits: named(
      'x-proofgate-anything',
      'X_Proofgate_Subject',
      'x.proofgate.subject',
      'x-proofgate',
      'XProofgateSubject',
    ),
    alsoRemoved: [
      'x-proofgate-anything',
      'x_proofgate_subject',
      'x.proofgate.subject',
      'x-proofgate',
      'xproofgatesubject',
    ],
    outcome: 'allowed',
  },
  {
    name: 'upstream: names that make an API serve another request are removed',
    plan: BILLING,
    edits: named(
      'X-Original-URL',
      'x-rewrite-url',
      'X_HTTP_Method_Override',
      'x-http-method',
      'x-method-override',
    ),
    alsoRemoved: [
      'x-original-url',
      'x-rewrite-url',
      'x_http_method_override',
      'x-http-method',
      'x-method-override',
    ],
    outcome: 'allowed',
  },
  {
    name: 'upstream: names that only look like ours stay',
    plan: BILLING,
    edits: named('x-proofgat', 'my-x-proofgate-subject'),
    outcome: 'allowed',
  },
];
