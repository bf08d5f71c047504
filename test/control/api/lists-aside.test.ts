/** Every list reads on the connections for slow reads: it never holds one that a revocation or a statement needs. */
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import {
  registerDerivedKeyRoutes,
  registerEnrollmentRoutes,
} from '../../../src/control/api/routes/enrollments-api.ts';
import { registerRuntimeRoutes } from '../../../src/control/api/routes/runtime-api.ts';
import { EnrollmentDecisions } from '../../../src/control/enrollment/decisions.ts';
import { DerivedKeys } from '../../../src/control/keys/derived-keys.ts';
import { SiteSigningKeys } from '../../../src/control/publishing/bundle-signing-keys.ts';
import { MasterKeys } from '../../../src/control/secrets/master-keys.ts';
import { ApiFixture } from '../../support/control/api-fixture.ts';
import { clientRow } from '../../support/control/store-rows.ts';

const keyring = new SiteSigningKeys(MasterKeys.random());
let fixture: ApiFixture;
let names: { readonly [parameter: string]: string };
beforeAll(async () => {
  fixture = await ApiFixture.open({
    extend: (app, { nowMs, store }) => {
      const decisions = new EnrollmentDecisions(store, nowMs);
      registerEnrollmentRoutes(app, { decisions } as unknown as Parameters<
        typeof registerEnrollmentRoutes
      >[1]);
      registerDerivedKeyRoutes(app, new DerivedKeys(store, nowMs));
      registerRuntimeRoutes(app, { store, nowMs, keyring });
    },
  });
  const { environmentId, fleetId, siteId } = await fixture.shop();
  names = { environment_id: environmentId, fleet_id: fleetId, site_id: siteId, client_id: 'billing' };
  await fixture.store.writeUnaudited({ kind: 'site', siteId }, (tx) =>
    tx.clients.add(clientRow(siteId, 'billing')),
  );
});
afterAll(() => fixture.close());

/** Paths of the routes that take a cursor, and of the pages that read a whole site. */
function listPaths(): readonly string[] {
  const wholeSite = ['/v1/sites/:site_id/overview', '/v1/sites/:site_id/propagation'];
  const lists = fixture.routes.filter(({ method, schema, url }) => {
    const { properties = {} } = (schema?.querystring ?? {}) as { readonly properties?: object };
    return [method].flat().includes('GET') && ('cursor' in properties || wholeSite.includes(url));
  });
  return lists.map(({ url }) => url.replace(/:(\w+)/g, (_, name: string) => names[name] ?? name));
}

it('every list waits for the connections for slow reads only', async () => {
  const paths = listPaths();
  expect(paths.length).toBeGreaterThan(18);
  const aside = jest.spyOn(fixture.store, 'readAside');
  for (const path of paths) {
    const before = aside.mock.calls.length;
    await fixture.expect(200, 'GET', path);
    expect([path, aside.mock.calls.length - before]).toEqual([path, 1]);
  }
});
