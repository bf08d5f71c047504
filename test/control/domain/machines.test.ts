/**
 * Tests every state with every event, against tables written from the specification ("States and transitions") and the design.
 */
import { describe, expect, it } from '@jest/globals';
import { PROBLEMS } from '../../../src/control/domain/api-problem.ts';
import {
  ENROLLMENT_MACHINE,
  KEY_MACHINE,
  keyExpirySeconds,
  keyStateAt,
  POLICY_MACHINE,
  type PolicyFacts,
  policyProblem,
  submissionProblem,
} from '../../../src/control/domain/enrollment-rules.ts';
import { type Machine, move } from '../../../src/control/domain/machine.ts';
import { PROFILE_MACHINE, TARGET_MACHINE } from '../../../src/control/domain/runtime-states.ts';
import {
  type ActivationFacts,
  activationProblem,
  holdsSlot,
  SOURCE_MACHINE,
} from '../../../src/control/domain/source-states.ts';

/** One `from event to` a line; all other transitions are rejected. */
const TABLES: readonly {
  readonly machine: Machine<string, string>;
  readonly states: string;
  readonly events: string;
  readonly final: string;
  readonly moves: string;
}[] = [
  {
    machine: SOURCE_MACHINE,
    states: 'draft failed_draft validated activating publishing active suspended retired removed',
    events:
      'edit validation_passed validation_failed delete activate declare check_passed check_failed declaration_failed acknowledged suspend resume retire superseded',
    final: 'retired removed',
    moves: `
      draft edit draft
      draft validation_passed validated
      draft validation_failed failed_draft
      draft delete removed
      draft declare activating
      failed_draft edit draft
      failed_draft validation_passed validated
      failed_draft validation_failed failed_draft
      failed_draft delete removed
      failed_draft declare activating
      validated edit draft
      validated validation_passed validated
      validated validation_failed failed_draft
      validated delete removed
      validated activate activating
      validated declare activating
      activating check_passed publishing
      activating check_failed validated
      activating declaration_failed failed_draft
      activating retire retired
      publishing acknowledged active
      publishing suspend suspended
      publishing retire retired
      active suspend suspended
      active retire retired
      active superseded retired
      suspended resume publishing
      suspended retire retired
      suspended superseded retired`,
  },
  {
    machine: POLICY_MACHINE,
    states: 'waiting active deactivated deleted',
    events: 'source_active rebind rebind_waiting deactivate reactivate delete',
    final: 'deleted',
    moves: `
      waiting source_active active
      waiting rebind active
      waiting rebind_waiting waiting
      active rebind active
      active rebind_waiting waiting
      deactivated rebind deactivated
      deactivated rebind_waiting deactivated
      waiting deactivate deactivated
      waiting delete deleted
      active deactivate deactivated
      active delete deleted
      deactivated reactivate active
      deactivated delete deleted`,
  },
  {
    machine: ENROLLMENT_MACHINE,
    states: 'pending_approval issued denied expired',
    events: 'approve deny expire policy_ended',
    final: 'issued denied expired',
    moves: `
      pending_approval approve issued
      pending_approval deny denied
      pending_approval expire expired
      pending_approval policy_ended denied`,
  },
  {
    machine: KEY_MACHINE,
    states: 'active revoked expired',
    events: 'revoke expire',
    final: 'revoked expired',
    moves: `
      active revoke revoked
      active expire expired`,
  },
  {
    machine: TARGET_MACHINE,
    states: 'attached detached',
    events: 'detach',
    final: 'detached',
    moves: 'attached detach detached',
  },
  {
    machine: PROFILE_MACHINE,
    states: 'active inactive',
    events: 'grant_and_route_hold grant_or_route_lost',
    final: '',
    moves: `
      active grant_and_route_hold active
      active grant_or_route_lost inactive
      inactive grant_and_route_hold active
      inactive grant_or_route_lost inactive`,
  },
];

const words = (text: string) => text.split(/\s+/).filter(Boolean);

describe.each(TABLES)('$machine.name', ({ machine, states, events, final, moves }) => {
  const expected = new Map(
    moves
      .trim()
      .split('\n')
      .map((line) => words(line) as [string, string, string])
      .map(([from, event, to]) => [`${from} ${event}`, to]),
  );

  it('has these states and events', () => {
    expect([...machine.states].sort()).toEqual(words(states).sort());
    expect([...machine.events].sort()).toEqual(words(events).sort());
    expect([...machine.final].sort()).toEqual(words(final).sort());
    expect(Object.keys(machine.table).sort()).toEqual(words(states).sort());
    if (machine !== PROFILE_MACHINE) expect(PROBLEMS).toHaveProperty(machine.problem);
  });

  it('answers every event in every state as it should', () => {
    let moved = 0;
    for (const from of words(states)) {
      for (const event of words(events)) {
        const to = expected.get(`${from} ${event}`);
        const answer = to === undefined ? { kind: 'refused', code: machine.problem } : { kind: 'moved', to };
        expect([from, event, move(machine, from, event)]).toEqual([from, event, answer]);
        if (to !== undefined) moved += 1;
      }
    }
    expect(moved).toBe(expected.size);
  });

  it('takes no name that every object has for an event', () => {
    for (const event of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
      for (const from of machine.states) expect(move(machine, from, event).kind).toBe('refused');
    }
  });
});

