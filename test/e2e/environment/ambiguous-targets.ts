/** Paths and authorities that might make a request pass for another one. */

/** Some verifiers or upstreams read them as another path than they spell. */
export const AMBIGUOUS_PATHS = [
  '/v1/orders/../payroll',
  '/v1/orders/%2e%2e/payroll',
  '/v1/orders/.%2E/payroll',
  '/v1/orders/..;/payroll',
  '/v1/orders/..%2fpayroll',
  '/v1/orders/..%5cpayroll',
  '/v1/orders/..\\payroll',
  '/v1/orders/%252e%252e',
  '/v1/orders/4711/.',
  '/v1/orders/4711/..',
  '/v1/orders/./4711',
  '/v1/orders//4711',
  '/v1/orders/4711/',
  '/v1/orders/',
  '/v1/orders/4711;jsessionid=1',
  '/v1/orders/4711%3bx=1/..',
  '/v1/orders/4711%00',
  '/v1/orders/4711%0d%0aX-A:%20b',
  '/v1/orders/%34711',
  '/v1/orders/4711#/payroll',
  '/v1/orders/4711%',
  '/v1/orders/4711%4',
  '/v1/orders/%u0034',
  '/v1/orders/%c0%ae%c0%ae',
  '/v1/orders/\xe9',
  '/v1/orders/4711 HTTP/1.1\r\nX-A: b',
  'v1/orders/4711',
  '//api.shop.example/v1/orders/4711',
  '/v1/files/a/../../payroll',
  '/v1/files/a/%2e%2e/b',
  '/v1/files//etc',
  '/v1/files/',
  '/V1/orders/4711',
  '',
  '*',
];

/** Some read them as the site. */
export const OTHER_AUTHORITIES = [
  'api.other.example',
  'api.shop.example.',
  'api.shop.example:443',
  'api.shop.example:080',
  'api.shop.example:65616',
  'api.shop.example:',
  'api.shop.example:80:80',
  'admin@api.shop.example',
  'api.other.example:pw@api.shop.example',
  'api.shop.example@api.other.example',
  'api.shop.example#.other.example',
  'api.shop.example/v1',
  'api.shop.example\\.other.example',
  'api.shop.example,api.other.example',
  'api.shop.example api.other.example',
  'api.shop.example\tx',
  '.api.shop.example',
  'api%2eshop.example',
  '[api.shop.example]',
  '127.0.0.1',
];

/** The part of a target that a transcript can contain; anything else could not be signed. */
export function printable(target: string): string {
  const visible = target.replace(/[^\x21-\x7e]/g, '!');
  return visible.startsWith('/') ? visible : `/${visible}`;
}
