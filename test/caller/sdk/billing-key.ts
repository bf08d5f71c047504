/** The key file of a client of the end-to-end suite's site, as enrolled. */

import { writeEnrolledKey } from '../../support/caller/key-files.ts';
import { AUTHORITY, type SiteRoute } from '../../support/site/routes.ts';
import { AUTH_SITE, CLIENT_ISSUER, type Site, TRUST_DOMAIN } from '../../support/site/site.ts';

export const ORIGIN = `http://${AUTHORITY}`;

interface BillingKey {
  readonly keyId: 'dk_billing' | 'dk_billing_p256';
  readonly routes: readonly SiteRoute[];
}

/** Writes `key.pem` and its enrollment into the folder. @returns the path of the key file */
export function writeBillingKey(site: Site, folder: string, { keyId, routes }: BillingKey): string {
  return writeEnrolledKey(folder, 'key', {
    key: site.derivedKeys[keyId].privateKey,
    authSite: AUTH_SITE,
    key_id: keyId,
    issuer: CLIENT_ISSUER,
    trust_domain: TRUST_DOMAIN,
    subject: 'client:billing',
    expiresAt: '2099-01-01T00:00:00Z',
    profiles: routes.map(
      ({ audience, method, passport_header, path_template, route_id, signed_headers = [] }) => ({
        ...{ route_id, method, path_template, audience, origins: [ORIGIN], signed_headers, body: 'bound' },
        ...(passport_header && { passport_header }),
      }),
    ),
  });
}
