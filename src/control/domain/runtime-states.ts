/**
 * States of targets and signing profiles, and the five conditions of runtime readiness. Each condition is checked alone.
 * Source: specification "Derived key" (readiness), "Signing profile"; docs/operate/control.md "From key to traffic".
 */
import { PROFILE_STATES, type ProfileState } from '../contract/vocabulary.ts';
import type { Machine } from './machine.ts';

const TARGET_STATES = ['attached', 'detached'] as const;
export type TargetState = (typeof TARGET_STATES)[number];
const TARGET_EVENTS = ['detach'] as const;
export type TargetEvent = (typeof TARGET_EVENTS)[number];

export const TARGET_MACHINE: Machine<TargetState, TargetEvent> = {
  name: 'target',
  states: TARGET_STATES,
  events: TARGET_EVENTS,
  final: ['detached'],
  problem: 'target_state_conflict',
  table: { attached: { detach: 'detached' }, detached: {} },
};

const PROFILE_EVENTS = ['grant_and_route_hold', 'grant_or_route_lost'] as const;
export type ProfileEvent = (typeof PROFILE_EVENTS)[number];

export const PROFILE_MACHINE: Machine<ProfileState, ProfileEvent> = {
  name: 'signing_profile',
  states: PROFILE_STATES,
  events: PROFILE_EVENTS,
  final: [],
  problem: 'profile_state_conflict',
  table: {
    active: { grant_and_route_hold: 'active', grant_or_route_lost: 'inactive' },
    inactive: { grant_and_route_hold: 'active', grant_or_route_lost: 'inactive' },
  },
};
