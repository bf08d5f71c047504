/** Classifies a failed enrollment for the agent: how soon to retry, and whether the retry needs a new key. */
import { EnrollError, type EnrollFault } from '../../client/enroll/enroll-error.ts';
import type { SetbackKind } from '../../client/enroll/renewal.ts';
import { CliError } from '../../program/errors.ts';

export interface EnrollmentFailure {
  readonly kind: SetbackKind;
  readonly code: string;
  /** One line, without secrets. */
  readonly text: string;
  readonly retryAfterMs: number | undefined;
  /** Whether the next attempt uses a new key. */
  readonly isKeySpent: boolean;
}

const KINDS: { readonly [F in EnrollFault]: SetbackKind } = {
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
  'poll_unauthorized',
]);

function kindOf(code: string, kind: EnrollFault): SetbackKind {
  if (REFUSED_FOR_NOW.has(code)) return 'unavailable';
  if (code === 'enrollment_pending') return 'pending';
  return code === 'enrollment_denied' ? 'denied' : KINDS[kind];
}

function isSpent(code: string, kind: EnrollFault): boolean {
  return !REFUSED_FOR_NOW.has(code) && (kind === 'refused' || kind === 'usage');
}
