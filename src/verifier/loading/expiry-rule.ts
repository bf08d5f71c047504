/**
 * Rules for expired documents: an expired bundle does not replace a valid one. Publishing one by mistake, or delaying a
 * good one until it has expired, must not end the service of the loaded bundle. When nothing is loaded, or the loaded
 * bundle has expired itself, the expired one is accepted, and requests are denied for that reason.
 * Source: docs/bundle.md "Life in the verifier".
 */

import type { Snapshot } from '../../bundle/compile/snapshot.ts';
import { type BundleError, bundleError } from '../../bundle/format/bundle-error.ts';
import type { OpenedStep } from '../../bundle/format/open-step.ts';
import { hasEnded } from '../../protocol/validity.ts';

type Lifetime = Pick<Snapshot, 'expiresAtSeconds' | 'skewSeconds'>;

function hasExpired({ expiresAtSeconds, skewSeconds }: Lifetime, nowSeconds: number): boolean {
  return hasEnded(expiresAtSeconds, nowSeconds, skewSeconds);
}

/** @returns the error that rejects a whole bundle with its steps applied; undefined when it may be loaded */
export function judgeExpiry(
  loaded: Snapshot | undefined,
  next: Snapshot,
  nowSeconds: number,
  file: string,
): BundleError | undefined {
  if (loaded === undefined || hasExpired(loaded, nowSeconds) || !hasExpired(next, nowSeconds))
    return undefined;
  return expired(file);
}

/**
 * Drops the steps from the first expired link on, unless a later link is still valid: that one renews all before it.
 * @returns the steps to apply, and why the rest is rejected
 */
export function beforeExpiry<T extends { readonly step: OpenedStep }>(
  loaded: Snapshot,
  steps: readonly T[],
  nowSeconds: number,
): { readonly steps: readonly T[]; readonly refused: BundleError | undefined } {
  const { skewSeconds } = loaded;
  const isExpiredLink = ({ step }: T) =>
    step.kind === 'link' && hasExpired({ expiresAtSeconds: step.expiresAtSeconds, skewSeconds }, nowSeconds);
  const renewed = steps.findLastIndex((entry) => entry.step.kind === 'link' && !isExpiredLink(entry));
  const at = steps.findIndex((entry, index) => index > renewed && isExpiredLink(entry));
  const first = steps[at];
  if (first === undefined || hasExpired(loaded, nowSeconds)) return { steps, refused: undefined };
  return { steps: steps.slice(0, at), refused: expired(first.step.file) };
}

function expired(file: string): BundleError {
  return bundleError('expired', file, '/expires_at', 'has expired, and what is loaded has not');
}
