/**
 * Parts of a case: a plan, its changes, and the expected outcome. Keys are fixed, because the published vectors come
 * from the same cases.
 */
import type { RequestEdits, RequestPlan, WireRequest } from '../fixtures/signed-request.ts';
import { TEST_SITE_KEYS } from '../fixtures/test-keys.ts';
import type { OnWire } from './denial-case.ts';

export const keys = TEST_SITE_KEYS;

export interface Case {
  readonly name: string;
  readonly plan: RequestPlan;
  readonly edits?: RequestEdits;
  /** `allowed`, or `reason/detail status` */
  readonly outcome: string;
  readonly onWire?: OnWire;
}

export interface CaseGroup {
  readonly title: string;
  readonly cases: readonly Case[];
}

export const received = (change: Partial<WireRequest>): RequestEdits => ({
  received: (request) => ({ ...request, ...change }),
});
export const read: RequestPlan = { caller: 'billing', route: 'orders-read' };
export const write: RequestPlan = { caller: 'billing', route: 'orders-write' };
export const everything: RequestPlan = { caller: 'broker', route: 'everything' };
export const claims = (change: { [name: string]: unknown }): RequestEdits => ({
  claims: (draft) => void Object.assign(draft, change),
});
