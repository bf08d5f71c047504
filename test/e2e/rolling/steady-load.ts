/** Valid requests at a steady rate, each sent once; later each proof is presented again. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  headerValues,
  type WireClient,
  type WireRequest,
} from '../../../src/tools/conformance/wire/exchange.ts';

const SENDERS = 8;
const PAUSE_MS = Number(process.env.PROOFGATE_TEST_PACE_MS ?? 64);

export class SteadyLoad {
  /** The outcome of each request that did not pass. */
  readonly refused: string[] = [];
  /** Allowed, and not presented again yet. */
  readonly #used: WireRequest[] = [];
  readonly #sign: () => WireRequest | Promise<WireRequest>;
  readonly #client: WireClient;
  #isRunning = true;
  #sent = 0;
  readonly #senders: readonly Promise<void>[];

  /** @param sign a new request with a proof of its own */
  constructor(sign: () => WireRequest | Promise<WireRequest>, client: WireClient) {
    this.#sign = sign;
    this.#client = client;
    this.#senders = Array.from({ length: SENDERS }, () => this.#send());
  }

  get sent(): number {
    return this.#sent;
  }

  async #send(): Promise<void> {
    while (this.#isRunning) {
      const request = await this.#sign();
      const outcome = await this.#outcome(request);
      this.#sent += 1;
      if (outcome === '200') this.#used.push(request);
      else this.refused.push(outcome);
      await sleep(PAUSE_MS);
    }
  }

  async #outcome(request: WireRequest): Promise<string> {
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
    const requests = this.#used.splice(0);
    await Promise.all(
      Array.from({ length: SENDERS }, async () => {
        for (let request = requests.pop(); request !== undefined; request = requests.pop()) {
          const outcome = await this.#outcome(request);
          // No decision: a store or a verifier was too busy. The proof is sent once more.
          if (outcome.startsWith('503 ')) requests.push(request);
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
