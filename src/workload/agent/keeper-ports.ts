/** Options, dependencies and events of the key keeper. */
import type { EnrollEvent } from '../../client/enroll/enroll-ports.ts';
import type { EnrolledKeyRecord } from '../../client/enroll/enrollment-state.ts';
import type { Moment, RenewalCause, TokenSight } from '../../client/enroll/renewal.ts';
import type { EnrollmentFailure } from './agent-failures.ts';
import type { KeyPair, KeyPairs } from './key-pairs.ts';

/** Whether verifiers accept a key; `unknown` when Control did not answer. */
export type KeyStanding = 'ready' | 'not_ready' | 'revoked' | 'unknown';

export interface SeenToken {
  readonly sight: TokenSight;
  /** One line that describes a fault; empty otherwise. */
  readonly text: string;
}

/** Inputs of one enrollment attempt. */
export interface KeyRun {
  readonly keyFile: string;
  readonly pollIntervalMs: number;
  readonly stop: AbortSignal;
  readonly tell: (event: EnrollEvent) => void;
}

export interface KeeperPorts {
  readonly pairs: KeyPairs;
  readonly now: () => Moment;
  /** Resolves after the time, or at once when stopped. */
  readonly sleep: (waitMs: number, stop: AbortSignal) => Promise<void>;
  /** A random number from 0 to below 1. */
  readonly random: () => number;
  readonly readToken: () => Promise<SeenToken>;
  /** Enrolls the key in this file and generates it if it does not exist. Resumes an earlier attempt. */
  readonly enroll: (run: KeyRun) => Promise<EnrolledKeyRecord>;
  readonly standingOf: (pair: KeyPair, stop: AbortSignal) => Promise<KeyStanding>;
  readonly tell: (event: KeeperEvent) => void;
}

export type KeeperEvent =
  | { readonly kind: 'taken_over'; readonly record: EnrolledKeyRecord }
  | { readonly kind: 'enrolling'; readonly cause: RenewalCause }
  | { readonly kind: 'under_way'; readonly trouble: Trouble }
  | { readonly kind: 'replaced'; readonly record: EnrolledKeyRecord; readonly standing: KeyStanding }
  | { readonly kind: 'failed'; readonly failure: EnrollmentFailure; readonly waitMs: number }
  | { readonly kind: 'held_up'; readonly trouble: Trouble }
  | { readonly kind: 'revoked'; readonly record: EnrolledKeyRecord };

export interface KeeperOptions {
  readonly refreshSkewMs: number;
  readonly pollIntervalMs: number;
  /** Timeout of one enrollment attempt. */
  readonly timeoutMs: number;
  /** Starts with a new key even if the installed one is valid. */
  readonly startsAnew: boolean;
}

/** A stable code and one line of text, without secrets. */
export interface Trouble {
  readonly code: string;
  readonly text: string;
}

/** Current state of the keeper, for probes. */
export interface KeeperStanding {
  readonly record: EnrolledKeyRecord | undefined;
  readonly isRevoked: boolean;
  /** What delays the first key or the next one; undefined when nothing does. */
  readonly trouble: Trouble | undefined;
  /** Whether the installed key was installed before all verifiers confirmed it. */
  readonly isUnconfirmed: boolean;
}
