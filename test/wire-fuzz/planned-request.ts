/** What both grammars share: signed requests, lines that points treat specially, and numbers of filler lines. */
import fc from 'fast-check';
import type { SignedPlan } from '../support/hostile/cases.ts';

export interface PlannedRequest {
  readonly method: string;
  readonly plan: SignedPlan & { readonly target: string };
}

const planned = (method: string, plan: PlannedRequest['plan']): PlannedRequest => ({ method, plan });

export const PLANS: readonly PlannedRequest[] = [
  planned('GET', { route: 'readOrder', target: '/v1/orders/4711?case={id}' }),
  planned('GET', { route: 'readOrder', target: '/v1/orders/4711?case={id}', body: 'order' }),
  planned('POST', { route: 'createOrder', target: '/v1/orders?case={id}' }),
  planned('POST', { route: 'createOrder', target: '/v1/orders?case={id}', body: 'order' }),
  planned('POST', { route: 'createOrder', target: '/v1/orders?case={id}', body: 'o'.repeat(300) }),
  planned('DELETE', { route: 'cancelOrder', target: '/v1/cancellations/4711?case={id}' }),
  planned('PUT', { route: 'upload', target: '/v1/uploads?case={id}', body: 'order' }),
  planned('GET', {
    route: 'tenantOrders',
    target: '/v1/tenant/orders?case={id}',
    headers: [{ name: 'x-tenant', value: 't1' }],
  }),
];

/** Header lines that a point may act on, name hop by hop, refuse or remove. */
export const EXTRA_LINES: readonly string[] = [
  'Connection: keep-alive',
  'Connection: close',
  'Connection: close, x-proofgate-signature',
  'Connection: x-tenant',
  'Connection: content-length',
  'Connection: transfer-encoding',
  'Connection: upgrade',
  'Upgrade: websocket',
  'Upgrade: h2c',
  'TE: trailers',
  'Trailer: X-Proofgate-Subject',
  'X-Tenant: t2',
  'x_tenant: t2',
  'X-Proofgate-Subject: root',
  'X_Proofgate_Subject: root',
  'X-ProofgateSubject: root',
  'X-Proofgate-Transcript: AAAA',
  'X-HTTP-Method-Override: DELETE',
  'X-Original-URL: /v1/payroll',
  'X-Forwarded-Uri: /v1/payroll',
  'X-Forwarded-Method: DELETE',
  'Authorization: Bearer root',
  'Host: api.other.example',
  'Idempotency-Key: 1',
  'X-A: \xff',
  'X-A: b\r\n folded',
];

/** Few lines, about as many as Node keeps by default (1,000), and more than any server takes. */
export const fillerCount: fc.Arbitrary<number> = fc.oneof(
  { weight: 12, arbitrary: fc.constant(0) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 110 }) },
  { weight: 3, arbitrary: fc.integer({ min: 980, max: 1_020 }) },
  { weight: 1, arbitrary: fc.integer({ min: 1_021, max: 5_000 }) },
);

/** None, one or two of them. */
export function extraLines<T>(lines: readonly T[]): fc.Arbitrary<readonly T[]> {
  return fc.oneof(
    { weight: 3, arbitrary: fc.constant([]) },
    { weight: 2, arbitrary: fc.array(fc.constantFrom(...lines), { minLength: 1, maxLength: 2 }) },
  );
}

/** Mostly the usual value. */
export function seldom<T, U>(unusual: fc.Arbitrary<T>, usual: U): fc.Arbitrary<T | U> {
  return fc.oneof({ weight: 1, arbitrary: unusual }, { weight: 7, arbitrary: fc.constant(usual) });
}
