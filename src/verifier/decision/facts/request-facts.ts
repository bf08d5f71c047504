/**
 * The request as every enforcement point passes it to the decision.
 * Source: docs/operate/enforcement-points.md.
 */
import type { RequestHeaders } from '../../../protocol/credentials.ts';

/** A request without its body. */
export interface RequestHead {
  /** As sent, case-sensitive. */
  readonly method: string;
  /** As the enforcement point received it, not normalised. */
  readonly scheme: string;
  readonly authority: string;
  /** Path and query exactly as sent, one character for each byte. */
  readonly target: string;
  readonly headers: RequestHeaders;
  /**
   * What the enforcement point knows of an upgrade. `tunnel`: the request becomes one, which the point ends when it is no longer
   * allowed. `none`: it stays a request. Undefined: the point cannot tell.
   */
  readonly upgrade?: 'none' | 'tunnel';
  /**
   * Whether the enforcement point removes HTTP message signatures and DPoP proofs before the upstream. Where it does not, none is
   * accepted, and an observed request with one is denied.
   */
  readonly removesProofs?: boolean;
}

export interface RequestFacts extends RequestHead {
  readonly body: BodyState;
}

/** `unknown`: the enforcement point cannot prove that it has exactly the bytes that the upstream receives. */
export type BodyState =
  | { readonly kind: 'exact'; readonly bytes: Uint8Array }
  /** Exact, but only its base64url SHA-256 is in memory. Never empty. */
  | { readonly kind: 'hashed'; readonly sha256: string }
  | { readonly kind: 'none' }
  | { readonly kind: 'unknown' };

/** Whether the body is known to have no bytes. */
export function isEmptyBody(body: BodyState): boolean {
  return body.kind === 'none' || (body.kind === 'exact' && body.bytes.byteLength === 0);
}
