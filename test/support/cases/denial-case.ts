/** One reason for a denial: what a caller sends, and the expected result. */

import type { DetailOf, Reason } from '../../../src/protocol/reasons.ts';
import type { WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import type { Site } from '../site/site.ts';
import type { VerifierState } from '../site/verifier-states.ts';

export interface DenialCase<R extends Reason> {
  readonly what: string;
  readonly detail: DetailOf[R];
  /** Default `usual`. */
  readonly state?: VerifierState;
  /** Absent where the request leads to no route. */
  readonly routeId?: string;
  readonly callerVerified?: boolean;
  readonly isRecorded?: boolean;
  readonly provoke: (site: Site) => Provocation;
}

/** The request to be refused; of two, the first is let through. */
export type Provocation = WireRequest | readonly [allowed: WireRequest, denied: WireRequest];

export type DenialCases<R extends Reason> = { readonly [Each in R]: readonly DenialCase<Each>[] };
