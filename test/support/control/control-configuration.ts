/** Configures a site over the API, as an operator does. */
import { expect } from '@jest/globals';
import type { ApiAnswer, ControlProgram } from './control-program.ts';

export const SITE = 'shop-eu-1';

/** @returns the member of a 201 answer that identifies the created resource */
export function created(answer: ApiAnswer, member: string): string {
  expect({ status: answer.status, body: answer.body }).toMatchObject({ status: 201 });
  return String(answer.body[member]);
}

/** Creates an environment, a fleet, a site, a client with a grant, and a route with its sources. */
export async function makeSite(program: Pick<ControlProgram, 'call'>, token: string): Promise<void> {
  const post = (path: string, body: object) => program.call({ method: 'POST', path, token, body });
  const environment = created(await post('/v1/environments', { name: 'production' }), 'environment_id');
  const fleet = created(await post(`/v1/environments/${environment}/fleets`, { name: 'eu' }), 'fleet_id');
  const site = {
    site_id: 'shop-eu-1',
    trust_domain: 'shop.example',
    issuer_url: 'https://control.shop.example/sites/shop-eu-1',
    display_name: 'Shop',
    origins: ['https://api.shop.example'],
  };
  created(await post(`/v1/fleets/${fleet}/sites`, site), 'site_id');
  const client = { client_id: 'billing', subject: 'client:billing', context: {} };
  created(await post('/v1/sites/shop-eu-1/clients', client), 'client_id');
  const grant = { method: 'PUT', path: '/v1/sites/shop-eu-1/clients/billing/grants/orders', token };
  expect((await program.call({ ...grant, body: { access: 'read' } })).status).toBeLessThan(300);
  const definition = {
    method: 'GET',
    path_template: '/v1/orders/{order_id}',
    audience: 'https://api.shop.example',
    freshness_class: 'realtime',
    resource: 'orders',
  };
  created(await post('/v1/sites/shop-eu-1/routes', { route_id: 'orders-read', definition }), 'route_id');
  const sources = {
    method: 'PUT',
    path: '/v1/sites/shop-eu-1/routes/orders-read/sources',
    token,
    body: {
      allowed_sources: [
        {
          issuer: site.issuer_url,
          trust_domain: 'shop.example',
          subject_exact: 'client:billing',
          required_key_binding: 'software',
        },
      ],
    },
  };
  expect(await program.call(sources)).toMatchObject({ status: 201 });
}
