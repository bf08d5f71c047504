/**
 * Continuous load with faults in the middle, which presents accepted proofs again and again. Every answer goes to the ledger;
 * the campaign itself judges nothing.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { waitFor } from '../../support/wait.ts';
import { AcceptLedger } from './accept-ledger.ts';
import { type Proof, type ProofSource, SKEW_SECONDS, systemSeconds } from './proof-source.ts';
import type { Target } from './targets.ts';

const WORKERS = 4;
/** Between one worker's proofs: verifiers shall be busy, and the machine not only with them (`make soak`: more often). */
const PACE_MS = Number(process.env.PROOFGATE_TEST_PACE_MS ?? 64);
/** After a proof that no target accepts: most of a fault is such waiting. */
const REFUSED_PACE_MS = 4 * PACE_MS;
/** Between two rounds that present everything again; workers present old proofs meanwhile. */
export const ROUND_PACE_MS = 32 * PACE_MS;
const PRESENTED_AT_ONCE = 32;
const LATEST_PRESENTED = 300;
const OLDER_PRESENTED = 100;
/** Minimum number of proofs that only the primary accepts before it is lost. */
const LEAST_LOST = 20;
/** The primary keeps accepting for 2 s: `min-replicas-max-lag`. */
const CUT_MS = 6_000;
const MOST_CUTS = 3;
const ACCEPTS_BEFORE_A_FAULT = 100;
const FENCED = 'replay_store_unavailable/fenced 503';

export interface CampaignOptions {
  readonly source: ProofSource;
  readonly targets: readonly Target[];
  /** The clock by which callers sign. Default: the system's. */
  readonly nowSeconds?: () => number;
  readonly ledger?: AcceptLedger;
}

export interface Recovery {
  readonly fault: string;
  /** From the end of the fault until a fresh proof was accepted at every target. */
  readonly seconds: number;
  /** Proofs made after the fault that were refused because they might have been consumed before. */
  readonly fenced: number;
}

export class ReplayCampaign {
  readonly ledger: AcceptLedger;
  readonly recoveries: Recovery[] = [];
  readonly #source: ProofSource;
  readonly targets: readonly Target[];
  readonly #nowSeconds: () => number;
  /** All that may have been consumed, oldest first. */
  readonly #presented: Proof[] = [];
  #isLoading = false;

  constructor({ source, targets, ledger = new AcceptLedger(), nowSeconds = systemSeconds }: CampaignOptions) {
    this.#source = source;
    this.targets = targets;
    this.ledger = ledger;
    this.#nowSeconds = nowSeconds;
  }

