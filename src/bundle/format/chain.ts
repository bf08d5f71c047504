/**
 * Revisions and heads: every document names the previous one, so that a rollback or a fork is detected.
 * Source: docs/design/bundle.md "Revision and head".
 */
import { createHash } from 'node:crypto';
import { decodeBase64url } from '../../protocol/base64url.ts';
import { type BundleError, bundleError } from './bundle-error.ts';

const HEAD_PREFIX = 'proofgate-head-v1\n';
export const HEAD_BYTES = 32;

/** A revision and the head that identifies it and all before it. */
export interface ChainPosition {
  readonly revision: number;
  /** base64url SHA-256, 43 characters. */
  readonly head: string;
}

/**
 * SHA-256 over the prefix, the previous head (32 bytes, zeros in the first) and the payload's SHA-256.
 * @param previousHead base64url of 32 bytes; undefined in the first document
 * @returns base64url; undefined when `previousHead` is not canonical base64url of 32 bytes
 */
export function headOf(previousHead: string | undefined, payload: Uint8Array): string | undefined {
  return headOfHash(previousHead, createHash('sha256').update(payload).digest());
}

/** As {@link headOf}, but from the payload's hash: a link names the hash of a bundle, so both have the same head. */
export function headOfHash(previousHead: string | undefined, payloadSha256: Buffer): string | undefined {
  const previous = previousHead === undefined ? Buffer.alloc(HEAD_BYTES) : decodeBase64url(previousHead);
  if (previous?.length !== HEAD_BYTES) return undefined;
  return createHash('sha256').update(HEAD_PREFIX).update(previous).update(payloadSha256).digest('base64url');
}

export type ChainStep =
  | { readonly kind: 'accept' }
  | { readonly kind: 'nothing_to_do' }
  | { readonly kind: 'refuse'; readonly error: BundleError };

/**
 * Decides what to do with documents that were found together, given the highest position ever accepted. The end of
 * their chain counts. `nothing_to_do` means exactly that position; a verifier that has just started loads it
 * nevertheless.
 * @param positions of the whole bundle and of each step after it, in order
 * @param file name of the bundle's file, for the error
 */
export function checkChainAgainstMark(
  mark: ChainPosition | undefined,
  positions: readonly [ChainPosition, ...ChainPosition[]],
  file: string,
): ChainStep {
  const [base] = positions;
  const end = positions.at(-1) ?? base;
  if (mark === undefined || base.revision > mark.revision) return { kind: 'accept' };
  if (end.revision < mark.revision) {
    const text = `${end.revision} is lower than ${mark.revision}, which was accepted before`;
    return { kind: 'refuse', error: bundleError('revision_lower', file, '/revision', text) };
  }
  // A chain that passes the mark without containing it is a fork of what was accepted.
  if (!positions.some(({ revision, head }) => revision === mark.revision && head === mark.head)) {
    const text = `another content was accepted as revision ${mark.revision} before`;
    return { kind: 'refuse', error: bundleError('revision_conflict', file, '/revision', text) };
  }
  return end.revision === mark.revision ? { kind: 'nothing_to_do' } : { kind: 'accept' };
}

/** Maximum increase of the revision by one delta or link. */
export const MAX_REVISION_STEP = 1_000_000;

/** The part of a delta or link that the chain's rules use. */
export interface ChainLink {
  readonly previousHead: string;
  readonly position: ChainPosition;
}

/**
 * Checks whether a delta or link continues the chain: it must name the current head, and raise the revision by 1 to
 * {@link MAX_REVISION_STEP}.
 * @returns the error that rejects it: `revision_lower`, `revision_step`, `chain_broken`
 */
export function judgeStep(from: ChainPosition, step: ChainLink, file: string): BundleError | undefined {
  const { revision } = step.position;
  if (revision <= from.revision) {
    const text = `${revision} is not higher than ${from.revision}, which it would follow`;
    return bundleError('revision_lower', file, '/revision', text);
  }
  if (revision - from.revision > MAX_REVISION_STEP) {
    const text = `${revision} is more than ${MAX_REVISION_STEP} above ${from.revision}`;
    return bundleError('revision_step', file, '/revision', text);
  }
  if (step.previousHead !== from.head) {
    const text = `does not continue revision ${from.revision} as it is known here`;
    return bundleError('chain_broken', file, '/previous_head', text);
  }
  return undefined;
}
