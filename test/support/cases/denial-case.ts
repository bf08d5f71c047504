/** What every case of a denial has: its expected result, and how it reaches a real enforcement point. */
import { type DetailOf, REASONS, type Reason } from '../../../src/protocol/reasons.ts';
import type { WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import type { RequestEdits, RequestPlan } from '../fixtures/signed-request.ts';
import type { Site } from '../site/site.ts';
import type { VerifierState } from '../site/verifier-states.ts';

type Place<R extends Reason> = R extends Reason
  ? (undefined extends DetailOf[R] ? R : never) | `${R}/${NonNullable<DetailOf[R]>}`
  : never;

/** `reason/detail status` */
export type Outcome = `${Place<Reason>} ${401 | 403 | 503}`;

/**
 * A case at the site of test/support/site/, through a real enforcement point. By default it sends the case's own request.
 */
export interface OnWire {
  /** Names it there as `reason/detail: what`. Unique and stable, because results are kept under it. */
  readonly what: string;
  /** Default `usual`. */
  readonly state?: VerifierState;
  readonly plan?: RequestPlan;
  readonly edits?: RequestEdits;
  /** Whether the same request is allowed before. */
  readonly isReplay?: true;
  /** Replaces a plan, if only this site has what the case needs. */
  readonly atSite?: AtSite;
  /** Default true. */
  readonly isRecorded?: false;
}

export interface AtSite {
  /** ID of the matched route, if any. */
  readonly routeId: string | undefined;
  readonly provoke: (site: Site) => Provocation;
}

/** The request to be denied; of two, the first is allowed. */
export type Provocation = WireRequest | readonly [allowed: WireRequest, denied: WireRequest];

/** @param outcome `reason/detail status` */
export function partsOf(outcome: string): { reason: Reason; detail: string | undefined; status: number } {
  const match = /^([a-z_]+)(?:\/(\S+))? (\d{3})$/.exec(outcome);
  const reason = REASONS.find((one) => one === match?.[1]);
  if (match === null || reason === undefined) throw new Error(`not an outcome: ${outcome}`);
  const [, , detail, status] = match;
  return { reason, detail, status: Number(status) };
}
