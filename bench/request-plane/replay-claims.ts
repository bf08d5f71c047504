/** Claims of a hundred holders that a store has not seen. */
import { hash } from 'node:crypto';
import type { ReplayClaim } from '../../src/verifier/replay/store.ts';

const HOLDERS = 100;

export function claimOf(index: number, nowSeconds: number): ReplayClaim {
  return {
    identifier: hash('sha256', `record-${index}`, 'base64url'),
    holderThumbprint: hash('sha256', `holder-${index % HOLDERS}`, 'base64url'),
    subjectHash: hash('sha256', `subject-${index % HOLDERS}`, 'base64url'),
    issuedAtSeconds: nowSeconds,
    expiresAtSeconds: nowSeconds + 300,
    skewSeconds: 5,
    nowSeconds,
  };
}
