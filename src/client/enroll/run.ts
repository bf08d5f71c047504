/** One run of enrolling: its request, its ports, its state on disk and the time that is left to it. */
import type { ControlCall } from './control-client.ts';
import type { EnrollPorts, EnrollRequest } from './enroll-ports.ts';
import type { Attempt, EnrolledKeyRecord, EnrollmentState } from './enrollment-state.ts';

/** A last question may be this late. */
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

  /** Writes the state with this attempt, or with none. */
  async saveAttempt(attempt: Attempt | undefined): Promise<void> {
    await this.#save({ ...this.#state, attempt });
  }

  /** As {@link saveAttempt} with none, where something may have come of the one before. */
  async giveUpAttempt(): Promise<void> {
    await this.#save({ ...this.#state, attempt: undefined, mayBeIssued: true });
  }

  /** Writes the key that came of the attempt, which so ends. */
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
