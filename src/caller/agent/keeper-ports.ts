/** Options, dependencies and events of the key keeper. */

import { CliError } from '../../process/program/errors.ts';
import { EnrollError, type EnrollFault } from '../enroll/enroll-error.ts';
import type { EnrollEvent } from '../enroll/enroll-run.ts';
import type { EnrolledKeyRecord } from '../enroll/enrollment-state.ts';
import type { KeyPair, KeyPairs } from './key-pairs.ts';
import type { FailureKind, Moment, RenewalCause, TokenContent } from './renewal.ts';

/** Whether verifiers accept a key; `unknown` when Control did not answer. */
export type KeyReadiness = 'ready' | 'not_ready' | 'revoked' | 'unknown';

export interface TokenReading {
  readonly content: TokenContent;
  /** One line that describes a fault; empty otherwise. */
  readonly text: string;
}

/** Inputs of one enrollment attempt. */
export interface KeyRun {
  readonly keyFile: string;
  readonly pollIntervalMs: number;
  /** Maximum wait for Control's `Retry-After` at this moment. */
  readonly maxRetryAfterMs: () => number;
  readonly stop: AbortSignal;
  readonly report: (event: EnrollEvent) => void;
}

export interface KeeperPorts {
  readonly pairs: KeyPairs;
  readonly now: () => Moment;
  /** Resolves after the time, or at once when stopped. */
  readonly sleep: (waitMs: number, stop: AbortSignal) => Promise<void>;
  /** A random number from 0 to below 1. */
  readonly random: () => number;
  readonly readToken: () => Promise<TokenReading>;
  /** Enrolls the key in this file and generates it if it does not exist. Resumes an earlier attempt. */
  readonly enroll: (run: KeyRun) => Promise<EnrolledKeyRecord>;
  readonly readinessOf: (pair: KeyPair, stop: AbortSignal) => Promise<KeyReadiness>;
  /** Renews the profiles of an installed pair from Control. Resolves to whether they changed; never rejects. */
  readonly refresh: (pair: KeyPair, stop: AbortSignal) => Promise<boolean>;
  readonly report: (event: KeeperEvent) => void;
}

export type KeeperEvent =
  | { readonly kind: 'taken_over'; readonly record: EnrolledKeyRecord }
  | { readonly kind: 'enrolling'; readonly cause: RenewalCause }
  | { readonly kind: 'under_way'; readonly trouble: Trouble }
  | { readonly kind: 'replaced'; readonly record: EnrolledKeyRecord; readonly readiness: KeyReadiness }
  | { readonly kind: 'failed'; readonly failure: EnrollmentFailure; readonly waitMs: number }
  | { readonly kind: 'held_up'; readonly trouble: Trouble }
  | { readonly kind: 'refreshed'; readonly record: EnrolledKeyRecord }
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
export interface KeeperState {
  readonly record: EnrolledKeyRecord | undefined;
  readonly isRevoked: boolean;
  /** What delays the first key or the next one; undefined when nothing does. */
  readonly trouble: Trouble | undefined;
  /** Whether the installed key was installed before all verifiers confirmed it. */
  readonly isUnconfirmed: boolean;
}

/** Classifies a failed enrollment for the agent: how soon to retry, and whether the retry needs a new key. */

export interface EnrollmentFailure {
  readonly kind: FailureKind;
  readonly code: string;
  /** One line, without secrets. */
  readonly text: string;
  readonly retryAfterMs: number | undefined;
  /** Whether the next attempt uses a new key. */
  readonly isKeySpent: boolean;
}

const KINDS: { readonly [F in EnrollFault]: FailureKind } = {
  usage: 'unavailable',
  refused: 'refused',
  pending: 'unavailable',
  unreachable: 'unavailable',
};

/** Code of an unexpected error in this process; a retry may succeed. */
const INTERNAL = 'internal';

export function failureOf(error: unknown): EnrollmentFailure {
  if (error instanceof EnrollError) {
    const { code, kind, message: text, retryAfterMs } = error;
    return { kind: kindOf(code, kind), code, text, retryAfterMs, isKeySpent: isSpent(code, kind) };
  }
  const code = error instanceof CliError ? error.code : INTERNAL;
  const text = error instanceof Error ? error.message : 'unexpected failure';
  return { kind: 'unavailable', code, text, retryAfterMs: undefined, isKeySpent: true };
}

/** Rejections that depend on the state of the attempt or on a clock: an enrollment from the beginning may succeed. */
const REFUSED_FOR_NOW: ReadonlySet<string> = new Set([
  'challenge_consumed',
  'challenge_expired',
  'challenge_unknown',
  'enrollment_unknown',
  'policy_rebound',
  'poll_unauthorized',
]);

function kindOf(code: string, kind: EnrollFault): FailureKind {
  if (REFUSED_FOR_NOW.has(code)) return 'unavailable';
  if (code === 'enrollment_pending') return 'pending';
  return code === 'enrollment_denied' ? 'denied' : KINDS[kind];
}

function isSpent(code: string, kind: EnrollFault): boolean {
  return !REFUSED_FOR_NOW.has(code) && (kind === 'refused' || kind === 'usage');
}
