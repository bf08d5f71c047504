/**
 * Rules of Trust Anchor Sources, which prove workload identity. Each revision has a state, and at most one revision of
 * a source is active. A source alone grants no access.
 * Source: specification "Trust Anchor Source" and its states; docs/operate/control.md "Trust Anchor Source".
 */
import { DRAFT_STATES, SOURCE_STATES, type SourceState } from '../contract/vocabulary.ts';
import type { Machine } from './machine.ts';

export const SOURCE_EVENTS = [
  'edit',
  'validation_passed',
  'validation_failed',
  'delete',
  'activate',
  'declare',
  'check_passed',
  'check_failed',
  'declaration_failed',
  'acknowledged',
  'suspend',
  'resume',
  'retire',
  'superseded',
] as const;
export type SourceEvent = (typeof SOURCE_EVENTS)[number];

/** Maximum clock lead of another instance. A key set with a later timestamp is not used. */
export const MAX_KEY_SET_LEAD_MS = 30_000;

export const SOURCE_MACHINE: Machine<SourceState, SourceEvent> = {
  name: 'source',
  states: SOURCE_STATES,
  events: SOURCE_EVENTS,
  final: ['retired', 'removed'],
  problem: 'source_state_conflict',
  table: {
    draft: {
      edit: 'draft',
      validation_passed: 'validated',
      validation_failed: 'failed_draft',
      delete: 'removed',
      declare: 'activating',
    },
    failed_draft: {
      edit: 'draft',
      validation_passed: 'validated',
      validation_failed: 'failed_draft',
      delete: 'removed',
      declare: 'activating',
    },
    validated: {
      edit: 'draft',
      validation_passed: 'validated',
      validation_failed: 'failed_draft',
      delete: 'removed',
      activate: 'activating',
      declare: 'activating',
    },
    activating: {
      check_passed: 'publishing',
      check_failed: 'validated',
      declaration_failed: 'failed_draft',
      retire: 'retired',
    },
    publishing: { acknowledged: 'active', suspend: 'suspended', retire: 'retired' },
    active: { suspend: 'suspended', retire: 'retired', superseded: 'retired' },
    suspended: { resume: 'publishing', retire: 'retired', superseded: 'retired' },
    retired: {},
    removed: {},
  },
};

export const SLOT_STATES: readonly SourceState[] = ['activating', 'publishing', 'active', 'suspended'];

/** States of a revision that becomes active by itself. */
export const IN_PROGRESS_STATES: readonly SourceState[] = ['activating', 'publishing'];

/** Whether a revision in this state occupies its source's capacity slot. A source uses one slot for all its revisions. */
export function holdsSlot(state: SourceState): boolean {
  return SLOT_STATES.includes(state);
}

/** Whether a revision in this state can be edited and deleted. */
export function isDraft(state: SourceState): boolean {
  return DRAFT_STATES.includes(state);
}

/** Whether a revision in this state is a draft, or becomes one again when its activation fails. */
export function canStillBeEdited(state: SourceState): boolean {
  return isDraft(state) || state === 'activating';
}

export interface ActivationFacts {
  readonly state: SourceState;
  /** Validated before, or declared: then the check after it validates. */
  readonly event: 'activate' | 'declare';
  readonly detectedScope: string | undefined;
  /** The scope that the operator confirmed. */
  readonly expectedScope: string;
  /** Whether another revision of the source is already activating or publishing. */
  readonly anotherInProgress: boolean;
  /** Whether the source already has a slot, through an older revision. */
  readonly sourceHoldsSlot: boolean;
  readonly slotsUsed: number;
  readonly capacity: number;
}

export type ActivationRefusal =
  | 'source_state_conflict'
  | 'source_scope_mismatch'
  | 'source_revision_in_progress'
  | 'source_capacity_exhausted';

/** Why a revision cannot activate; undefined when it can. Call it in the transaction that takes the slot. */
export function activationProblem(facts: ActivationFacts): ActivationRefusal | undefined {
  if (SOURCE_MACHINE.table[facts.state][facts.event] === undefined) return 'source_state_conflict';
  if (facts.detectedScope !== facts.expectedScope) return 'source_scope_mismatch';
  if (facts.anotherInProgress) return 'source_revision_in_progress';
  if (!facts.sourceHoldsSlot && !(facts.slotsUsed < facts.capacity)) return 'source_capacity_exhausted';
  return undefined;
}
