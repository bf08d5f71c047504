/**
 * What there is on top of a site's whole bundle, counted along as it is published, so that the question whether a new
 * whole bundle is worth it costs nothing. Only an instance that published everything itself knows which keys changed.
 */
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

/** Deltas under which nobody minds: a target takes them in one answer. */
const MIN_DELTAS = 1000;

export interface ChainLedger {
  readonly revision: number;
  readonly baseRevision: number;
  /** Of the whole bundle, all files together. */
  readonly baseBytes: number;
  readonly basePublishedAtMs: number;
  /** Of the newest document. */
  readonly publishedAtMs: number;
  readonly deltas: number;
  readonly deltaBytes: number;
  /** Keys that changed since the whole bundle; undefined where somebody else published. */
  readonly touched: ReadonlySet<string> | undefined;
}

/** @param known what was counted along so far: good for as long as nobody else publishes */
export async function currentLedger(
  tx: Transaction,
  site: RowOf<'site'>,
  known: ChainLedger | undefined,
): Promise<ChainLedger> {
  return known?.revision === site.revision ? known : readLedger(tx, site);
}

async function readLedger(tx: Transaction, site: RowOf<'site'>): Promise<ChainLedger> {
  const { id: siteId, revision, baseRevision } = site;
  const after = await tx.distribution.sizeAfter(siteId, baseRevision);
  const files = await tx.distribution.files(siteId, baseRevision);
  const base = await tx.distribution.step(siteId, baseRevision);
  const newest = await tx.distribution.step(siteId, revision);
  return {
    revision,
    baseRevision,
    baseBytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
    basePublishedAtMs: base?.publishedAtMs ?? 0,
    publishedAtMs: newest?.publishedAtMs ?? 0,
    deltas: after.steps,
    deltaBytes: after.bytes,
    touched: undefined,
  };
}

export interface PublishedDelta {
  readonly revision: number;
  readonly bytes: number;
  readonly publishedAtMs: number;
}

export function withDelta(
  ledger: ChainLedger,
  { revision, bytes, publishedAtMs }: PublishedDelta,
  keyIds: readonly string[],
): ChainLedger {
  const { touched } = ledger;
  return {
    ...ledger,
    revision,
    publishedAtMs,
    deltas: ledger.deltas + 1,
    deltaBytes: ledger.deltaBytes + bytes,
    // Grown in place: a copy for each delta would cost what all of them hold.
    touched: touched === undefined ? undefined : grown(touched, keyIds),
  };
}

function grown(touched: ReadonlySet<string>, keyIds: readonly string[]): ReadonlySet<string> {
  const set = touched instanceof Set ? touched : new Set(touched);
  for (const keyId of keyIds) set.add(keyId);
  return set;
}

/**
 * Whether a whole bundle is to replace the one before, although nothing but clients and keys changed. A count of deltas
 * alone would make every target of a large site fetch all of its keys again and again, each time that so many of them
 * changed: with the bytes of the deltas as the measure, what whole bundles add stays a fixed share of what the deltas
 * carried already, however many keys there are.
 */
export function isWorthWhole(
  { deltas, deltaBytes, baseBytes, basePublishedAtMs, publishedAtMs }: ChainLedger,
  lifetimeSeconds: number,
  nowMs: number,
): boolean {
  // Issued while this clock was ahead: until that moment verifiers deny what they loaded of it.
  if (basePublishedAtMs > nowMs || publishedAtMs > nowMs) return true;
  if (deltas >= MIN_DELTAS && deltaBytes * 2 > baseBytes) return true;
  // At half its life, so that there is another half to get over whatever keeps it from being published.
  return nowMs - basePublishedAtMs >= lifetimeSeconds * 500;
}
