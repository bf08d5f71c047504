/**
 * Rules of enrollment policies, enrollments and derived keys: when a workload token yields a key, and how long the key
 * lives. Pure functions: records and clock are arguments.
 * Source: specification "Enrollment policy", "Derived key", "Limits"; docs/design/enrollment.md "Enrollment".
 */
import type { SourceState } from '../contract/vocabulary.ts';
import {
  ENROLLMENT_STATES,
  type EnrollmentState,
  KEY_STATES,
  type KeyState,
  POLICY_STATES,
  type PolicyState,
} from '../contract/vocabulary.ts';
import type { Machine } from './machine.ts';

export const POLICY_EVENTS = [
  'source_active',
  'rebind',
  'rebind_waiting',
  'deactivate',
  'reactivate',
  'delete',
] as const;
export type PolicyEvent = (typeof POLICY_EVENTS)[number];

export const POLICY_MACHINE: Machine<PolicyState, PolicyEvent> = {
  name: 'enrollment_policy',
  states: POLICY_STATES,
  events: POLICY_EVENTS,
  final: ['deleted'],
  problem: 'policy_state_conflict',
  table: {
    waiting: {
      source_active: 'active',
      rebind: 'active',
      rebind_waiting: 'waiting',
      deactivate: 'deactivated',
      delete: 'deleted',
    },
    active: { rebind: 'active', rebind_waiting: 'waiting', deactivate: 'deactivated', delete: 'deleted' },
    deactivated: {
      rebind: 'deactivated',
      rebind_waiting: 'deactivated',
      reactivate: 'active',
      delete: 'deleted',
    },
    deleted: {},
  },
};

const ENROLLMENT_EVENTS = ['approve', 'deny', 'expire', 'policy_ended'] as const;
export type EnrollmentEvent = (typeof ENROLLMENT_EVENTS)[number];

export const ENROLLMENT_MACHINE: Machine<EnrollmentState, EnrollmentEvent> = {
  name: 'enrollment',
  states: ENROLLMENT_STATES,
  events: ENROLLMENT_EVENTS,
  final: ['issued', 'denied', 'expired'],
  problem: 'enrollment_state_conflict',
  table: {
    pending_approval: { approve: 'issued', deny: 'denied', expire: 'expired', policy_ended: 'denied' },
    issued: {},
    denied: {},
    expired: {},
  },
};

const KEY_EVENTS = ['revoke', 'expire'] as const;
export type KeyEvent = (typeof KEY_EVENTS)[number];

export const KEY_MACHINE: Machine<KeyState, KeyEvent> = {
  name: 'derived_key',
  states: KEY_STATES,
  events: KEY_EVENTS,
  final: ['revoked', 'expired'],
  problem: 'key_state_conflict',
  table: { active: { revoke: 'revoked', expire: 'expired' }, revoked: {}, expired: {} },
};

export const CHALLENGE_LIFETIME_SECONDS = 120;

/**
 * Expiry of a key: the token's expiry or the policy's maximum lifetime, whichever is earlier. Fixed when the proof is
 * accepted. Times in seconds.
 */
export function keyExpirySeconds(facts: {
  readonly tokenExpiresAtSeconds: number;
  readonly acceptedAtSeconds: number;
  readonly maxKeyLifetimeSeconds: number;
}): number {
  // A NumericDate may have a fraction (RFC 7519 section 2). Round down: a key must not outlive its token.
  return Math.floor(
    Math.min(facts.tokenExpiresAtSeconds, facts.acceptedAtSeconds + facts.maxKeyLifetimeSeconds),
  );
}

/** The state of a key now: the stored state, or expired. */
export function keyStateAt(
  stored: 'active' | 'revoked',
  expiresAtSeconds: number,
  nowSeconds: number,
): KeyState {
  if (stored === 'revoked') return 'revoked';
  return nowSeconds < expiresAtSeconds ? 'active' : 'expired';
}

/** Facts that decide whether a policy accepts enrollments now. */
export interface PolicyFacts {
  readonly policyState: PolicyState;
  /** State of the exact source revision that the policy names. */
  readonly revisionState: SourceState;
  /** Whether a newer revision of the source is the active one. */
  readonly supersededByActive: boolean;
  /** Whether that revision has another issuer than the policy: a draft was edited after the policy was bound to it. */
  readonly hasOtherIssuer: boolean;
}

export type PolicyProblem =
  | 'policy_not_active'
  | 'policy_issuer_mismatch'
  | 'policy_revision_outdated'
  | 'source_not_active';

export function policyProblem(facts: PolicyFacts): PolicyProblem | undefined {
  if (facts.policyState !== 'active' && facts.policyState !== 'waiting') return 'policy_not_active';
  if (facts.hasOtherIssuer) return 'policy_issuer_mismatch';
  if (facts.revisionState === 'active' && facts.policyState === 'active') return undefined;
  return facts.supersededByActive ? 'policy_revision_outdated' : 'source_not_active';
}

/** Facts about a proof whose token was fully verified. */
export interface SubmissionFacts extends PolicyFacts {
  readonly subjectIsBlocked: boolean;
  readonly publicKeyWasRevoked: boolean;
  /** Other public keys that enrolled with the same token. */
  readonly otherKeysOfToken: number;
  readonly maxKeysPerToken: number;
}

export type SubmissionProblem = PolicyProblem | 'subject_blocked' | 'key_revoked' | 'token_key_limit';

/** Why a verified proof yields no key; undefined when it does. Evaluated at submission and again at approval. */
export function submissionProblem(facts: SubmissionFacts): SubmissionProblem | undefined {
  const problem = policyProblem(facts);
  if (problem !== undefined) return problem;
  if (facts.subjectIsBlocked) return 'subject_blocked';
  if (facts.publicKeyWasRevoked) return 'key_revoked';
  if (!(facts.otherKeysOfToken < facts.maxKeysPerToken)) return 'token_key_limit';
  return undefined;
}
