/**
 * Splits the derived keys of a whole bundle into shards by key ID, which sorts by creation time. Old keys stay in
 * unchanged files, so that Control does not rewrite them and targets do not fetch them again.
 *
 * A shard is a range of key IDs. A shard without changes since the last whole bundle is kept, including ended keys,
 * which verifiers ignore. A shard in which half of the keys have ended is rewritten. Neighbours that fit into one shard
 * are merged, so that the number of files stays bounded.
 */
import { hash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { KeyRange } from '../store/repositories/publication-repository.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { derivedKeyContent } from './stored-site-content.ts';

/** Target number of keys per shard, so that rewriting one is cheap. Larger only to limit the number of files. */
const SHARD_KEYS = 5000;
const MAX_SHARD_KEYS = 50_000;
/** Bundles take 100 shards. Merging neighbours leaves at most twice the minimum number. */
const AIMED_SHARDS = 40;
/** Rows per query: some milliseconds that block the event loop. */
const PAGE_KEYS = 500;

/** Runs reads, each in its own transaction or all in the open one. */
export type RunReads = <T>(work: (tx: Transaction) => Promise<T>) => Promise<T>;

/** A shard of the previous whole bundle. */
export interface FormerShard {
  readonly firstKey: string;
  readonly keys: number;
  readonly sha256: string;
  readonly bytes: number;
}

interface KeptShard extends FormerShard {
  readonly kind: 'kept';
}

/** Lines by key ID. */
interface WrittenShard {
  readonly kind: 'written';
  readonly firstKey: string;
  readonly lines: Map<string, string>;
  /** Built from the lines; reset when they change. */
  file: ShardFile | undefined;
}

type Shard = KeptShard | WrittenShard;

export interface ShardFile extends FormerShard {
  /** Undefined for a kept shard, whose bytes are already stored. */
  readonly content: Buffer | undefined;
}

export interface ShardPlan {
  readonly siteId: string;
  readonly nowSeconds: number;
  readonly former: readonly FormerShard[];
  /** Keys that changed since the previous shards were built. */
  readonly touched: ReadonlySet<string>;
}

export class ShardSet {
  readonly #siteId: string;
  readonly #nowSeconds: number;
  /** Ordered by key ID; each range begins where the previous one ends. */
  #shards: Shard[] = [];

  private constructor({ siteId, nowSeconds }: ShardPlan) {
    this.#siteId = siteId;
    this.#nowSeconds = nowSeconds;
  }

  static async read(run: RunReads, plan: ShardPlan): Promise<ShardSet> {
    const set = new ShardSet(plan);
    const { former, touched } = plan;
    if (former.length === 0) {
      const all = { from: '', before: undefined };
      const count = await run((tx) => tx.publication.countKeysIn(plan.siteId, all, plan.nowSeconds));
      set.#shards = await set.#write(run, all, capacityFor(count));
      return set;
    }
    const ranges = former.map(({ firstKey }, index) => ({
      from: index === 0 ? '' : firstKey,
      before: former[index + 1]?.firstKey,
    }));
    const living: number[] = [];
    for (const range of ranges) {
      living.push(await run((tx) => tx.publication.countKeysIn(plan.siteId, range, plan.nowSeconds)));
    }
    const capacity = capacityFor(living.reduce((sum, count) => sum + count, 0));
    const isWritten = shardsToWrite(former, ranges, living, touched, capacity);
    for (const [index, shard] of former.entries()) {
      const range = ranges[index];
      if (range === undefined) continue;
      if (!isWritten[index]) set.#shards.push({ kind: 'kept', ...shard, firstKey: range.from });
      else if (index === 0 || !isWritten[index - 1]) {
        // Adjacent shards to rewrite are read as one range and split again.
        let last = index;
        while (isWritten[last + 1]) last++;
        const joined = { from: range.from, before: ranges[last]?.before };
        set.#shards.push(...(await set.#write(run, joined, capacity)));
      }
    }
    return set;
  }

  async #write(run: RunReads, range: KeyRange, capacity: number): Promise<Shard[]> {
    const shards: WrittenShard[] = [];
    let shard = newShard(range.from);
    for await (const row of this.#rows(run, range)) {
      if (shard.lines.size >= capacity) {
        shards.push(shard);
        shard = newShard(row.keyId);
      }
      shard.lines.set(row.keyId, lineOf(row));
    }
    return [...shards, shard];
  }

  async *#rows(run: RunReads, range: KeyRange): AsyncGenerator<RowOf<'derivedKey'>> {
    for (let after: string | undefined; ; ) {
      const page = await run((tx) =>
        tx.publication.keysIn(this.#siteId, range, this.#nowSeconds, { after, limit: PAGE_KEYS }),
      );
      yield* page;
      if (page.length < PAGE_KEYS) return;
      after = page.at(-1)?.keyId;
    }
  }

  /** Updates the set to the current state of these keys. */
  async absorb(run: RunReads, keyIds: Iterable<string>): Promise<void> {
    const names = [...keyIds];
    for (let start = 0; start < names.length; start += PAGE_KEYS) {
      const part = names.slice(start, start + PAGE_KEYS);
      const rows = await run((tx) => tx.publication.keys(this.#siteId, part, this.#nowSeconds));
      const byName = new Map(rows.map((row) => [row.keyId, row]));
      for (const keyId of part) await this.#put(run, keyId, byName.get(keyId));
    }
  }

  async #put(run: RunReads, keyId: string, row: RowOf<'derivedKey'> | undefined): Promise<void> {
    const index = this.#indexOf(keyId);
    const shard = this.#shards[index];
    if (shard?.kind === 'written') {
      shard.file = undefined;
      if (row === undefined) shard.lines.delete(keyId);
      else shard.lines.set(keyId, lineOf(row));
    } else if (shard !== undefined) {
      const range = { from: shard.firstKey, before: this.#shards[index + 1]?.firstKey };
      // As one shard, whatever its size, so that other shards do not move.
      this.#shards.splice(index, 1, ...(await this.#write(run, range, MAX_SHARD_KEYS)));
    }
  }

  /** The last shard that begins at or before the key. */
  #indexOf(keyId: string): number {
    const next = this.#shards.findIndex(({ firstKey }) => firstKey > keyId);
    return (next === -1 ? this.#shards.length : next) - 1;
  }

  /** All lines in key order, if no shard is kept and there are at most `count` lines; otherwise undefined. */
  linesOfAtMost(count: number): readonly string[] | undefined {
    const lines: string[] = [];
    for (const shard of this.#shards) {
      if (shard.kind === 'kept' || lines.length + shard.lines.size > count) return undefined;
      lines.push(...sortedLines(shard));
    }
    return lines;
  }

  /**
   * Builds the files one by one, yielding in between, so that {@link ShardSet.files} has little left to do.
   * @param keep receives each file
   */
  async prepare(keep: (file: ShardFile) => Promise<void>): Promise<void> {
    // Skip the last shard: new keys go there, so it will change again before it is needed.
    for (const shard of this.#shards.slice(0, -1)) {
      if (shard.kind === 'written' && shard.lines.size > 0) await keep(fileOf(shard, shard.firstKey));
      await setImmediate();
    }
  }

  /** Files in key order, without empty shards. */
  files(): readonly ShardFile[] {
    const files: ShardFile[] = [];
    for (const shard of this.#shards) {
      // The first shard also covers all smaller key IDs.
      const firstKey = files.length === 0 ? '' : shard.firstKey;
      if (shard.kind === 'kept') files.push({ ...shard, firstKey, content: undefined });
      else if (shard.lines.size > 0) files.push(fileOf(shard, firstKey));
    }
    return files;
  }
}

/** Which shards to rewrite: changed ones, mostly ended ones, and neighbours that fit into one. */
function shardsToWrite(
  former: readonly FormerShard[],
  ranges: readonly KeyRange[],
  living: readonly number[],
  touched: ReadonlySet<string>,
  capacity: number,
): readonly boolean[] {
  const firstKeys = ranges.map(({ from }) => from);
  const changed = new Set<number>();
  for (const keyId of touched) {
    const next = firstKeys.findIndex((firstKey) => firstKey > keyId);
    changed.add((next === -1 ? firstKeys.length : next) - 1);
  }
  const fitsWithNext = (index: number) => {
    const next = living[index + 1];
    return next !== undefined && (living[index] ?? 0) + next <= capacity;
  };
  return former.map(({ keys }, index) => {
    const isHalfEmpty = (living[index] ?? 0) * 2 < keys;
    return changed.has(index) || isHalfEmpty || fitsWithNext(index) || (index > 0 && fitsWithNext(index - 1));
  });
}

function capacityFor(keys: number): number {
  return Math.min(MAX_SHARD_KEYS, Math.max(SHARD_KEYS, Math.ceil(keys / AIMED_SHARDS)));
}

function newShard(firstKey: string): WrittenShard {
  return { kind: 'written', firstKey, lines: new Map(), file: undefined };
}

function lineOf(row: RowOf<'derivedKey'>): string {
  return JSON.stringify(derivedKeyContent(row));
}

function sortedLines({ lines }: WrittenShard): readonly string[] {
  return [...lines].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, line]) => line);
}

function fileOf(shard: WrittenShard, firstKey: string): ShardFile {
  shard.file ??= makeFile(shard, firstKey);
  return { ...shard.file, firstKey };
}

function makeFile(shard: WrittenShard, firstKey: string): ShardFile {
  const content = Buffer.from(`${sortedLines(shard).join('\n')}\n`);
  const sha256 = hash('sha256', content, 'base64url');
  return { firstKey, keys: shard.lines.size, sha256, bytes: content.length, content };
}
