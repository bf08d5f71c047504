/** The decision on one request. */
import type { Route, Snapshot } from '../../bundle/compile/snapshot.ts';
import type { Denial } from '../../protocol/reasons.ts';
import type { Caller } from './caller.ts';

export type Decision = AllowedDecision | DeniedDecision;

export interface AllowedDecision {
  readonly kind: 'allowed';
  /** UUID; the upstream and the audit event carry it too. */
  readonly decisionId: string;
  readonly snapshot: Snapshot;
  readonly route: Route;
  readonly caller: Caller;
  /** Identifies the presented passport: base64url SHA-256 of its JWS. */
  readonly passportSha256: string;
}

export interface DeniedDecision {
  readonly kind: 'denied';
  readonly decisionId: string;
  readonly denial: Denial;
  /** Set when the request matched a route. */
  readonly routeId: string | undefined;
}
