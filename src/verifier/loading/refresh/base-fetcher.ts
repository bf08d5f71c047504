/**
 * Fetches whole bundles from Control: at once when nothing else continues the loaded bundle, and in the background when
 * too many steps have accumulated on the persisted base.
 * Source: docs/bundle.md "Distribution".
 */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BundleError } from '../../../bundle/format/bundle-error.ts';
import type { DistributedBundle } from '../../../bundle/format/distribution-contract.ts';
import type { StepDocument } from '../../../bundle/format/open-step.ts';
import type { Backoff } from '../backoff.ts';
import type { BundleLoader } from '../bundle-loader.ts';
import { PASSING } from '../passing-faults.ts';
import type { PersistedBundle } from '../state/persisted-chain.ts';
import type { IncomingBase } from '../state/state-directory.ts';
import type { ControlConnection } from './control-connection.ts';
import { retryAfterOf } from './control-failure.ts';
import { downloadBundle, type KnownFiles } from './download-bundle.ts';

export interface BaseFetcherOptions {
  readonly connection: Pick<ControlConnection, 'download'>;
  readonly loader: BundleLoader;
  readonly persisted: PersistedBundle;
  readonly signal: AbortSignal;
  readonly backoff: Backoff;
  readonly onFailure: (error: unknown) => void;
  readonly onFetched: (revision: number, bytesFetched: number) => void;
}

export class BaseFetcher {
  readonly #options: BaseFetcherOptions;
  #fetching: Promise<void> | undefined;
  /** Head of a base that could not replace the current one and is not retried. */
  #unfit: string | undefined;

  constructor(options: BaseFetcherOptions) {
    this.#options = options;
  }

  /**
   * Fetches a whole bundle and loads it.
   * @returns why it was rejected
   * @throws ControlFailure, BundleError when it could not be fetched or persisted
   */
  async replace(whole: DistributedBundle, steps: readonly StepDocument[]): Promise<BundleError | undefined> {
    return this.#fetch(whole, async (incoming) => this.#options.loader.replace(incoming, steps));
  }

  /** Returns at once. Fetches a newer base if that is worthwhile and no fetch is in progress. */
  offer(whole: DistributedBundle | undefined): void {
    const { persisted } = this.#options;
    const isNewer =
      whole !== undefined && whole.revision > (persisted.base?.revision ?? Number.MAX_SAFE_INTEGER);
    if (!isNewer || !persisted.isLong || whole.head === this.#unfit) return;
    this.#fetching ??= this.#rebase(whole).finally(() => {
      this.#fetching = undefined;
    });
  }

  /** Returns when no fetch is in progress. */
  async idle(): Promise<void> {
    await this.#fetching;
  }

  async #rebase(whole: DistributedBundle): Promise<void> {
    const { loader, backoff, onFailure, onFetched, signal } = this.#options;
    try {
      await this.#fetch(whole, async (incoming, bytesFetched) => {
        if (await loader.rebase(incoming)) onFetched(whole.revision, bytesFetched);
        else this.#unfit = whole.head;
      });
      backoff.reset();
    } catch (error) {
      if (signal.aborted) return;
      onFailure(error);
      if (error instanceof BundleError && !PASSING.has(error.code)) this.#unfit = whole.head;
      // The next response repeats the offer; this delays the next attempt.
      await sleep(backoff.failed(retryAfterOf(error)), undefined, { signal }).catch(() => undefined);
    }
  }

  async #fetch<T>(
    whole: DistributedBundle,
    use: (incoming: IncomingBase, bytesFetched: number) => Promise<T>,
  ): Promise<T> {
    const { connection, loader, persisted, signal } = this.#options;
    const incoming = await persisted.newBase();
    try {
      const known = await knownShards(persisted);
      const { bytesFetched } = await downloadBundle(whole, {
        connection,
        incoming,
        known,
        trust: loader.bundleTrust,
        signal,
      });
      return await use(incoming, bytesFetched);
    } finally {
      // A base that has become current was moved, so this removes only a failed one.
      await persisted.discard(incoming);
    }
  }
}

/** Files of the current base by SHA-256. The base was verified when it was loaded. */
async function knownShards({ base, currentFiles, shards }: PersistedBundle): Promise<KnownFiles> {
  if (base === undefined || currentFiles === undefined) return new Map();
  return new Map(shards.map(({ file, sha256 }) => [sha256, join(currentFiles.path, file)]));
}
