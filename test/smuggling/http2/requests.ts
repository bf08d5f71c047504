/** The signed requests that HTTP/2 cases change, as header lines. */
import { HIDDEN, type Http2Case, type LineText, type SignedPlan } from '../../support/hostile/cases.ts';

export const READ: readonly LineText[] = [
  [':method', 'GET'],
  [':scheme', 'http'],
  [':authority', 'api.shop.example'],
  [':path', '/v1/orders/4711'],
  ['{proof}', ''],
];

export const CREATE: readonly LineText[] = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':authority', 'api.shop.example'],
  [':path', '/v1/orders'],
  ['{proof}', ''],
];

/** With a signed header, `x-tenant: t1`. */
export const TENANT: readonly LineText[] = [
  [':method', 'GET'],
  [':scheme', 'http'],
  [':authority', 'api.shop.example'],
  [':path', '/v1/tenant/orders'],
  ['{proof}', ''],
];

export const SIGNS_READ: readonly SignedPlan[] = [{ route: 'readOrder' }];
export const SIGNS_HIDDEN: readonly SignedPlan[] = [{ route: 'createOrder', body: HIDDEN }];
export const SIGNS_TENANT: readonly SignedPlan[] = [
  { route: 'tenantOrders', headers: [{ name: 'x-tenant', value: 't1' }] },
];

/** The lines with another value of one name. */
export function replaced(lines: readonly LineText[], name: string, value: string): readonly LineText[] {
  return lines.map(([key, own]) => [key, key === name ? value : own]);
}

export function without(lines: readonly LineText[], name: string): readonly LineText[] {
  return lines.filter(([key]) => key !== name);
}

type Named = Pick<Http2Case, 'name' | 'family' | 'success'>;

/** A signed GET with these lines and nothing else. */
export function readCase(about: Named, lines: readonly LineText[]): Http2Case {
  return { ...about, signs: SIGNS_READ, frames: [{ kind: 'headers', lines, endStream: true }] };
}

/** A signed POST whose body is a request without a proof. */
export function hiddenCase(about: Named, lines: readonly LineText[], body = '{body}'): Http2Case {
  return {
    ...about,
    signs: SIGNS_HIDDEN,
    frames: [
      { kind: 'headers', lines },
      { kind: 'data', text: body, endStream: true },
    ],
  };
}
