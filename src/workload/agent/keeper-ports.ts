/** What keeping a key enrolled is told, what it needs of the world around it, and what it says. */
import type { EnrollEvent } from '../../client/enroll/enroll-ports.ts';
import type { EnrolledKeyRecord } from '../../client/enroll/enrollment-state.ts';
import type { Moment, RenewalCause, TokenSight } from '../../client/enroll/renewal.ts';
import type { EnrollmentFailure } from './agent-failures.ts';
import type { KeyPair, KeyPairs } from './key-pairs.ts';

/** What verifiers make of a key; `unknown` where Control did not say. */
export type KeyStanding = 'ready' | 'not_ready' | 'revoked' | 'unknown';

export interface SeenToken {
  readonly sight: TokenSight;
  /** One line, where it is a fault. */
  readonly text: string;
}

/** One run of enrolling. */
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
  /** 0 to below 1. */
  readonly random: () => number;
  readonly readToken: () => Promise<SeenToken>;
  /** Enrolls the key that is in this file, or made there. Goes on where an earlier run ended. */
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
  /** For one run of enrolling. */
  readonly timeoutMs: number;
  /** Begins with a new key, whatever is in place. */
  readonly startsAnew: boolean;
}

/** A stable code and one line, which holds nothing secret. */
export interface Trouble {
  readonly code: string;
  readonly text: string;
}

/** How it stands, for probes. */
export interface KeeperStanding {
  readonly record: EnrolledKeyRecord | undefined;
  readonly isRevoked: boolean;
  /** What keeps a new key from being there, or the next one; undefined when nothing does. */
  readonly trouble: Trouble | undefined;
  /** Verifiers did not confirm the key in place before it was put there. */
  readonly isUnconfirmed: boolean;
}
