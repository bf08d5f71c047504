/**
 * Keeps a key enrolled: decides when to renew (`src/workload/agent/renewal.ts`), enrolls the next key pair, waits until
 * verifiers have it, and installs it. A failure leaves the installed pair in place.
 * Source: docs/workloads.md "When it enrolls".
 */
import type { EnrollEvent } from '../../client/enroll/enroll-run.ts';
import type { EnrolledKeyRecord } from '../../client/enroll/enrollment-state.ts';
import { refusal } from '../../client/enroll/explanations.ts';
import { Pacing } from '../../client/enroll/pacing.ts';
import { usageError } from '../../program/errors.ts';
import type {
  KeeperOptions,
  KeeperPorts,
  KeeperStanding,
  KeyStanding,
  SeenToken,
  Trouble,
} from './keeper-ports.ts';
import { type EnrollmentFailure, failureOf } from './keeper-ports.ts';
import type { KeyPair } from './key-pairs.ts';
import {
  isUsable,
  nextStep,
  propagationWaitMs,
  type RenewalCause,
  type Setback,
  setbackWaitMs,
  type TokenSight,
} from './renewal.ts';

/** Interval of the requests to Control whether the installed key was revoked. */
const STANDING_EVERY_MS = 600_000;
/** The same interval while verifiers have not confirmed the key. */
const UNCONFIRMED_STANDING_EVERY_MS = 120_000;
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
  #standing: KeeperStanding = {
    record: undefined,
    isRevoked: false,
    trouble: undefined,
    isUnconfirmed: false,
  };
  #setback: Setback | undefined;
  #setbacks = 0;
  /** Code and text of the setback. */
  #lastFault: Trouble | undefined;
  #enrolledWithDigest: string | undefined;
  #spread: number;
  #startsAnew: boolean;
  #askStandingAtMs = 0;

  constructor(ports: KeeperPorts, options: KeeperOptions) {
    this.#ports = ports;
    this.#options = options;
    this.#spread = ports.random();
    this.#startsAnew = options.startsAnew;
  }

  get standing(): KeeperStanding {
    return this.#standing;
  }

  /** Runs until stopped. @throws an unexpected error */
  async run(stop: AbortSignal): Promise<void> {
    const found = await this.#ports.pairs.current();
    if (found !== undefined) {
      // Assumes that the key was enrolled with the current token. A newer token is noticed when the renewal is due.
      this.#enrolledWithDigest = digestOf((await this.#ports.readToken()).sight);
      this.#ports.tell({ kind: 'taken_over', record: found.record });
    }
    while (!stop.aborted) await this.turn(stop);
  }

  /** Checks once whether to enroll, and then enrolls or sleeps. */
  async turn(stop: AbortSignal): Promise<void> {
    const { pairs, readToken, sleep } = this.#ports;
    const pair = await pairs.current();
    this.#see(pair?.record);
    if (pair !== undefined && !this.#startsAnew) await this.#askWhetherRevoked(pair, stop);
    const token = await readToken();
    const step = nextStep(
      {
        current: this.#startsAnew || this.#standing.isRevoked ? undefined : pair?.record,
        token: token.sight,
        enrolledWithDigest: this.#enrolledWithDigest,
        setback: this.#setback,
        refreshSkewMs: this.#options.refreshSkewMs,
        spread: this.#spread,
      },
      this.#ports.now(),
    );
    if (step.kind === 'enroll') return this.#renew(step.cause, digestOf(token.sight), pair, stop);
    this.#heldUpBy(step.why, token);
    await sleep(step.waitMs, stop);
  }

  async #renew(
    cause: RenewalCause,
    tokenDigest: string | undefined,
    old: KeyPair | undefined,
    stop: AbortSignal,
  ): Promise<void> {
    const { pairs, tell } = this.#ports;
    if (this.#setback === undefined) tell({ kind: 'enrolling', cause });
    try {
      await this.#enrollNext(stop);
      const standing = await this.#propagated(this.#standing.isRevoked ? undefined : old, stop);
      // The pair is complete: the next run installs it.
      if (stop.aborted) return;
      if (standing === 'revoked') throw refusal('key_revoked');
      await pairs.publishNext();
      this.#replaced(await pairs.current(), tokenDigest, standing);
    } catch (error) {
      if (!stop.aborted) await this.#failed(failureOf(error), tokenDigest);
    }
  }

  async #enrollNext(stop: AbortSignal): Promise<void> {
    const { enroll, pairs } = this.#ports;
    const { pollIntervalMs, timeoutMs } = this.#options;
    const isPending = (await pairs.nextState())?.attempt?.kind === 'submitted';
    const patientMs = Math.max(pollIntervalMs, Math.min(PENDING_POLL_MS, timeoutMs));
    await enroll({
      keyFile: await pairs.nextKeyFile(),
      pollIntervalMs: isPending ? patientMs : pollIntervalMs,
      stop,
      tell: (event) => this.#underWay(troubleOf(event)),
    });
  }

  /** Records what the current attempt waits for. */
  #underWay(trouble: Trouble | undefined): void {
    if (trouble === undefined) return;
    const isNews = trouble.text !== this.#standing.trouble?.text;
    this.#standing = { ...this.#standing, trouble };
    if (isNews) this.#ports.tell({ kind: 'under_way', trouble });
  }

  /** Waits until every verifier has the next key, or for as long as the installed key allows. */
  async #propagated(old: KeyPair | undefined, stop: AbortSignal): Promise<KeyStanding> {
    const { now, pairs, random, sleep, standingOf } = this.#ports;
    const next = await pairs.next();
    if (next === undefined) throw usageError('enrollment_missing', 'the enrolled key cannot be read back');
    const begin = now();
    const waitMs = propagationWaitMs(next.record, old?.record, begin.wallMs);
    const pacing = new Pacing(this.#options.pollIntervalMs, random);
    for (;;) {
      const standing = await standingOf(next, stop);
      const { monotonicMs, wallMs } = now();
      // Uses both clocks: the monotonic clock stops during machine sleep, the wall clock may be set back.
      const passedMs = Math.max(monotonicMs - begin.monotonicMs, wallMs - begin.wallMs);
      const isKnown = standing === 'ready' || standing === 'revoked';
      if (isKnown || stop.aborted || !(passedMs < waitMs)) return standing;
      this.#underWay(NOT_PROPAGATED);
      await sleep(Math.min(pacing.next(), waitMs - passedMs), stop);
    }
  }

  #replaced(pair: KeyPair | undefined, tokenDigest: string | undefined, standing: KeyStanding): void {
    if (pair === undefined) throw usageError('enrollment_missing', 'the key in place cannot be read back');
    const { now, random, tell } = this.#ports;
    this.#succeeded();
    this.#startsAnew = false;
    this.#spread = random();
    this.#enrolledWithDigest = tokenDigest;
    this.#standing = {
      record: pair.record,
      isRevoked: false,
      trouble: undefined,
      isUnconfirmed: standing !== 'ready',
    };
    this.#askStandingAtMs = now().monotonicMs + this.#untilStandingMs;
    tell({ kind: 'replaced', record: pair.record, standing });
  }

  async #failed(failure: EnrollmentFailure, tokenDigest: string | undefined): Promise<void> {
    const { now, pairs, random, tell } = this.#ports;
    const { code, isKeySpent, kind, retryAfterMs, text } = failure;
    // Keep the key while a recorded attempt may still succeed.
    if (isKeySpent && (await pairs.nextState())?.attempt === undefined) {
      await pairs.dropNext().catch(() => undefined);
    }
    this.#setbacks = this.#setback?.kind === kind ? this.#setbacks + 1 : 1;
    const waitMs = setbackWaitMs({ kind, count: this.#setbacks, retryAfterMs }, random());
    this.#setback = { kind, code, tokenDigest, notBeforeMonotonicMs: now().monotonicMs + waitMs };
    this.#lastFault = { code, text };
    this.#standing = { ...this.#standing, trouble: this.#lastFault };
    tell({ kind: 'failed', failure, waitMs });
  }

  #succeeded(): void {
    this.#setback = undefined;
    this.#setbacks = 0;
  }

  /** Records what a due renewal waits for; undefined clears it. */
  #heldUpBy(why: string | undefined, token: SeenToken): void {
    if (why === undefined) {
      this.#succeeded();
      this.#standing = { ...this.#standing, trouble: undefined };
      return;
    }
    const isTold = why === this.#standing.trouble?.code || why === this.#setback?.code;
    const text = why === 'token_not_renewed' ? NOT_RENEWED : token.text;
    const trouble = why === this.#setback?.code ? this.#lastFault : { code: why, text };
    this.#standing = { ...this.#standing, trouble };
    if (!isTold) this.#ports.tell({ kind: 'held_up', trouble: { code: why, text } });
  }

  #see(record: EnrolledKeyRecord | undefined): void {
    const isSame = record?.key.keyId === this.#standing.record?.key.keyId;
    const known = isSame ? this.#standing : { ...this.#standing, isRevoked: false, isUnconfirmed: false };
    this.#standing = { ...known, record };
  }

  /** Asks Control at an interval whether the key was revoked. Verifiers deny a revoked key, so the keeper enrolls a new one. */
  async #askWhetherRevoked(pair: KeyPair, stop: AbortSignal): Promise<void> {
    const { now, standingOf, tell } = this.#ports;
    const { isRevoked } = this.#standing;
    if (isRevoked || now().monotonicMs < this.#askStandingAtMs || !isUsable(pair.record, now().wallMs))
      return;
    const standing = await standingOf(pair, stop);
    if (standing !== 'unknown') this.#standing = { ...this.#standing, isUnconfirmed: standing !== 'ready' };
    if (standing === 'revoked') {
      this.#standing = { ...this.#standing, isRevoked: true };
      tell({ kind: 'revoked', record: pair.record });
    }
    this.#askStandingAtMs = now().monotonicMs + this.#untilStandingMs;
  }

  get #untilStandingMs(): number {
    const everyMs = this.#standing.isUnconfirmed ? UNCONFIRMED_STANDING_EVERY_MS : STANDING_EVERY_MS;
    return everyMs * (1 + this.#ports.random());
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

function digestOf(sight: TokenSight): string | undefined {
  return sight.kind === 'token' ? sight.digest : undefined;
}
