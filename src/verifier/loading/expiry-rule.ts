/**
 * What has expired serves nobody, so it does not take the place of what has not: whoever publishes such a bundle by mistake,
 * or keeps a good one back until it has lapsed, does not end the service of the one that is loaded. Where nothing is
 * loaded, or what is loaded has expired itself, it is taken: then requests are denied with that reason.
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

/** @returns the error to refuse a whole bundle, carried on by its steps, with */
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
 * Leaves out what comes after the first link that has expired, unless a later one has not: that renews all before it.
 * @returns the steps to take, and why the rest is not to be taken
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
