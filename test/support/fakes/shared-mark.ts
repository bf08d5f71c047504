/** The mark that verifiers share, in memory: it keeps the port's contract, and can be made to fail. */
import {
  type Mark,
  type SharedMark,
  SharedMarkError,
} from '../../../src/verifier/loading/state/shared-mark.ts';

export class FakeSharedMark implements SharedMark {
  readonly #marks = new Map<string, Mark | 'unreadable'>();
  /** Why the mark is unavailable; undefined while it answers. */
  problem: string | undefined;
  /** Each attempted raise, in order. */
  readonly raised: number[] = [];
  reads = 0;

  async read(authSite: string, _timeoutMs: number): Promise<Mark | undefined> {
    this.reads++;
    return this.#readable(authSite);
  }

  async raise(authSite: string, mark: Mark, _timeoutMs: number): Promise<Mark> {
    this.raised.push(mark.revision);
    const kept = this.#readable(authSite);
    const after = kept === undefined || mark.revision > kept.revision ? mark : kept;
    this.#marks.set(authSite, after);
    return after;
  }

  async reset(authSite: string, _timeoutMs: number): Promise<Mark | 'unreadable' | undefined> {
    this.#assertAnswers();
    const kept = this.#marks.get(authSite);
    this.#marks.delete(authSite);
    return kept;
  }

  async storeId(): Promise<string> {
    this.#assertAnswers();
    return 'fake-replay-store-0000';
  }

  async close(): Promise<void> {
    this.problem = 'closed';
  }

  /** Sets the stored mark directly, past the port's rules. */
  put(authSite: string, mark: Mark | 'unreadable'): void {
    this.#marks.set(authSite, mark);
  }

  #readable(authSite: string): Mark | undefined {
    this.#assertAnswers();
    const kept = this.#marks.get(authSite);
    if (kept === 'unreadable') throw new SharedMarkError('corrupt', 'what is kept is no mark');
    return kept;
  }

  #assertAnswers(): void {
    if (this.problem !== undefined) throw new SharedMarkError('unavailable', this.problem);
  }
}
