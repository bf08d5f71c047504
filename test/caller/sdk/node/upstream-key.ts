/** A key file with profiles for the origins of a test's servers. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeEnrolledKey } from '../../../support/caller/key-files.ts';

/** Routes `/v1/…` of GET, POST and PUT. @returns the path of the key file */
export function writeUpstreamKey(origins: readonly string[], body: 'bound' | 'unbound' = 'bound'): string {
  return writeEnrolledKey(mkdtempSync(join(tmpdir(), 'proofgate-sdk-')), 'key', {
    key: generateKeyPairSync('ed25519').privateKey,
    authSite: 'shop-eu-1',
    key_id: 'dk_1',
    issuer: 'https://control.shop.example',
    trust_domain: 'shop.example',
    subject: 'client:billing',
    expiresAt: '2099-01-01T00:00:00Z',
    profiles: ['GET', 'POST', 'PUT'].map((method) => ({
      ...{ route_id: method.toLowerCase(), method, path_template: '/v1/{path*}', origins },
      ...{ audience: 'https://api.shop.example', signed_headers: [], body },
    })),
  });
}
