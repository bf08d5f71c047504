/** Keeps the shapes of unmatched paths in a file while requests come. Source: docs/operate/observe.md "Forgotten routes". */
import type { Snapshot } from '../../bundle/compile/snapshot.ts';
import { pathOf } from '../../protocol/request-target.ts';
import { ObservedPaths } from './observed-paths.ts';
import { type ObservedPathsContent, writeObservedPaths } from './observed-paths-file.ts';

export interface PathKeeperOptions {
  readonly file: string;
  readonly authSite: string;
  /** What the file holds already. */
  readonly kept: Pick<ObservedPathsContent, 'shapes' | 'others'> | undefined;
  /** The file could not be written; it is tried again. Called once until it can be. Must not throw. */
  readonly onFailed: (error: unknown) => void;
}

const WRITE_INTERVAL_MS = 10_000;

export class PathKeeper {
  readonly #options: PathKeeperOptions;
  readonly #paths: ObservedPaths;
  readonly #timer: NodeJS.Timeout;
  #isChanged = false;
  #hasFailed = false;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: PathKeeperOptions) {
    const { kept } = options;
    this.#options = options;
    this.#paths = new ObservedPaths(kept?.shapes, kept?.others);
    this.#timer = setInterval(() => this.#write(), WRITE_INTERVAL_MS).unref();
  }

  /** Call it with each bundle that is loaded. */
  follow({ routes }: Snapshot): void {
    this.#paths.follow(routes);
  }

  /** @param target canonical */
  add(method: string, target: string, nowMs: number): void {
    this.#paths.add(method, pathOf(target), nowMs);
    this.#isChanged = true;
  }

  /** Writes what is not written yet. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#write();
    await this.#writing;
  }

  #write(): void {
    this.#writing = this.#writing.then(async () => {
      if (!this.#isChanged) return;
      this.#isChanged = false;
      const { authSite, file } = this.#options;
      const { others } = this.#paths;
      try {
        await writeObservedPaths(file, { authSite, shapes: this.#paths.shapes(), others });
        this.#hasFailed = false;
      } catch (error) {
        this.#isChanged = true;
        if (!this.#hasFailed) this.#options.onFailed(error);
        this.#hasFailed = true;
      }
    });
  }
}
