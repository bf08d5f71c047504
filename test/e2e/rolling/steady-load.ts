/** Valid requests at a steady rate, each sent once; later each proof is presented again. */
import { setTimeout as sleep } from 'node:timers/promises';
import { headerValues, type WireClient } from '../../../src/tools/conformance/wire/exchange.ts';
import type { Proof, ProofSource } from '../replay/proof-source.ts';

const SENDERS = 8;
const PAUSE_MS = Number(process.env.PROOFGATE_TEST_PACE_MS ?? 64);

export class SteadyLoad {
  /** The outcome of each request that did not pass. */
  readonly refused: string[] = [];
  /** Allowed, and not presented again yet. */
  readonly #used: Proof[] = [];
  readonly #source: ProofSource;
  readonly #client: WireClient;
  #isRunning = true;
  #sent = 0;
  readonly #senders: readonly Promise<void>[];

  constructor(source: ProofSource, client: WireClient) {
    this.#source = source;
    this.#client = client;
    this.#senders = Array.from({ length: SENDERS }, () => this.#send());
  }

  get sent(): number {
    return this.#sent;
  }

  async #send(): Promise<void> {
    while (this.#isRunning) {
      const proof = this.#source.mint();
      const outcome = await this.#outcome(proof);
      this.#sent += 1;
      if (outcome === '200') this.#used.push(proof);
      else this.refused.push(outcome);
      await sleep(PAUSE_MS);
    }
  }

  async #outcome({ request }: Proof): Promise<string> {
    try {
      const { body, headers, status } = await this.#client.send(request);
      const detail = /"detail":"([^"]*)"/.exec(body.toString('utf8'))?.[1];
      return [status, ...headerValues(headers, 'x-proofgate-reason'), detail ?? ''].join(' ').trim();
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  /** Presents again whatever has passed so far, until it is decided. @returns how often each decision was made */
  async presentAgain(): Promise<ReadonlyMap<string, number>> {
    const answers = new Map<string, number>();
    const proofs = this.#used.splice(0);
    await Promise.all(
      Array.from({ length: SENDERS }, async () => {
        for (let proof = proofs.pop(); proof !== undefined; proof = proofs.pop()) {
          const outcome = await this.#outcome(proof);
          // No decision: a store or a verifier was too busy. The proof is sent once more.
          if (outcome.startsWith('503 ')) proofs.push(proof);
          else answers.set(outcome, (answers.get(outcome) ?? 0) + 1);
        }
      }),
    );
    return answers;
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    await Promise.all(this.#senders);
  }
}
