/**
 * The bundle that the state directory of a verifier stores, if the verifier follows Control. A whole bundle (the base) lies
 * in a folder of its own, with the steps after it and the newest freshness statement. The link `current` names the base and
 * is replaced atomically when a new one is complete, so a start always finds a complete base. Steps are recorded before they
 * are used, and each whole bundle that is loaded becomes the base. Its content is not trusted: a load verifies everything
 * again.
 * Source: docs/design/bundle.md "The state directory".
 */
import { createHash, type Hash, randomBytes } from 'node:crypto';
import { mkdir, readdir, readlink, rename, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { BundleError, bundleError } from '../../../bundle/format/bundle-error.ts';
import type { ChainPosition } from '../../../bundle/format/chain.ts';
import { BUNDLE_FILE, CURRENT_LINK, FRESHNESS_FILE } from '../../../bundle/format/file-names.ts';
import { fileError, fileNotWritten, writeFileAtomically } from '../../../bundle/format/files.ts';
import { ResolvedDirectory } from '../../../bundle/format/local-directory.ts';
import { type OpenedBundle, type StepDocument, stepKindOf } from '../../../bundle/format/open-document.ts';
import type { KeyShardContent } from '../../../bundle/format/schema.ts';
import { STEP_LOG_FILE, StepLog } from '../../../bundle/format/step-log.ts';
import { createSynced, replaceLink, syncDirectory } from '../../../process/files/durable-files.ts';
import type { AcceptedChain, FoundChain } from './found-chain.ts';

export const BASES_FOLDER = 'bases';
const INCOMING_PREFIX = '.incoming-';
const BASE_NAME = /^[1-9][0-9]{0,15}-[0-9a-f]{16}$/;
/** Number of steps on a base above which a newer base is fetched. */
const MOST_STEPS = 1000;

/** The stored base. */
interface StoredBase {
  readonly files: ResolvedDirectory;
  readonly log: StepLog;
  /** Size of the base's files, without the steps. */
  readonly sizeBytes: number;
}

export class PersistedBundle {
  readonly #path: string;
  readonly #bases: string;
  #stored: StoredBase | undefined;
  /** Paths of bases under construction. A newer base may be fetched while another is replaced. */
  readonly #incoming = new Set<string>();
  #base: ChainPosition | undefined;
  #shards: readonly KeyShardContent[] = [];
  /** Position of each step in the log, in order. */
  #positions: ChainPosition[] = [];

  /** @param stateDirectory must exist */
  constructor(stateDirectory: string) {
    this.#path = stateDirectory;
    this.#bases = join(stateDirectory, BASES_FOLDER);
  }

  /** Position of the stored whole bundle; undefined until a stored one has been loaded. */
  get base(): ChainPosition | undefined {
    return this.#base;
  }

  /** Paths of the base's shards by their SHA-256. The base was verified when it was loaded. */
  get shardPaths(): ReadonlyMap<string, string> {
    const files = this.#stored?.files;
    if (files === undefined) return new Map();
    return new Map(this.#shards.map(({ file, sha256 }) => [sha256, join(files.path, file)]));
  }

  /** Whether so many steps have accumulated that downloading a newer base is worthwhile. */
  get isLong(): boolean {
    if (this.#stored === undefined || this.#base === undefined) return false;
    const { log, sizeBytes } = this.#stored;
    return log.count > MOST_STEPS || log.sizeBytes > sizeBytes;
  }

  /**
   * The chain that the previous run stored. May be called again while nothing is loaded. The first call removes remains of
   * bases that never became current.
   * @returns undefined when there is none
   * @throws BundleError when there is one that cannot be read
   */
  async found(): Promise<FoundChain | undefined> {
    this.#stored ??= await this.#open();
    if (this.#stored === undefined) return undefined;
    const { files, log } = this.#stored;
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
        this.#setBase(opened, positions);
      },
    };
  }

  /** The statement that is stored with the base. */
  async freshness(): Promise<Buffer | undefined> {
    return this.#stored?.files.readFreshness();
  }

  /** @throws BundleError `file_not_written` */
  async keepFreshness(statement: Buffer): Promise<void> {
    if (this.#stored !== undefined) {
      await writeFileAtomically(this.#stored.files.path, FRESHNESS_FILE, statement);
    }
  }

  /** A folder for a base under construction, which is not loaded yet. @throws BundleError `file_not_written` */
  async newBase(): Promise<ResolvedDirectory> {
    const path = join(this.#bases, INCOMING_PREFIX + randomBytes(8).toString('hex'));
    this.#incoming.add(path);
    try {
      await mkdir(path, { recursive: true });
    } catch (error) {
      this.#incoming.delete(path);
      throw fileNotWritten(error, BASES_FOLDER);
    }
    return new ResolvedDirectory(path);
  }

  async discard({ path }: ResolvedDirectory): Promise<void> {
    this.#incoming.delete(path);
    await rm(path, { recursive: true, force: true }).catch(() => undefined);
  }

  /** For {@link FoundChain.keep}: makes a downloaded whole bundle, whose files are synced, the base. */
  async keepDownloaded(
    incoming: ResolvedDirectory,
    { opened, positions }: AcceptedChain,
    documents: readonly StepDocument[],
  ): Promise<void> {
    const steps = documents.slice(0, positions.length).map(({ bytes }) => bytes);
    await this.#install(incoming, opened.position, steps);
    this.#setBase(opened, positions);
  }

  /** For {@link FoundChain.keep}: copies a bundle from another directory and makes it the base. */
  async keepCopy(files: ResolvedDirectory, steps: FoundChain['steps'], chain: AcceptedChain): Promise<void> {
    const incoming = await this.newBase();
    try {
      const { bytes, opened, positions } = chain;
      await createSynced(join(incoming.path, BUNDLE_FILE), bytes, 0o644).catch((error: unknown) => {
        throw fileNotWritten(error, BUNDLE_FILE);
      });
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
  async rebase(incoming: ResolvedDirectory, opened: OpenedBundle): Promise<boolean> {
    const stored = this.#stored;
    const base = opened.position;
    const at = this.#positions.findIndex(
      ({ revision, head }) => revision === base.revision && head === base.head,
    );
    if (stored === undefined || at === -1) return false;
    const steps: Buffer[] = [];
    for (let index = at + 1; index < this.#positions.length; index++)
      steps.push(await stored.log.read(index));
    const statement = await this.freshness().catch(() => undefined);
    await this.#install(incoming, base, steps);
    this.#setBase(opened, this.#positions.slice(at + 1));
    if (statement !== undefined) await this.keepFreshness(statement);
    return true;
  }

  /** Returns when all steps are stored. @throws BundleError when none is */
  async append(
    steps: readonly { readonly document: Buffer; readonly position: ChainPosition }[],
  ): Promise<void> {
    if (this.#stored === undefined || this.#base === undefined) {
      throw bundleError('file_not_written', STEP_LOG_FILE, '', 'there is no base that it could follow');
    }
    await this.#stored.log.append(steps.map(({ document }) => document));
    this.#positions.push(...steps.map(({ position }) => position));
  }

  /** Removes the steps that were appended last. */
  async dropLast(count: number): Promise<void> {
    this.#positions.length = Math.max(0, this.#positions.length - count);
    await this.#stored?.log.truncate(this.#positions.length);
  }

  async close(): Promise<void> {
    await this.#stored?.log.close();
    this.#stored = undefined;
  }

  #setBase({ position, content }: OpenedBundle, positions: readonly ChainPosition[]): void {
    this.#base = position;
    this.#shards = content.key_shards ?? [];
    this.#positions = [...positions];
  }

  async #open(): Promise<StoredBase | undefined> {
    const name = await currentName(this.#path);
    await this.#removeAllBut(name);
    return name === undefined ? undefined : openBase(join(this.#bases, name));
  }

  /**
   * Makes an incoming base the current one.
   * @param steps documents after the base
   * @throws BundleError `file_not_written`: the previous base then stays current
   */
  async #install(
    incoming: ResolvedDirectory,
    { revision }: ChainPosition,
    steps: readonly Buffer[],
  ): Promise<void> {
    const name = `${revision}-${randomBytes(8).toString('hex')}`;
    const before = this.#stored;
    const log = await StepLog.open(incoming.path);
    try {
      await log.append(steps);
      await syncDirectory(incoming.path);
      await rename(incoming.path, join(this.#bases, name));
      await syncDirectory(this.#bases);
      await replaceLink(join(this.#path, CURRENT_LINK), join(BASES_FOLDER, name));
      await syncDirectory(this.#path);
    } catch (error) {
      await log.close();
      throw error instanceof BundleError ? error : fileNotWritten(error, CURRENT_LINK);
    }
    const files = new ResolvedDirectory(join(this.#bases, name));
    this.#stored = { files, log, sizeBytes: await sizeOf(files.path).catch(() => 0) };
    await before?.log.close();
    await this.#removeAllBut(name);
  }

  /** Files that cannot be removed now are removed at the next start. */
  async #removeAllBut(kept: string | undefined): Promise<void> {
    const bases = (await readdir(this.#bases).catch(() => []))
      .filter((name) => name !== kept && (BASE_NAME.test(name) || name.startsWith(INCOMING_PREFIX)))
      .map((name) => join(this.#bases, name))
      .filter((path) => !this.#incoming.has(path));
    const links = (await readdir(this.#path).catch(() => []))
      .filter((name) => name.startsWith(`.${CURRENT_LINK}.`))
      .map((name) => join(this.#path, name));
    for (const path of [...bases, ...links]) {
      await rm(path, { recursive: true, force: true }).catch(() => undefined);
    }
  }
}

async function currentName(stateDirectory: string): Promise<string | undefined> {
  const target = await readlink(join(stateDirectory, CURRENT_LINK)).catch((error: unknown) => {
    const problem = fileError(error, CURRENT_LINK);
    if (problem.code !== 'file_missing') throw problem;
    return undefined;
  });
  if (target === undefined) return undefined;
  const name = basename(target);
  // Only verifiers create and remove the target, so the link must not lead elsewhere.
  if (target !== join(BASES_FOLDER, name) || !BASE_NAME.test(name)) {
    throw bundleError('file_unreadable', CURRENT_LINK, '', `does not lead to a folder in ${BASES_FOLDER}/`);
  }
  return name;
}

async function openBase(path: string): Promise<StoredBase> {
  const sizeBytes = await sizeOf(path).catch((error: unknown) => {
    throw fileError(error, BUNDLE_FILE);
  });
  return { files: new ResolvedDirectory(path), log: await StepLog.open(path), sizeBytes };
}

async function sizeOf(path: string): Promise<number> {
  const names = (await readdir(path)).filter((name) => name !== STEP_LOG_FILE);
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(path, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function copyShard(
  files: ResolvedDirectory,
  { file, sha256 }: KeyShardContent,
  incoming: ResolvedDirectory,
): Promise<void> {
  const shard = await files.readShard(file);
  const hash = createHash('sha256');
  try {
    await createSynced(join(incoming.path, file), tapped(shard.chunks(), hash), 0o644);
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
