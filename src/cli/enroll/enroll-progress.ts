/** Shows the progress of `enroll`: one line that is overwritten in a terminal, elsewhere occasional log lines. */
import type { EnrollEvent } from '../../caller/enroll/enroll-run.ts';
import type { Output } from '../../process/program/output.ts';
import { formatDurationMs } from '../../process/settings/settings.ts';

/** Minimum interval between two equal log lines. */
const LOG_EVERY_MS = 30_000;

export class EnrollProgress {
  readonly #output: Output;
  #lastLogged: { readonly elapsedMs: number; readonly fault: string | undefined } | undefined;

  constructor(output: Output) {
    this.#output = output;
  }

  report(event: EnrollEvent): void {
    switch (event.kind) {
      case 'unconfirmed':
        this.#output.note(
          'key_unconfirmed',
          `Control did not answer whether the key is revoked (${event.fault}): the status is from the state file`,
        );
        return;
      case 'resumed':
        this.#output.note('enrollment_resumed', RESUMED[event.attempt]);
        return;
      case 'retrying': {
        const again = formatDurationMs(event.waitMs);
        this.#output.note('enrollment_retrying', `${event.what}: ${event.fault}; again in ${again}`);
        return;
      }
      case 'waiting':
        this.#waiting(event);
    }
  }

  #waiting(event: Extract<EnrollEvent, { readonly kind: 'waiting' }>): void {
    const { enrollmentId, elapsedMs, fault } = event;
    const since = formatDurationMs(Math.floor(elapsedMs / 1000) * 1000);
    const text = `waiting for enrollment ${enrollmentId}, ${since}${fault === undefined ? '' : ` (${fault})`}`;
    if (this.#output.progress(text)) return;
    const last = this.#lastLogged;
    if (last !== undefined && last.fault === fault && elapsedMs - last.elapsedMs < LOG_EVERY_MS) return;
    this.#lastLogged = { elapsedMs, fault };
    this.#output.note('enrollment_waiting', text);
  }
}

const RESUMED = {
  submitting: 'an earlier submission has no answer yet: making the same one again',
  submitted: 'an earlier enrollment is under way: asking for it',
} as const;
