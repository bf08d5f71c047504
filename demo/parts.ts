/** The started parts, so that all of them are stopped and removed in every case, the last one first. */

/** A part or step that failed: one line that says which, why, and what to do. */
export class SetupError extends Error {
  /** Log lines that may show the cause. */
  readonly lookAt: readonly string[];

  constructor(part: string, cause: unknown, advice: string, lookAt: readonly string[] = []) {
    super(oneLine(`${part}: ${messageOf(cause)}${advice === '' ? '' : ` (${advice})`}`));
    this.name = 'SetupError';
    this.lookAt = lookAt;
  }
}

export interface PartOptions<T> {
  /** Names the part in errors. */
  readonly name: string;
  /** Advice for a failed start; empty when the error itself contains it. */
  readonly advice?: string;
  readonly start: () => Promise<T>;
  readonly stop: (started: T) => Promise<unknown>;
}

export class Parts {
  readonly #stops: { readonly name: string; readonly stop: () => Promise<unknown> }[] = [];
  #closed = false;

  /** @throws SetupError */
  async start<T>(options: PartOptions<T>): Promise<T> {
    const { name, start, stop, advice = '' } = options;
    if (this.#closed) throw new SetupError(name, 'the demo is being stopped', '');
    // Registered before it is up, so that an interruption in between leaves nothing behind.
    const started = start();
    const neverStarted = () => undefined;
    this.#stops.push({ name, stop: () => started.then(stop, neverStarted) });
    try {
      return await started;
    } catch (error) {
      throw new SetupError(name, error, advice);
    }
  }

  /** @returns one line for each part that did not come to an orderly end */
  async stopAll(): Promise<readonly string[]> {
    this.#closed = true;
    const problems: string[] = [];
    for (const { name, stop } of this.#stops.splice(0).reverse()) {
      try {
        await stop();
      } catch (error) {
        problems.push(oneLine(`${name}: ${messageOf(error)}`));
      }
    }
    return problems;
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const maxLineCharacters = 600;

function oneLine(text: string): string {
  const lines = text.split('\n').map((line) => line.trim());
  const joined = lines.filter((line) => line !== '').join(' | ');
  return joined.length <= maxLineCharacters ? joined : `${joined.slice(0, maxLineCharacters)}…`;
}
