/** One enrollment run: its request, dependencies, persisted state and remaining time. */
import type { ControlCall } from './control-client.ts';
import type { EnrollPorts, EnrollRequest } from './enroll-ports.ts';
import type { Attempt, EnrolledKeyRecord, EnrollmentState } from './enrollment-state.ts';

/** A last request may start this much after the deadline. */
const MIN_REQUEST_MS = 250;

export class EnrollRun {
  readonly request: EnrollRequest;
  readonly ports: EnrollPorts;
  readonly #startMs: number;
  #state: EnrollmentState;

  constructor(request: EnrollRequest, ports: EnrollPorts, state: EnrollmentState) {
    this.request = request;
    this.ports = ports;
    this.#startMs = ports.monotonicMs();
    this.#state = state;
  }

  get attempt(): Attempt | undefined {
    return this.#state.attempt;
  }

  get enrolled(): EnrolledKeyRecord | undefined {
    return this.#state.enrolled;
  }

  get isStopped(): boolean {
    return this.ports.stop.aborted;
  }

  get elapsedMs(): number {
    return this.ports.monotonicMs() - this.#startMs;
  }

  get remainingMs(): number {
    return this.request.timeoutMs - this.elapsedMs;
  }

  get call(): ControlCall {
    const timeoutMs = Math.max(Math.min(this.request.requestTimeoutMs, this.remainingMs), MIN_REQUEST_MS);
    return { timeoutMs: Math.ceil(timeoutMs), stop: this.ports.stop };
  }

  /** Saves the state with this attempt, or without one. */
  async saveAttempt(attempt: Attempt | undefined): Promise<void> {
    await this.#save({ ...this.#state, attempt });
  }

  /** As {@link saveAttempt} without an attempt, and records that the abandoned one may have succeeded. */
  async giveUpAttempt(): Promise<void> {
    await this.#save({ ...this.#state, attempt: undefined, mayBeIssued: true });
  }

  /** Saves the issued key, which completes the attempt. */
  async saveKey(enrolled: EnrolledKeyRecord): Promise<void> {
    await this.#save({ ...this.#state, enrolled, attempt: undefined });
  }

  async #save(state: EnrollmentState): Promise<void> {
    await this.ports.states.save(state);
    this.#state = state;
  }

  sleep(waitMs: number): Promise<void> {
    return this.ports.sleep(waitMs, this.ports.stop);
  }
}
