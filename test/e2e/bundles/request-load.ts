/** A continuous load of requests of every kind on the current verifier; each answer is stored under its decision. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CheckResponse } from '../../../src/process/ext-authz/response-messages.ts';
import { type CheckClient, openCheckClient, outcomeOfResponse } from '../../support/harness/check-client.ts';
import { REQUEST_KINDS, type RequestKind, type RequestSigner } from './requests.ts';

export interface Answered {
  readonly kind: RequestKind;
  /** `allowed`, or `reason/detail status`. */
  readonly outcome: string;
  /** The revision, as the upstream sees it; undefined for a denial. */
  readonly revision: number | undefined;
  /** Number of the verifier, from 1. */
  readonly verifier: number;
}

const IN_FLIGHT = 6;
/** Leaves room on the machine for what the load is to disturb. */
const PAUSE_MS = 8;

export class RequestLoad {
  readonly answers = new Map<string, Answered>();
  /** Highest revision that an answer named. */
  highestRevision = 0;
  /** Requests without an answer while a verifier was to answer. */
  readonly failures: string[] = [];
  /** Requests without an answer because their verifier was killed. */
  unanswered = 0;
  readonly #signer: RequestSigner;
  #client: CheckClient | undefined;
  #verifier = 0;
  #isRunning = false;
  #workers: Promise<void>[] = [];

  constructor(signer: RequestSigner) {
    this.#signer = signer;
  }

  start(): void {
    this.#isRunning = true;
    this.#workers = Array.from({ length: IN_FLIGHT }, (_, number) => this.#work(number));
  }

  /** @param address `HOST:PORT` */
  pointTo(address: string): void {
    this.#client?.close();
    this.#verifier += 1;
    this.#client = openCheckClient(address);
  }

  /** From now on no verifier is expected to answer. */
  pointNowhere(): void {
    this.#client?.close();
    this.#client = undefined;
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    await Promise.all(this.#workers);
    this.#client?.close();
  }

  async #work(number: number): Promise<void> {
    for (let turn = number; this.#isRunning; turn++) {
      const client = this.#client;
      if (client !== undefined)
        await this.#send(client, REQUEST_KINDS[turn % REQUEST_KINDS.length] ?? 'paired');
      await sleep(PAUSE_MS);
    }
  }

  async #send(client: CheckClient, kind: RequestKind): Promise<void> {
    const verifier = this.#verifier;
    try {
      this.#keep(kind, verifier, await client.checkBytes(this.#signer.request(kind)));
    } catch (error) {
      if (client === this.#client) this.failures.push(error instanceof Error ? error.message : String(error));
      else this.unanswered += 1;
    }
  }

  #keep(kind: RequestKind, verifier: number, response: CheckResponse): void {
    const headers = new Map(
      response.ok_response?.headers.map(({ header }) => [header.key.toLowerCase(), header.value]),
    );
    const named = headers.get('x-proofgate-bundle-revision');
    const revision = named === undefined ? undefined : Number(named);
    const decisionId = headers.get('x-proofgate-decision-id') ?? decisionIdOf(response);
    this.answers.set(decisionId, { kind, outcome: outcomeOfResponse(response), revision, verifier });
    this.highestRevision = Math.max(this.highestRevision, revision ?? 0);
  }
}

function decisionIdOf({ denied_response }: CheckResponse): string {
  const problem: { readonly decision_id?: string } = JSON.parse(denied_response?.body ?? '{}');
  return problem.decision_id ?? 'none';
}
