/**
 * Load on Control over real HTTP: workloads that enroll, some of which send each request twice at once, and operators who
 * approve, revoke and configure. Every answer goes to {@link Acknowledged}. A submission without an answer is kept and repeated
 * byte for byte, as a client would.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Enrollment } from '../../../../src/caller/enroll/control-answers.ts';
import type { Submission } from '../../../../src/caller/enroll/control-client.ts';
import type { Verdict } from '../../../../src/caller/service/service-verdict.ts';
import type { Resource } from '../../../../src/cli/ctl/client/control-answer.ts';
import type { ControlClient } from '../../../../src/cli/ctl/client/control-client.ts';
import { OperatorError } from '../../../../src/cli/ctl/client/operator-error.ts';
import type { ControlStage } from '../../../support/control/control-fixture.ts';
import { SITE_ID } from '../../../support/control/site-declaration.ts';
import { submissionOf, Workload, WorkloadConnection } from '../../../support/control/workload.ts';
import type { Acknowledged } from './acknowledged.ts';

export interface LoadOptions {
  readonly stage: ControlStage;
  /** Policies with automatic and manual approval. */
  readonly policies: { readonly billing: string; readonly reviewed: string };
  readonly acknowledged: Acknowledged;
}

interface Made {
  readonly workload: Workload;
  readonly submission: Submission;
}

const ENROLLERS = 5;
const IDLE_MS = 5;
const BETWEEN_CLIENTS_MS = 150;
/** One of this many issued keys is revoked. */
const KEYS_A_REVOCATION = 4;
/** Submissions that are kept to be made again although they were answered. */
const KEPT_ANSWERED = 3;