describe('slots', () => {
  it('are held from activating to the end, by no draft', () => {
    const holders = SOURCE_MACHINE.states.filter(holdsSlot);
    expect(holders).toEqual(['activating', 'publishing', 'active', 'suspended']);
  });

  const fit: ActivationFacts = {
    state: 'validated',
    event: 'activate',
    detectedScope: 'issuer.example/cluster',
    expectedScope: 'issuer.example/cluster',
    anotherInProgress: false,
    sourceHoldsSlot: false,
    slotsUsed: 15,
    capacity: 16,
  };

  it.each<[Partial<ActivationFacts>, string | undefined]>([
    [{}, undefined],
    [{ state: 'draft' }, 'source_state_conflict'],
    [{ state: 'failed_draft' }, 'source_state_conflict'],
    [{ state: 'draft', event: 'declare' }, undefined],
    [{ state: 'failed_draft', event: 'declare' }, undefined],
    [{ event: 'declare' }, undefined],
    [{ state: 'active', event: 'declare' }, 'source_state_conflict'],
    [{ state: 'draft', event: 'declare', detectedScope: undefined }, 'source_scope_mismatch'],
    [{ state: 'activating' }, 'source_state_conflict'],
    [{ state: 'active' }, 'source_state_conflict'],
    [{ state: 'retired' }, 'source_state_conflict'],
    [{ expectedScope: 'issuer.example/other' }, 'source_scope_mismatch'],
    [{ detectedScope: undefined }, 'source_scope_mismatch'],
    [{ detectedScope: undefined, expectedScope: '' }, 'source_scope_mismatch'],
    [{ anotherInProgress: true }, 'source_revision_in_progress'],
    [{ slotsUsed: 16 }, 'source_capacity_exhausted'],
    [{ slotsUsed: 17 }, 'source_capacity_exhausted'],
    [{ capacity: 0, slotsUsed: 0 }, 'source_capacity_exhausted'],
    [{ capacity: Number.NaN }, 'source_capacity_exhausted'],
    [{ slotsUsed: 16, sourceHoldsSlot: true }, undefined],
  ])('%j gives %s', (facts, problem) => {
    expect(activationProblem({ ...fit, ...facts })).toBe(problem);
  });
});

describe('which enrollments are accepted', () => {
  const open = {
    policyState: 'active',
    revisionState: 'active',
    supersededByActive: false,
    hasOtherIssuer: false,
  } as const;

  it.each<[Partial<PolicyFacts>, string | undefined]>([
    [{}, undefined],
    [{ policyState: 'deactivated' }, 'policy_not_active'],
    [{ policyState: 'deleted' }, 'policy_not_active'],
    [{ policyState: 'deactivated', revisionState: 'retired' }, 'policy_not_active'],
    [{ hasOtherIssuer: true }, 'policy_issuer_mismatch'],
    [{ hasOtherIssuer: true, policyState: 'waiting', revisionState: 'draft' }, 'policy_issuer_mismatch'],
    [{ hasOtherIssuer: true, policyState: 'deleted' }, 'policy_not_active'],
    ...SOURCE_MACHINE.states
      .filter((state) => state !== 'active')
      .flatMap((revisionState): [Partial<PolicyFacts>, string][] => [
        [{ revisionState }, 'source_not_active'],
        [{ revisionState, supersededByActive: true }, 'policy_revision_outdated'],
      ]),
  ])('%j gives %s', (facts, problem) => {
    expect(policyProblem({ ...open, ...facts })).toBe(problem);
  });

  const proof = {
    ...open,
    subjectIsBlocked: false,
    publicKeyWasRevoked: false,
    otherKeysOfToken: 4,
    maxKeysPerToken: 5,
  };

  it.each<[Partial<typeof proof>, string | undefined]>([
    [{}, undefined],
    [{ subjectIsBlocked: true }, 'subject_blocked'],
    [{ publicKeyWasRevoked: true }, 'key_revoked'],
    [{ otherKeysOfToken: 5 }, 'token_key_limit'],
    [{ otherKeysOfToken: 1, maxKeysPerToken: 1 }, 'token_key_limit'],
    [{ otherKeysOfToken: 0, maxKeysPerToken: 1 }, undefined],
    [{ otherKeysOfToken: Number.NaN }, 'token_key_limit'],
  ])('a proof with %j gives %s', (facts, problem) => {
    expect(submissionProblem({ ...proof, ...facts })).toBe(problem);
  });

  it('asks the policy first', () => {
    const facts = { ...proof, policyState: 'deleted', subjectIsBlocked: true } as const;
    expect(submissionProblem(facts)).toBe('policy_not_active');
  });
});

describe('how long a key lives', () => {
  it.each([
    [1000, 100, 3600, 1000],
    [10_000, 100, 3600, 3700],
    [3700, 100, 3600, 3700],
    [1000.9, 100, 3600, 1000],
    [50, 100, 3600, 50],
  ])('token to %d, accepted at %d, at most %d: to %d', (token, accepted, lifetime, expected) => {
    const facts = {
      tokenExpiresAtSeconds: token,
      acceptedAtSeconds: accepted,
      maxKeyLifetimeSeconds: lifetime,
    };
    expect(keyExpirySeconds(facts)).toBe(expected);
  });

  it.each([
    ['active', 100, 99, 'active'],
    ['active', 100, 100, 'expired'],
    ['active', 100, 101, 'expired'],
    ['active', Number.NaN, 1, 'expired'],
    ['active', 100, Number.NaN, 'expired'],
    ['revoked', 100, 99, 'revoked'],
    ['revoked', 100, 101, 'revoked'],
  ] as const)('%s to %d, at %d: %s', (stored, expires, now, expected) => {
    expect(keyStateAt(stored, expires, now)).toBe(expected);
  });
});
