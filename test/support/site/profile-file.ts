/** The signing profile of the site's usual caller, as a file. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AUTHORITY, ROUTES, type SiteRoute } from './routes.ts';
import { AUTH_SITE, CLIENT_ISSUER, type Site, TRUST_DOMAIN } from './site.ts';

const USUAL: readonly SiteRoute[] = [ROUTES.readOrder, ROUTES.createOrder, ROUTES.bearer];

/** @returns its path */
export async function profileFile({ directory }: Site, routes = USUAL): Promise<string> {
  const path = join(directory, `${routes[0]?.route_id}-profile.json`);
  const profiles = routes.map((route) => ({
    ...{ route_id: route.route_id, method: route.method, path_template: route.path_template },
    ...{ audience: route.audience, origins: [`http://${AUTHORITY}`, `https://${AUTHORITY}`] },
    ...(route.passport_header && { passport_header: route.passport_header }),
  }));
  const coordinates = {
    ...{ auth_site: AUTH_SITE, key_id: 'dk_billing', issuer: CLIENT_ISSUER },
    ...{ trust_domain: TRUST_DOMAIN, subject: 'client:billing', key_binding: 'software' },
  };
  await writeFile(path, JSON.stringify({ ...coordinates, profiles }));
  return path;
}
