/**
 * Denials at the end of step 5 (the request differs from what was signed) and in step 6 (replay), and the verifier's own
 * faults.
 */
import { BINDING_FAULTS } from '../../../src/tools/conformance/cases/binding-faults.ts';
import type { WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import { attestedCaller, derivedKeyCaller } from '../site/callers.ts';
import { ROUTES } from '../site/routes.ts';
import { type RequestPlan, signedRequest, withHeader, withMoreHeaders } from '../site/signed-request.ts';
import { nowSeconds, type Site } from '../site/site.ts';
import { denialCases } from '../site/subject.ts';
import type { DenialCase, DenialCases } from './denial-case.ts';

type Case = DenialCase<'request_binding_mismatch'>;

const { createOrder, createUnseen, readOrder, replaceOrder, tenantOrders } = ROUTES;
const tenant = { name: 'x-tenant', value: 'north' };
const order = Buffer.from('{"item":1,"count":2}');

const signed = (site: Site, plan: Omit<RequestPlan, 'caller'>): WireRequest =>
  signedRequest(site, { caller: derivedKeyCaller(site), ...plan });

/** Signed rightly, then sent otherwise. */
function changed(
  detail: Case['detail'],
  what: string,
  plan: Omit<RequestPlan, 'caller'>,
  change: (request: WireRequest) => WireRequest,
): Case {
  return { what, detail, routeId: plan.route.route_id, provoke: (site) => change(signed(site, plan)) };
}

const toTarget = (target: string) => (request: WireRequest) => ({ ...request, target });
const CHANGED: readonly Case[] = [
  changed('target', 'another resource', { route: readOrder }, toTarget('/v1/orders/4712')),
  changed(
    'target',
    'a path that Envoy normalises',
    { route: readOrder, target: '/v1/orders/./4711' },
    (r) => r,
  ),
  {
    what: 'for another method',
    detail: 'route-id',
    routeId: replaceOrder.route_id,
    provoke: (site) => ({ ...signed(site, { route: readOrder }), method: 'PUT' }),
  },
  {
    what: 'for another path',
    detail: 'route-id',
    routeId: createUnseen.route_id,
    provoke: (site) => ({ ...signed(site, { route: createOrder, body: order }), target: '/v1/unseen' }),
  },
  changed('headers', 'a header that the route requires, unsigned', { route: tenantOrders }, (request) =>
    withMoreHeaders(request, [[tenant.name, tenant.value]]),
  ),
  changed(
    'header.x-tenant',
    'a header that the route requires, changed',
    { route: tenantOrders, signedHeaders: [tenant] },
    (request) => withHeader(request, tenant.name, 'south'),
  ),
  changed(
    'header.x-tenant',
    'a header that the route requires, taken away',
    { route: tenantOrders, signedHeaders: [tenant] },
    (request) => withHeader(request, tenant.name),
  ),
  changed(
    'header.x-tenant',
    'a header that the route requires, repeated',
    { route: tenantOrders, signedHeaders: [tenant] },
    (request) => withMoreHeaders(request, [[tenant.name, 'south']]),
  ),
];

const BINDING: readonly Case[] = [
  ...denialCases(BINDING_FAULTS),
  ...CHANGED,
  {
    what: 'a body that Envoy does not send',
    detail: 'body_unavailable',
    routeId: createUnseen.route_id,
    provoke: (site) => signed(site, { route: createUnseen, body: order, framing: 'length' }),
  },
];

const atOrders = { routeId: readOrder.route_id, callerVerified: true };
const read = (site: Site) => signed(site, { route: readOrder });

const twice = (site: Site) => {
  const request = read(site);
  return [request, request] as const;
};

/** From before the verifier, or its Redis, began to remember; still within its five minutes. */
const fromBefore = (site: Site) => {
  const issuedAtSeconds = nowSeconds() - 240;
  return signed(site, {
    route: readOrder,
    transcript: { issuedAtSeconds, expiresAtSeconds: issuedAtSeconds + 300 },
  });
};

export const BINDING_AND_REPLAY_DENIALS: DenialCases<
  'request_binding_mismatch' | 'jti_replay' | 'replay_store_unavailable' | 'verifier_unavailable'
> = {
  request_binding_mismatch: BINDING,
  jti_replay: [
    { what: 'in memory', detail: undefined, ...atOrders, provoke: twice },
    { what: 'in Redis', detail: undefined, ...atOrders, state: 'redis', provoke: twice },
  ],
  replay_store_unavailable: [
    {
      what: 'older than the memory of the process',
      detail: 'fenced',
      ...atOrders,
      provoke: fromBefore,
    },
    {
      what: 'older than the memory of Redis',
      detail: 'fenced',
      ...atOrders,
      state: 'redis',
      provoke: fromBefore,
    },
    { what: 'Redis is gone', detail: 'store', ...atOrders, state: 'redis_gone', provoke: read },
    {
      what: 'more from one holder than the quota',
      detail: 'quota',
      ...atOrders,
      state: 'small_quota',
      provoke: (site) => {
        const plan = { caller: attestedCaller(site), route: readOrder };
        return [signedRequest(site, plan), signedRequest(site, plan)];
      },
    },
  ],
  verifier_unavailable: [
    {
      what: 'the audit file cannot be written',
      detail: 'audit',
      ...atOrders,
      state: 'full_disk',
      isRecorded: false,
      provoke: read,
    },
  ],
};
