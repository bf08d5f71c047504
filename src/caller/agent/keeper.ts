/**
 * Keeps a key enrolled: decides when to renew (`src/caller/agent/renewal.ts`), enrolls the next key pair, waits until
 * verifiers have it, and installs it. A failure leaves the installed pair in place.
 * Source: docs/operate/workloads.md "When it enrolls".
 */

import { usageError } from '../../process/program/errors.ts';
import { boundedWaitMs, type Urgency } from '../../protocol/retry-wait.ts';
import type { EnrollEvent } from '../enroll/enroll-run.ts';
import type { EnrolledKeyRecord } from '../enroll/enrollment-state.ts';
import { refusal } from '../enroll/explanations.ts';
import { MAX_RETRY_AFTER_MS, Pacing } from '../enroll/pacing.ts';
import type {
  KeeperOptions,
  KeeperPorts,
  KeeperState,
  KeyReadiness,
  TokenReading,
  Trouble,
} from './keeper-ports.ts';
import { type EnrollmentFailure, failureOf } from './keeper-ports.ts';
import type { KeyPair } from './key-pairs.ts';
import {
  isUsable,
  keyUrgency,
  type LastFailure,
  nextStep,
  propagationWaitMs,
  type RenewalCause,
  retryWaitMs,
  type TokenContent,
} from './renewal.ts';

/** Interval at which the keeper asks Control whether the installed key was revoked, and for its profiles. */
const REVOCATION_CHECK_MS = 300_000;
/** The same interval while verifiers have not confirmed the key. */
const UNCONFIRMED_CHECK_MS = 120_000;
/** Poll interval of an enrollment that was already pending. */
const PENDING_POLL_MS = 30_000;

const NOT_PROPAGATED: Trouble = {
  code: 'key_unconfirmed',
  text: 'the new key is issued and waits for every verifier to have it',
};
const NOT_RENEWED =
  'the key nears its end, and the token file has not been renewed since: a key never outlives its token';

