/** Two verifier processes with one bundle on one replay store, and the cleanup that they need. */
import { ReplayCampaign } from './campaign.ts';
import { ProofSource } from './proof-source.ts';
import { type ReplayVerifier, type ReplayVerifierOptions, startReplayVerifier } from './verifier-process.ts';

export class ReplayStage {
  readonly source: ProofSource;
  readonly verifiers: ReplayVerifier[] = [];
  readonly #stops: (() => Promise<void>)[] = [];

  private constructor(source: ProofSource) {
    this.source = source;
  }

  static async set(source?: ProofSource): Promise<ReplayStage> {
    return new ReplayStage(source ?? (await ProofSource.create()));
  }

  /** Whatever is noted later ends earlier. */
  endsWith(stop: () => Promise<void>): void {
    this.#stops.unshift(stop);
  }

  async startVerifier(options: ReplayVerifierOptions): Promise<ReplayVerifier> {
    const verifier = await startReplayVerifier(this.source, options);
    this.verifiers.push(verifier);
    this.endsWith(() => verifier.stop());
    return verifier;
  }

  /** @param more for both */
  async startTwo(replay: string, more: Partial<ReplayVerifierOptions> = {}): Promise<void> {
    for (const name of ['north', 'south']) await this.startVerifier({ ...more, name, replay });
  }

  campaign(): ReplayCampaign {
    return new ReplayCampaign({ source: this.source, targets: this.verifiers.map(({ target }) => target) });
  }

  /** Everything, whatever goes wrong with some of it. @throws the first thing that did */
  async strike(): Promise<void> {
    const failures: unknown[] = [];
    for (const stop of this.#stops.splice(0)) {
      await stop().catch((error: unknown) => failures.push(error));
    }
    await this.source.remove();
    if (failures.length > 0) throw failures[0];
  }
}
