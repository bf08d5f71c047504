/** SPIRE's programs, as `make spire` builds them. */
import { existsSync } from 'node:fs';
import { describe } from '@jest/globals';
import { checkoutPath } from '../../support/harness/checkout.ts';

export type SpireProgram = 'spire-server' | 'spire-agent' | 'oidc-discovery-provider';

export function spireProgram(name: SpireProgram): string {
  return checkoutPath('.cache', 'spire', 'bin', name);
}

const unavailable = existsSync(spireProgram('spire-server'))
  ? undefined
  : 'SPIRE is not built: run make spire, which needs Go';

/** A suite that skips, and says why in its name, where SPIRE is not built. */
export function describeWithSpire(name: string, suite: () => void): void {
  if (unavailable === undefined) describe(name, suite);
  else describe.skip(`${name} (${unavailable})`, suite);
}

/** The user of this process, as the selector of SPIRE's `unix` workload attestor. */
export const OWN_USER = `unix:uid:${process.getuid?.() ?? 0}`;