  /** Load goes on until `work` is done. */
  async underLoad<T>(work: () => Promise<T>): Promise<T> {
    this.#isLoading = true;
    const workers = Array.from({ length: WORKERS }, () => this.#work());
    try {
      return await work();
    } finally {
      this.#isLoading = false;
      await Promise.all(workers);
    }
  }

  /** Strikes in the middle of accepted requests; resolves when all targets accept again and every old proof was tried again. */
  async survive(fault: string, strike: () => Promise<void>): Promise<Recovery> {
    await this.someAccepts();
    await strike();
    let isServing = false;
    const again = this.#presentUntil(() => isServing);
    const recovery = await this.#recovery(fault).finally(() => {
      isServing = true;
    });
    await again;
    await this.presentAgain();
    this.recoveries.push(recovery);
    return recovery;
  }

  /** Resolves when some more were accepted. */
  async someAccepts(count = ACCEPTS_BEFORE_A_FAULT, mostMs?: number): Promise<void> {
    const enough = this.ledger.acceptCount + count;
    await waitFor('accepted proofs', () => (this.ledger.acceptCount >= enough ? true : undefined), mostMs);
  }

  /**
   * Repeats a cut until the isolated primary accepts some proofs while it still may. On a busy machine none may arrive in that
   * time: then `mend` repairs the network, and the cut is repeated.
   * @returns the result of the last `cut`
   */
  async acceptsBehindCut<T>(cut: () => Promise<T>, mend: () => Promise<void>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      const cutOff = await cut();
      try {
        await this.someAccepts(LEAST_LOST, CUT_MS);
        return cutOff;
      } catch (error) {
        await mend();
        if (tries === MOST_CUTS) throw error;
        await this.someAccepts();
      }
    }
  }

  /**
   * Resolves when each target has accepted a proof that a right clock made for it: one from a clock that is ahead passes a
   * fence earlier. @returns outcomes until then
   */
  async untilServing(targets: readonly Target[] = this.targets): Promise<readonly string[]> {
    const outcomes: string[] = [];
    await Promise.all(
      targets.map((target) =>
        waitFor(`${target.name} to accept`, async () => {
          const proof = this.#source.mint({ issuedAtSeconds: this.#nowSeconds() });
          const outcome = await this.#present(proof, target);
          outcomes.push(outcome);
          return outcome === 'allowed' ? true : undefined;
        }),
      ),
    );
    return outcomes;
  }

  /** Resolves when the target has refused a proof that was made for it. */
  async untilRefusing(target: Target): Promise<void> {
    await waitFor(`${target.name} to refuse`, async () => {
      const outcome = await this.#present(this.#mint(), target);
      return outcome === 'allowed' ? undefined : true;
    });
  }

  /** Names of the targets that accept a proof made for them while `withinMs` pass. */
  async accepting(withinMs: number): Promise<readonly string[]> {
    const attempts = this.targets.map(async (target) => {
      const accepted = async () =>
        (await this.#present(this.#mint(), target)) === 'allowed' ? target.name : undefined;
      return waitFor(`${target.name} to accept`, accepted, withinMs).catch(() => undefined);
    });
    return (await Promise.all(attempts)).filter((name) => name !== undefined);
  }

  /**
   * Presents once more at every target, the latest first: those are the ones that a fault may have lost. Of what was presented
   * before the latest few hundred, some, chosen anew each time.
   */
  presentAgain(): Promise<void> {
    const live = this.#live();
    const older = live.slice(0, -LATEST_PRESENTED);
    const chosen = Array.from({ length: Math.min(older.length, OLDER_PRESENTED) }, () => pick(older));
    return this.#presentAll([
      ...chosen.filter((proof) => proof !== undefined),
      ...live.slice(-LATEST_PRESENTED),
    ]);
  }

  /** Presents everything that can still be accepted once more at every target. */
  presentEverything(): Promise<void> {
    return this.#presentAll(this.#live());
  }

  /** Of those that were accepted. */
  latest(count: number): readonly Proof[] {
    return this.#presented.filter(({ jti }) => this.ledger.isAccepted(jti)).slice(-count);
  }

  presentOne(proof: Proof, target: Target): Promise<string> {
    return this.#record(proof, target);
  }

  async #presentAll(proofs: readonly Proof[]): Promise<void> {
    const next = proofs.toReversed().values();
    const presentRest = async () => {
      for (const proof of next) {
        // On a busy machine the proof may have expired before this.
        if (this.#isLive(proof)) await Promise.all(this.targets.map((target) => this.#record(proof, target)));
      }
    };
    await Promise.all(Array.from({ length: PRESENTED_AT_ONCE }, presentRest));
  }

  async #recovery(fault: string): Promise<Recovery> {
    const struckMs = performance.now();
    const outcomes = await this.untilServing();
    const seconds = (performance.now() - struckMs) / 1000;
    return { fault, seconds, fenced: outcomes.filter((outcome) => outcome === FENCED).length };
  }

  async #presentUntil(isEnough: () => boolean): Promise<void> {
    while (!isEnough()) {
      await this.presentAgain();
      await pause(ROUND_PACE_MS);
    }
  }

  async #work(): Promise<void> {
    while (this.#isLoading) {
      const proof = this.#mint();
      const isAccepted = (await this.#presentTo(this.targets, proof)).includes('allowed');
      const old = pick(this.#presented);
      const target = pick(this.targets);
      if (old !== undefined && target !== undefined && this.#isLive(old)) await this.#record(old, target);
      await pause(isAccepted ? PACE_MS : REFUSED_PACE_MS);
    }
  }

  /** For the first time. What every target fences is consumed by none, and is not presented again. */
  async #presentTo(targets: readonly Target[], proof: Proof): Promise<readonly string[]> {
    this.#presented.push(proof);
    const outcomes = await Promise.all(targets.map((target) => this.#record(proof, target)));
    if (outcomes.every((outcome) => outcome === FENCED) && !this.ledger.isAccepted(proof.jti)) {
      this.#presented.splice(this.#presented.lastIndexOf(proof), 1);
    }
    return outcomes;
  }

  async #present(proof: Proof, target: Target): Promise<string> {
    const [outcome = ''] = await this.#presentTo([target], proof);
    return outcome;
  }

  async #record(proof: Proof, target: Target): Promise<string> {
    const outcome = await target.present(proof);
    this.ledger.record(proof.jti, target.name, outcome);
    return outcome;
  }

  /** Signed by a clock that is right, or as far ahead as it may be: the latter outlive a fence that is too short. */
  #mint(): Proof {
    const aheadSeconds = Math.random() < 0.5 ? 0 : SKEW_SECONDS;
    return this.#source.mint({ issuedAtSeconds: this.#nowSeconds() + aheadSeconds });
  }

  #live(): Proof[] {
    return this.#presented.filter((proof) => this.#isLive(proof));
  }

  /** The others would be refused for their age. */
  #isLive({ expiresAtSeconds }: Proof): boolean {
    return this.#nowSeconds() < expiresAtSeconds - SKEW_SECONDS;
  }
}

function pick<T>(all: readonly T[]): T | undefined {
  return all[Math.floor(Math.random() * all.length)];
}
