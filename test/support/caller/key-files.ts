/** Writes key files with the state beside them, as `proofgate enroll` and `proofgate agent` do. */
import type { KeyObject } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatBrokerState } from '../../../src/caller/broker/broker-state.ts';
import { parsePassport } from '../../../src/protocol/passport.ts';
import { signingKeyOf } from '../../../src/protocol/signing.ts';

export interface BrokerKey {
  readonly key: KeyObject;
  /** Compact JWS, for different audiences. */
  readonly passports: readonly string[];
  readonly profileDocuments: readonly unknown[];
}

/** Writes `<name>.pem` and its broker state into the folder. @returns the path of the key file */
export function writeBrokerKey(
  folder: string,
  name: string,
  { key, passports, profileDocuments }: BrokerKey,
) {
  const keyFile = writeKey(folder, name, key);
  const state = formatBrokerState({
    keyThumbprint: signingKeyOf(key).publicKey.thumbprint,
    brokerUrl: 'https://broker.shop.example',
    svid: undefined,
    passports: passports.map((jws) => {
      const claims = parsePassport(jws)?.claims;
      if (claims === undefined) throw new Error('not a passport');
      const { audience, expiresAtSeconds, subject } = claims;
      return { jws, audience, subject, expiresAtMs: expiresAtSeconds * 1000 };
    }),
    profileDocuments,
  });
  writeFileSync(`${keyFile}.broker.json`, state, { mode: 0o600 });
  return keyFile;
}

/** Mode 0600, as the SDKs demand. */
export function writeKey(folder: string, name: string, key: KeyObject): string {
  const keyFile = join(folder, `${name}.pem`);
  writeFileSync(keyFile, key.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 });
  return keyFile;
}

export interface EnrolledKeyFile {
  readonly key: KeyObject;
  readonly authSite: string;
  readonly key_id: string;
  readonly issuer: string;
  readonly trust_domain: string;
  readonly subject: string;
  readonly expiresAt: string;
  /** Members as in the state file. */
  readonly profiles: readonly object[];
}

/** Writes `<name>.pem` and its enrollment into the folder. @returns the path of the key file */
export function writeEnrolledKey(folder: string, name: string, enrolled: EnrolledKeyFile): string {
  const keyFile = writeKey(folder, name, enrolled.key);
  const thumbprint = signingKeyOf(enrolled.key).publicKey.thumbprint;
  const { authSite, expiresAt, issuer, key_id, profiles, subject, trust_domain } = enrolled;
  const target = { control_url: 'https://control.shop.example', policy: 'epr_1' };
  const derived_key = {
    ...{ key_id, fingerprint: thumbprint, status: 'active', expires_at: expiresAt, client_id: 'billing' },
    ...{ issuer, trust_domain, subject, key_binding: 'software' },
  };
  const state = {
    ...{ format: 'proofgate.enrollment-state/v1', key_thumbprint: thumbprint, ...target },
    enrolled: {
      ...{ ...target, enrollment_id: 'enr_1', auth_site: authSite, created_at: '2026-01-01T00:00:00Z' },
      ...{ derived_key, signing_profiles: profiles },
    },
  };
  writeFileSync(`${keyFile}.enrollment.json`, JSON.stringify(state), { mode: 0o600 });
  return keyFile;
}
