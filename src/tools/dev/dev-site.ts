/** The throw-away site of `proofgate dev`: one client, which may send any request, and the key that it signs with. */
import { compileBundle } from '../../bundle/compile/compile.ts';
import type { Snapshot } from '../../bundle/compile/snapshot.ts';
import type { BundleContent } from '../../bundle/format/schema.ts';
import type { EnrollmentState } from '../../caller/enroll/enrollment-state.ts';
import { formatEnrollmentState } from '../../caller/enroll/state-format.ts';
import { ObjectReader } from '../../protocol/object-reader.ts';
import { formatTime } from '../../protocol/rfc3339.ts';
import { generateSigningKey, type SigningKey } from '../../protocol/signing.ts';
import { readRouteProfile } from '../../protocol/signing-profile.ts';

export interface DevSite {
  readonly key: SigningKey;
  readonly snapshot: Snapshot;
  /** Content of the state file beside the key. */
  readonly state: string;
}

const AUTH_SITE = 'dev';
/** Names in `.invalid` (RFC 2606) belong to no one. */
const CONTROL_URL = 'https://control.dev.invalid';
const ISSUER = `${CONTROL_URL}/sites/${AUTH_SITE}`;
const TRUST_DOMAIN = 'dev.invalid';
const CLIENT_ID = 'dev';
const SUBJECT = `client:${CLIENT_ID}`;
const KEY_ID = 'dk_dev';
const RESOURCE = 'api';
/** The minimum. A verifier with a store in memory denies proofs for about this long after its start. */
const SKEW_SECONDS = 1;
const LIFETIME_SECONDS = 365 * 86_400;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'];
/** `{path*}` does not match an empty path. */
const TEMPLATES = { root: '/', path: '/{path*}' };

/** @param origins that clients call */
export async function makeDevSite(origins: readonly string[], nowSeconds: number): Promise<DevSite> {
  const key = generateSigningKey('Ed25519');
  const expiresAtSeconds = nowSeconds + LIFETIME_SECONDS;
  const audience = origins[0] ?? '';
  const routes = METHODS.flatMap((method) =>
    Object.entries(TEMPLATES).map(([name, path_template]) => ({
      route_id: `${method.toLowerCase()}-${name}`,
      method,
      path_template,
      audience,
    })),
  );
  const content: BundleContent = {
    format: 'proofgate.bundle/v1',
    auth_site: AUTH_SITE,
    revision: 1,
    issued_at: formatTime(nowSeconds - SKEW_SECONDS),
    expires_at: formatTime(expiresAtSeconds),
    skew_seconds: SKEW_SECONDS,
    single_verifier: true,
    origins: [...origins],
    clients: [
      {
        client_id: CLIENT_ID,
        issuer: ISSUER,
        trust_domain: TRUST_DOMAIN,
        subject: SUBJECT,
        grants: [{ resource: RESOURCE, access: 'write' }],
      },
    ],
    derived_keys: [
      {
        key_id: KEY_ID,
        client_id: CLIENT_ID,
        jwk: key.publicKey.jwk,
        status: 'active',
        expires_at: formatTime(expiresAtSeconds),
      },
    ],
    routes: routes.map((route) => ({
      ...route,
      resource: RESOURCE,
      freshness_class: 'bounded',
      max_staleness_seconds: LIFETIME_SECONDS,
    })),
    route_sources: routes.map(({ route_id }) => ({
      route_id,
      allowed_sources: [
        {
          issuer: ISSUER,
          trust_domain: TRUST_DOMAIN,
          subject_exact: SUBJECT,
          required_key_binding: 'software',
        },
      ],
    })),
  };
  const snapshot = await compileBundle(content, {
    file: 'the site of proofgate dev',
    head: '',
    isBeingWritten: true,
  });
  const profiles = routes.map((route) => ({ ...route, origins: [...origins] }));
  return {
    key,
    snapshot,
    state: formatEnrollmentState(enrolled(key, profiles, nowSeconds, expiresAtSeconds)),
  };
}

function enrolled(
  key: SigningKey,
  profiles: readonly object[],
  nowSeconds: number,
  expiresAtSeconds: number,
): EnrollmentState {
  const target = { controlUrl: CONTROL_URL, policy: CLIENT_ID };
  const invalid = (place: string, problem: string) =>
    new Error(`profile of proofgate dev: ${place} ${problem}`);
  return {
    keyThumbprint: key.publicKey.thumbprint,
    target,
    attempt: undefined,
    enrolled: {
      target,
      enrollmentId: 'enr_dev',
      createdAtMs: nowSeconds * 1000,
      key: {
        keyId: KEY_ID,
        fingerprint: key.publicKey.thumbprint,
        status: 'active',
        expiresAtMs: expiresAtSeconds * 1000,
        clientId: CLIENT_ID,
        coordinates: {
          authSite: AUTH_SITE,
          keyId: KEY_ID,
          issuer: ISSUER,
          trustDomain: TRUST_DOMAIN,
          subject: SUBJECT,
          keyBinding: 'software',
        },
        profiles: profiles.map((profile) => readRouteProfile(new ObjectReader(profile, '', invalid))),
      },
    },
  };
}
