/**
 * The bundle that the state directory stores: its base is loaded at the start, steps are recorded before they are used,
 * and each whole bundle that is loaded becomes the base.
 * Source: docs/bundle.md "The state directory".
 */
import { createHash, type Hash } from 'node:crypto';
import { join } from 'node:path';
import { bundleError } from '../../../bundle/format/bundle-error.ts';
import type { ChainPosition } from '../../../bundle/format/chain.ts';
import { BUNDLE_FILE } from '../../../bundle/format/file-names.ts';
import { fileNotWritten, writeDurably } from '../../../bundle/format/files.ts';
import type { ResolvedDirectory } from '../../../bundle/format/local-directory.ts';
import type { OpenedBundle } from '../../../bundle/format/open-bundle.ts';
import { type StepDocument, stepKindOf } from '../../../bundle/format/open-step.ts';
import type { KeyShardContent } from '../../../bundle/format/schema.ts';
import { STEP_LOG_FILE } from '../../../bundle/format/step-log.ts';
import type { AcceptedChain, FoundChain, StepRecord } from '../found-chain.ts';
import type { IncomingBase, StateDirectory } from './state-directory.ts';

export class PersistedBundle implements StepRecord {
  readonly #state: StateDirectory;
  #base: ChainPosition | undefined;
  #shards: readonly KeyShardContent[] = [];
  /** Position of each step in the log, in order. */
  #positions: ChainPosition[] = [];

  constructor(state: StateDirectory) {
    this.#state = state;
  }

  /** Position of the stored whole bundle; undefined until a stored one has been loaded. */
  get base(): ChainPosition | undefined {
    return this.#base;
  }

  /** Shards of the base. */
  get shards(): readonly KeyShardContent[] {
    return this.#shards;
  }

  /** Whether so many steps have accumulated that downloading a newer base is worthwhile. */
  get isLong(): boolean {
    const current = this.#state.current;
    if (current === undefined || this.#base === undefined) return false;
    return current.log.count > MOST_STEPS || current.log.sizeBytes > current.sizeBytes;
  }

  /**
   * The chain that the previous run stored. May be called again while nothing is loaded. @throws BundleError when it
   * cannot be read
   */
  async found(): Promise<FoundChain | undefined> {
    const stored = this.#state.current ?? (await this.#state.open());
    if (stored === undefined) return undefined;
    const { files, log } = stored;
    return {
      source: 'state',
      files,
      steps: async function* () {
        for (let index = 0; index < log.count; index++) {
          const bytes = await log.read(index);
          const file = `${STEP_LOG_FILE}:${index + 1}`;
          yield { kind: stepKindOf(bytes, file), file, bytes };
        }
      },
      keep: async ({ opened, positions }) => {
        await log.truncate(positions.length);
        this.#isBasedOn(opened, positions);
      },
    };
  }

  /** The statement that is stored with the base. */
  async freshness(): Promise<Buffer | undefined> {
    return this.#state.current?.files.readFreshness();
  }

  /** @throws BundleError `file_not_written` */
  async keepFreshness(statement: Buffer): Promise<void> {
    await this.#state.writeFreshness(statement);
  }

  newBase(): Promise<IncomingBase> {
    return this.#state.newBase();
  }

  discard(incoming: IncomingBase): Promise<void> {
    return this.#state.discard(incoming);
  }

  /** Files of the current base; a new one may reuse its shards. */
  get currentFiles(): ResolvedDirectory | undefined {
    return this.#state.current?.files;
  }

  /** For {@link FoundChain.keep}: makes a downloaded whole bundle the base. */
  async keepDownloaded(
    incoming: IncomingBase,
    { opened, positions }: AcceptedChain,
    documents: readonly StepDocument[],
  ): Promise<void> {
    const steps = documents.slice(0, positions.length).map(({ bytes }) => bytes);
    await this.#state.install(incoming, opened.position, steps);
    this.#isBasedOn(opened, positions);
  }

  #isBasedOn({ position, content }: OpenedBundle, positions: readonly ChainPosition[]): void {
    this.#base = position;
    this.#shards = content.key_shards ?? [];
    this.#positions = [...positions];
  }

  /** For {@link FoundChain.keep}: copies a bundle from another directory and makes it the base. */
  async keepCopy(files: ResolvedDirectory, steps: FoundChain['steps'], chain: AcceptedChain): Promise<void> {
    const incoming = await this.newBase();
    try {
      const { opened, positions } = chain;
      await writeFile(incoming, BUNDLE_FILE, chain.bytes);
      for (const shard of opened.content.key_shards ?? []) await copyShard(files, shard, incoming);
      const documents: StepDocument[] = [];
      for await (const step of steps(opened.position.revision)) {
        if (documents.length === positions.length) break;
        documents.push(step);
      }
      await this.keepDownloaded(incoming, chain, documents);
    } finally {
      await this.discard(incoming);
    }
  }

  /**
   * Installs a newer base of the loaded bundle: keeps the steps after it, drops those before it.
   * @returns false when it is not on the loaded chain
   * @throws BundleError `file_not_written`: the current base then stays
   */
  async rebase(incoming: IncomingBase, opened: OpenedBundle): Promise<boolean> {
    const current = this.#state.current;
    const base = opened.position;
    const at = this.#positions.findIndex(
      ({ revision, head }) => revision === base.revision && head === base.head,
    );
    if (current === undefined || at === -1) return false;
    const steps: Buffer[] = [];
    for (let index = at + 1; index < this.#positions.length; index++)
      steps.push(await current.log.read(index));
    const statement = await this.freshness().catch(() => undefined);
    await this.#state.install(incoming, base, steps);
    this.#isBasedOn(opened, this.#positions.slice(at + 1));
    if (statement !== undefined) await this.keepFreshness(statement);
    return true;
  }

  async append(steps: Parameters<StepRecord['append']>[0]): Promise<void> {
    const current = this.#state.current;
    if (current === undefined || this.#base === undefined) {
      throw bundleError('file_not_written', STEP_LOG_FILE, '', 'there is no base that it could follow');
    }
    await current.log.append(steps.map(({ document }) => document));
    this.#positions.push(...steps.map(({ position }) => position));
  }

  async dropLast(count: number): Promise<void> {
    this.#positions.length = Math.max(0, this.#positions.length - count);
    await this.#state.current?.log.truncate(this.#positions.length);
  }

  close(): Promise<void> {
    return this.#state.close();
  }
}

/** Number of steps on a base above which a newer base is fetched. */
const MOST_STEPS = 1000;

async function copyShard(
  files: ResolvedDirectory,
  { file, sha256 }: KeyShardContent,
  incoming: IncomingBase,
): Promise<void> {
  const shard = await files.readShard(file);
  const hash = createHash('sha256');
  try {
    await writeDurably(join(incoming.path, file), tapped(shard.chunks(), hash));
  } catch (error) {
    throw fileNotWritten(error, file);
  } finally {
    await shard.close();
  }
  if (hash.digest('base64url') !== sha256) {
    throw bundleError('shard_mismatch', file, '', 'changed while it was being loaded');
  }
}

async function* tapped(chunks: AsyncIterable<Buffer>, hash: Hash): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    hash.update(chunk);
    yield chunk;
  }
}

async function writeFile({ path }: IncomingBase, file: string, bytes: Buffer): Promise<void> {
  await writeDurably(join(path, file), bytes).catch((error: unknown) => {
    throw fileNotWritten(error, file);
  });
}
