/**
 * Part of step 5: the bundle does not block the caller. It follows the check of claims, so that only the holder of a
 * valid passport learns that it is blocked.
 * Source: docs/design/protocol.md "Decision: first fault wins".
 */
import type { BlockedCallers, Snapshot } from '../../../bundle/compile/snapshot.ts';
import { type Denial, deny } from '../../../protocol/reasons.ts';
import type { Caller } from '../facts/caller.ts';
import { type Evaluation, required } from '../facts/evaluation.ts';

/** Without a passport it follows the proof's signature, for the same reason. */
export function checkBlocked({ evidence, holder, snapshot }: Evaluation): Denial | undefined {
  const { blocked } = required(snapshot);
  if (blocked === undefined) return undefined;
  return blockedDenial(blocked, required(evidence.caller), required(holder).thumbprint);
}

export function blockedDenial(
  blocked: BlockedCallers,
  { issuer, subject }: Pick<Caller, 'issuer' | 'subject'>,
  holderThumbprint: string,
): Denial | undefined {
  const ofIssuer = blocked.get(issuer);
  if (ofIssuer === undefined) return undefined;
  if (ofIssuer.subjects.has(subject)) return deny('invalid_request_proof', 'subject_blocked');
  return ofIssuer.holders.has(holderThumbprint) ? deny('invalid_request_proof', 'holder_blocked') : undefined;
}

/** Checks again for connections that outlive the request. */
export function isBlocked({ blocked }: Snapshot, caller: Caller, holderThumbprint: string): boolean {
  return blocked !== undefined && blockedDenial(blocked, caller, holderThumbprint) !== undefined;
}
