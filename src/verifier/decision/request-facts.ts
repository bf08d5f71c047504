/**
 * What every door turns its input into, and all that the pipeline knows of a request.
 * Source: docs/enforcement.md "Enforcement points".
 */
import type { RequestHeaders } from '../../protocol/credentials.ts';

export interface RequestFacts {
  /** As sent, case-sensitive. */
  readonly method: string;
  /** As the door knows it, before any normalisation of ours. */
  readonly scheme: string;
  readonly authority: string;
  /** Path and query exactly as sent, one character a byte. */
  readonly target: string;
  readonly headers: RequestHeaders;
  readonly body: BodyState;
}

/** `unknown`: the door cannot prove that it holds exactly the bytes that the upstream will receive. */
export type BodyState =
  | { readonly kind: 'exact'; readonly bytes: Uint8Array }
  | { readonly kind: 'none' }
  | { readonly kind: 'unknown' };
