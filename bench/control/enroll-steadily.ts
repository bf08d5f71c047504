/**
 * Workloads that enroll at a steady rate, without waiting for earlier enrollments: challenge and submission over HTTP with the
 * client's own code. Keys and workload tokens are made in advance.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { submissionOf, Workload, WorkloadConnection } from '../../test/support/control/workload.ts';
import type { MeasuredSite } from './measured-site.ts';

export interface Issued {
  readonly keyId: string;
  /** When the submission had its answer, of `performance.now()`. */
  readonly answeredMs: number;
}

interface Ready {
  readonly workload: Workload;
  readonly token: string;
}

const CONNECTIONS = 20;

export class SteadyEnrollments {
  readonly #ready: readonly Ready[];
  readonly #connections: readonly WorkloadConnection[];

  constructor({ stage, policy }: MeasuredSite, count: number) {
    this.#ready = Array.from({ length: count }, () => ({
      workload: new Workload(policy, stage.controlUrl),
      token: stage.workloadToken('billing'),
    }));
    this.#connections = Array.from({ length: CONNECTIONS }, () => new WorkloadConnection(stage.controlUrl));
  }

  /** @throws Error when one is refused or not answered */
  async run(perSecond: number): Promise<readonly Issued[]> {
    const startedMs = performance.now();
    const results = this.#ready.map(async (ready, index) => {
      await delay(Math.max(0, startedMs + (index * 1000) / perSecond - performance.now()));
      const connection = this.#connections[index % CONNECTIONS];
      if (connection === undefined) throw new Error('no connection');
      return enroll(ready, connection);
    });
    const issued = await Promise.all(results);
    await Promise.all(this.#connections.map((connection) => connection.close()));
    return issued;
  }
}

async function enroll({ workload, token }: Ready, connection: WorkloadConnection): Promise<Issued> {
  const challenge = await workload.challenge(connection);
  if (challenge === undefined) throw new Error('a challenge was not answered');
  const verdict = await workload.submit(submissionOf(challenge, token), connection);
  const answeredMs = performance.now();
  if (verdict.kind !== 'done') throw new Error(`a submission: ${verdict.kind}`);
  const { value } = verdict;
  if (value.state !== 'issued') throw new Error(`an enrollment is ${value.state}`);
  return { keyId: value.key.keyId, answeredMs };
}