export class KeyKeeper {
  readonly #ports: KeeperPorts;
  readonly #options: KeeperOptions;
  #state: KeeperState = {
    record: undefined,
    isRevoked: false,
    trouble: undefined,
    isUnconfirmed: false,
  };
  #lastFailure: LastFailure | undefined;
  #failures = 0;
  /** Code and text of the last failure. */
  #failureTrouble: Trouble | undefined;
  #enrolledWithDigest: string | undefined;
  #spread: number;
  #startsAnew: boolean;
  #checkRevocationAtMs = 0;

  constructor(ports: KeeperPorts, options: KeeperOptions) {
    this.#ports = ports;
    this.#options = options;
    this.#spread = ports.random();
    this.#startsAnew = options.startsAnew;
  }

  get state(): KeeperState {
    return this.#state;
  }

  /** Runs until stopped. @throws an unexpected error */
  async run(stop: AbortSignal): Promise<void> {
    const found = await this.#ports.pairs.current();
    if (found !== undefined) {
      // Assumes that the key was enrolled with the current token. A newer token is noticed when the renewal is due.
      this.#enrolledWithDigest = digestOf((await this.#ports.readToken()).content);
      this.#ports.report({ kind: 'taken_over', record: found.record });
    }
    while (!stop.aborted) await this.check(stop);
  }

  /** Checks once whether to enroll, and then enrolls or sleeps. */
  async check(stop: AbortSignal): Promise<void> {
    const { pairs, readToken, sleep } = this.#ports;
    const pair = await pairs.current();
    this.#noteInstalled(pair?.record);
    if (pair !== undefined && !this.#startsAnew) await this.#checkRevocation(pair, stop);
    const token = await readToken();
    const step = nextStep(
      {
        current: this.#startsAnew || this.#state.isRevoked ? undefined : pair?.record,
        token: token.content,
        enrolledWithDigest: this.#enrolledWithDigest,
        lastFailure: this.#lastFailure,
        refreshSkewMs: this.#options.refreshSkewMs,
        spread: this.#spread,
      },
      this.#ports.now(),
    );
    if (step.kind === 'enroll') return this.#renew(step.cause, digestOf(token.content), pair, stop);
    this.#noteWait(step.why, token);
    await sleep(step.waitMs, stop);
  }

  async #renew(
    cause: RenewalCause,
    tokenDigest: string | undefined,
    installed: KeyPair | undefined,
    stop: AbortSignal,
  ): Promise<void> {
    const { pairs, report } = this.#ports;
    if (this.#lastFailure === undefined) report({ kind: 'enrolling', cause });
    try {
      await this.#enrollNext(stop);
      const readiness = await this.#awaitPropagation(this.#state.isRevoked ? undefined : installed, stop);
      // The pair is complete: the next run installs it.
      if (stop.aborted) return;
      if (readiness === 'revoked') throw refusal('key_revoked');
      await pairs.publishNext();
      this.#recordReplacement(await pairs.current(), tokenDigest, readiness);
    } catch (error) {
      if (!stop.aborted) await this.#recordFailure(failureOf(error), tokenDigest);
    }
  }

  async #enrollNext(stop: AbortSignal): Promise<void> {
    const { enroll, pairs } = this.#ports;
    const { pollIntervalMs, timeoutMs } = this.#options;
    const isPending = (await pairs.nextState())?.attempt?.kind === 'submitted';
    const pendingPollMs = Math.max(pollIntervalMs, Math.min(PENDING_POLL_MS, timeoutMs));
    await enroll({
      keyFile: await pairs.nextKeyFile(),
      pollIntervalMs: isPending ? pendingPollMs : pollIntervalMs,
      maxRetryAfterMs: () => boundedWaitMs(MAX_RETRY_AFTER_MS, this.#urgency()),
      stop,
      report: (event) => this.#reportProgress(troubleOf(event)),
    });
  }

  /** Records what the current attempt waits for. */
  #reportProgress(trouble: Trouble | undefined): void {
    if (trouble === undefined) return;
    const isNew = trouble.text !== this.#state.trouble?.text;
    this.#state = { ...this.#state, trouble };
    if (isNew) this.#ports.report({ kind: 'under_way', trouble });
  }

  /** Waits until every verifier has the next key, or for as long as the installed key allows. */
  async #awaitPropagation(installed: KeyPair | undefined, stop: AbortSignal): Promise<KeyReadiness> {
    const { now, pairs, random, sleep, readinessOf } = this.#ports;
    const next = await pairs.next();
    if (next === undefined) throw usageError('enrollment_missing', 'the enrolled key cannot be read back');
    const begin = now();
    const waitMs = propagationWaitMs(next.record, installed?.record, begin.wallMs);
    const pacing = new Pacing(this.#options.pollIntervalMs, random);
    for (;;) {
      const readiness = await readinessOf(next, stop);
      const { monotonicMs, wallMs } = now();
      // Uses both clocks: the monotonic clock stops during machine sleep, the wall clock may be set back.
      const passedMs = Math.max(monotonicMs - begin.monotonicMs, wallMs - begin.wallMs);
      const isKnown = readiness === 'ready' || readiness === 'revoked';
      if (isKnown || stop.aborted || !(passedMs < waitMs)) return readiness;
      this.#reportProgress(NOT_PROPAGATED);
      await sleep(Math.min(pacing.next(), waitMs - passedMs), stop);
    }
  }

  #recordReplacement(
    pair: KeyPair | undefined,
    tokenDigest: string | undefined,
    readiness: KeyReadiness,
  ): void {
    if (pair === undefined) throw usageError('enrollment_missing', 'the key in place cannot be read back');
    const { now, random, report } = this.#ports;
    this.#clearFailure();
    this.#startsAnew = false;
    this.#spread = random();
    this.#enrolledWithDigest = tokenDigest;
    this.#state = {
      record: pair.record,
      isRevoked: false,
      trouble: undefined,
      isUnconfirmed: readiness !== 'ready',
    };
    this.#checkRevocationAtMs = now().monotonicMs + this.#revocationCheckMs;
    report({ kind: 'replaced', record: pair.record, readiness });
  }

  async #recordFailure(failure: EnrollmentFailure, tokenDigest: string | undefined): Promise<void> {
    const { now, pairs, random, report } = this.#ports;
    const { code, isKeySpent, kind, retryAfterMs, text } = failure;
    // Keep the key while a recorded attempt may still succeed.
    if (isKeySpent && (await pairs.nextState())?.attempt === undefined) {
      await pairs.dropNext().catch(() => undefined);
    }
    this.#failures = this.#lastFailure?.kind === kind ? this.#failures + 1 : 1;
    const waitMs = retryWaitMs({ kind, count: this.#failures, retryAfterMs }, this.#urgency(), random());
    this.#lastFailure = { kind, code, tokenDigest, notBeforeMonotonicMs: now().monotonicMs + waitMs };
    this.#failureTrouble = { code, text };
    this.#state = { ...this.#state, trouble: this.#failureTrouble };
    report({ kind: 'failed', failure, waitMs });
  }

  #urgency(): Urgency {
    const { isRevoked, record } = this.#state;
    return keyUrgency(isRevoked || this.#startsAnew ? undefined : record, this.#ports.now().wallMs);
  }

  #clearFailure(): void {
    this.#lastFailure = undefined;
    this.#failures = 0;
  }

  /** Records what a due renewal waits for; undefined clears it. */
  #noteWait(why: string | undefined, token: TokenReading): void {
    if (why === undefined) {
      this.#clearFailure();
      this.#state = { ...this.#state, trouble: undefined };
      return;
    }
    const isReported = why === this.#state.trouble?.code || why === this.#lastFailure?.code;
    const text = why === 'token_not_renewed' ? NOT_RENEWED : token.text;
    const trouble = why === this.#lastFailure?.code ? this.#failureTrouble : { code: why, text };
    this.#state = { ...this.#state, trouble };
    if (!isReported) this.#ports.report({ kind: 'held_up', trouble: { code: why, text } });
  }

  #noteInstalled(record: EnrolledKeyRecord | undefined): void {
    const isSameKey = record?.key.keyId === this.#state.record?.key.keyId;
    const known = isSameKey ? this.#state : { ...this.#state, isRevoked: false, isUnconfirmed: false };
    this.#state = { ...known, record };
  }

  /**
   * Asks Control at an interval whether the key was revoked, and for its profiles. Verifiers deny a revoked key, so the
   * keeper enrolls a new one.
   */
  async #checkRevocation(pair: KeyPair, stop: AbortSignal): Promise<void> {
    const { now, readinessOf, refresh, report } = this.#ports;
    const { isRevoked } = this.#state;
    if (isRevoked || now().monotonicMs < this.#checkRevocationAtMs || !isUsable(pair.record, now().wallMs))
      return;
    const readiness = await readinessOf(pair, stop);
    if (readiness !== 'unknown') this.#state = { ...this.#state, isUnconfirmed: readiness !== 'ready' };
    if (readiness === 'revoked') {
      this.#state = { ...this.#state, isRevoked: true };
      report({ kind: 'revoked', record: pair.record });
    } else if (await refresh(pair, stop)) {
      report({ kind: 'refreshed', record: pair.record });
    }
    this.#checkRevocationAtMs = now().monotonicMs + this.#revocationCheckMs;
  }

  get #revocationCheckMs(): number {
    const intervalMs = this.#state.isUnconfirmed ? UNCONFIRMED_CHECK_MS : REVOCATION_CHECK_MS;
    return intervalMs * (1 + this.#ports.random());
  }
}

/** Resuming an attempt is not a problem, so it has no text. */
function troubleOf(event: EnrollEvent): Trouble | undefined {
  switch (event.kind) {
    case 'resumed':
    case 'unconfirmed':
      return undefined;
    case 'retrying':
      return { code: 'enrollment_retrying', text: `${event.what}: ${event.fault}` };
    case 'waiting': {
      const fault = event.fault === undefined ? 'it awaits approval' : event.fault;
      return { code: 'enrollment_pending', text: `enrollment ${event.enrollmentId}: ${fault}` };
    }
  }
}

function digestOf(content: TokenContent): string | undefined {
  return content.kind === 'token' ? content.digest : undefined;
}
