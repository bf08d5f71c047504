/** Writes an enrolled key as `proofgate enroll` does. */
import { writeFile } from 'node:fs/promises';
import { EnrollmentStateFile } from '../../../src/caller/enroll/state-file.ts';
import type { SigningKey } from '../../../src/protocol/signing.ts';
import type { SigningProfiles } from '../../../src/protocol/signing-profile.ts';

export interface EnrolledKeyOptions {
  readonly key: SigningKey;
  readonly file: SigningProfiles;
  readonly expiresAtMs?: number;
}

export async function writeEnrolledKey(
  keyFile: string,
  { expiresAtMs = Date.now() + 3_600_000, file, key }: EnrolledKeyOptions,
): Promise<void> {
  const { coordinates, profiles } = file;
  const target = { controlUrl: 'https://control.shop.example', policy: 'epr_test' };
  const keyThumbprint = key.publicKey.thumbprint;
  const pem = key.privateKey.export({ type: 'pkcs8', format: 'pem' });
  await writeFile(keyFile, pem, { mode: 0o600 });
  await new EnrollmentStateFile(keyFile).save({
    keyThumbprint,
    target,
    attempt: undefined,
    enrolled: {
      target,
      enrollmentId: 'enr_test',
      createdAtMs: Date.now(),
      key: {
        ...{ keyId: coordinates.keyId ?? '', fingerprint: keyThumbprint, status: 'active', expiresAtMs },
        ...{ clientId: 'billing', coordinates, profiles },
      },
    },
  });
}
