/**
 * The request as every enforcement point passes it to the decision.
 * Source: docs/enforcement.md "Enforcement points".
 */
import type { RequestHeaders } from '../../protocol/credentials.ts';

export interface RequestFacts {
  /** As sent, case-sensitive. */
  readonly method: string;
  /** As the enforcement point received it, not normalised. */
  readonly scheme: string;
  readonly authority: string;
  /** Path and query exactly as sent, one character for each byte. */
  readonly target: string;
  readonly headers: RequestHeaders;
  readonly body: BodyState;
}

/** `unknown`: the enforcement point cannot prove that it has exactly the bytes that the upstream receives. */
export type BodyState =
  | { readonly kind: 'exact'; readonly bytes: Uint8Array }
  | { readonly kind: 'none' }
  | { readonly kind: 'unknown' };
