/**
 * Policy for redirects that the signer signs and follows.
 * Source: docs/tutorials/signing.md "Redirects and repetitions".
 */
import { SignerError } from './signer-error.ts';

/**
 * `same-origin`: only to the origin that redirects. `profiles`: to any origin that a profile of the key names. One of
 * these APIs can then cause a request, with its body, to be sent to another.
 */
export type FollowPolicy = 'same-origin' | 'profiles';

/** @throws SignerError `origin_not_allowed` */
export function refuseOtherOrigin(from: string, to: string, follow: FollowPolicy): void {
  if (from === to || follow === 'profiles') return;
  throw new SignerError(
    'origin_not_allowed',
    "the redirect leads to another origin: the option follow: 'profiles' allows those of the key's profiles",
  );
}