export class EnrollmentLoad {
  /** Sent without an answer. */
  unanswered: Made[] = [];
  /** Unexpected results: problems, and answers that contradict the API. */
  readonly faults: string[] = [];
  /** Answers to submissions that were made again. */
  repeated = 0;
  readonly #options: LoadOptions;
  readonly #pending: string[] = [];
  readonly #revocable: string[] = [];
  #answered: Made[] = [];
  #issued = 0;
  #names = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** Runs until Control is gone or the signal aborts. */
  async run(stop: AbortSignal): Promise<void> {
    const enrollers = Array.from({ length: ENROLLERS }, (_, index) => this.#enroll(index, stop));
    await Promise.all([...enrollers, this.operate(stop)]);
  }

  /** The operators alone. */
  async operate(stop: AbortSignal): Promise<void> {
    const api = await this.#options.stage.api();
    await Promise.all([this.#approve(api, stop), this.#revoke(api, stop), this.#configure(api, stop)]);
    await api.close();
  }

  /** Whether the operators have nothing left to decide. */
  get isIdle(): boolean {
    return this.#pending.length + this.#revocable.length === 0;
  }

  /** Repeats the submissions that got no answer, and the last ones that got one, these also with another token: none may create anything new. */
  async repeat(): Promise<void> {
    const { stage, acknowledged } = this.#options;
    const connection = new WorkloadConnection(stage.controlUrl);
    const answered = this.#answered;
    const made = [...this.unanswered, ...answered];
    this.unanswered = [];
    this.#answered = [];
    for (const each of made) {
      const verdict = await each.workload.submit(each.submission, connection);
      this.repeated += 1;
      if (verdict.kind === 'done') this.#done(each, verdict.value);
      else this.faults.push(`a submission made again: ${describe(verdict)}`);
    }
    for (const { workload, submission } of answered) {
      const other = submissionOf(submission, this.#token(workload));
      const verdict = await workload.submit(other, connection);
      if (verdict.kind === 'done') this.#done({ workload, submission }, verdict.value);
      else this.faults.push(`another submission of a challenge: ${describe(verdict)}`);
    }
    if (acknowledged.contradictions.length > 0) this.faults.push(...acknowledged.contradictions);
    await connection.close();
  }

  async #enroll(index: number, stop: AbortSignal): Promise<void> {
    const { stage, policies } = this.#options;
    const connection = new WorkloadConnection(stage.controlUrl);
    const second = new WorkloadConnection(stage.controlUrl);
    const policy = index === 0 ? policies.reviewed : policies.billing;
    // Every other workload sends each request twice at once.
    const connections = index % 2 === 0 ? [connection] : [connection, second];
    while (!stop.aborted && (await this.#enrollOne(policy, connections)));
    await Promise.all([connection.close(), second.close()]);
  }

  /** @returns whether Control is there */
  async #enrollOne(policy: string, connections: readonly WorkloadConnection[]): Promise<boolean> {
    const [first] = connections;
    if (first === undefined) return false;
    const workload = new Workload(policy, this.#options.stage.controlUrl);
    const challenge = await workload.challenge(first).catch((error: unknown) => {
      this.faults.push(String(error));
      return undefined;
    });
    if (challenge === undefined) return false;
    const made = { workload, submission: submissionOf(challenge, this.#token(workload)) };
    const verdicts = await Promise.all(connections.map((each) => workload.submit(made.submission, each)));
    for (const verdict of verdicts) {
      if (verdict.kind === 'done') this.#done(made, verdict.value);
      else if (verdict.kind === 'refused') this.faults.push(`a submission: ${verdict.code}`);
    }
    const isAnswered = verdicts.some(({ kind }) => kind === 'done');
    if (isAnswered) this.#answered = [...this.#answered.slice(1 - KEPT_ANSWERED), made];
    else this.unanswered.push(made);
    return verdicts.every(({ kind }) => kind === 'done');
  }

  #done({ workload, submission }: Made, answer: Enrollment): void {
    const { acknowledged } = this.#options;
    const before = acknowledged.mutations;
    acknowledged.submission(submission.challengeId, workload.thumbprint, answer);
    if (acknowledged.mutations === before) return;
    if (answer.state === 'issued') this.#noteIssued(answer.key.keyId);
    else this.#pending.push(answer.enrollmentId);
  }

  #noteIssued(keyId: string): void {
    this.#issued += 1;
    if (this.#issued % KEYS_A_REVOCATION === 0) this.#revocable.push(keyId);
  }

  #token(workload: Workload): string {
    const { stage, policies } = this.#options;
    return stage.workloadToken(workload.policy === policies.reviewed ? 'reviewed' : 'billing');
  }

  #approve(api: ControlClient, stop: AbortSignal): Promise<void> {
    return this.#repeatedly(stop, async () => {
      const enrollmentId = this.#pending.at(0);
      if (enrollmentId === undefined) return false;
      const { body } = await api
        .act(`/v1/enrollments/${enrollmentId}/approve`)
        .catch((error: unknown) => afterLostAnswer(error, () => api.get(`/v1/enrollments/${enrollmentId}`)));
      this.#pending.shift();
      if (typeof body.key_id !== 'string') throw new Error(`approved, but ${String(body.state)}`);
      this.#options.acknowledged.approval(enrollmentId, body.key_id);
      this.#noteIssued(body.key_id);
      return true;
    });
  }

  #revoke(api: ControlClient, stop: AbortSignal): Promise<void> {
    return this.#repeatedly(stop, async () => {
      const keyId = this.#revocable.at(0);
      if (keyId === undefined) return false;
      await api
        .act(`/v1/derived-keys/${keyId}/revoke`)
        .catch((error: unknown) => afterLostAnswer(error, () => api.get(`/v1/derived-keys/${keyId}`)));
      this.#revocable.shift();
      this.#options.acknowledged.revocation(keyId);
      return true;
    });
  }

  /** Adds one client and one grant at a time. */
  #configure(api: ControlClient, stop: AbortSignal): Promise<void> {
    const { acknowledged } = this.#options;
    const path = `/v1/sites/${SITE_ID}/clients`;
    return this.#repeatedly(stop, async () => {
      this.#names += 1;
      const clientId = `made-${this.#names}`;
      await api.create(path, { body: { client_id: clientId, subject: `client:${clientId}` } });
      acknowledged.client(clientId);
      await api.put(`${path}/${clientId}/grants/orders`, { body: { access: 'read' } });
      acknowledged.grant(clientId, 'orders');
      await delay(BETWEEN_CLIENTS_MS);
      return true;
    });
  }

  /** @param step returns whether there was anything to do */
  async #repeatedly(stop: AbortSignal, step: () => Promise<boolean>): Promise<void> {
    while (!stop.aborted) {
      try {
        if (!(await step())) await delay(IDLE_MS);
      } catch (error) {
        if (error instanceof OperatorError && error.kind === 'unreachable') return;
        this.faults.push(`an operator's request: ${String(error)}`);
        return;
      }
    }
  }
}

/** When the answer to a decision was lost, its repetition is rejected: the resource's state shows which decision it was. */
function afterLostAnswer(error: unknown, look: () => Promise<Resource>): Promise<Resource> {
  if (error instanceof OperatorError && error.code.endsWith('_state_conflict')) return look();
  throw error;
}

function describe(verdict: Verdict<Enrollment>): string {
  if (verdict.kind === 'done') return `done, ${verdict.value.state}`;
  return 'code' in verdict ? `${verdict.kind} ${verdict.code}` : `${verdict.kind} ${verdict.cause}`;
}
