/**
 * Running totals of a site's chain since its last whole bundle, so that deciding on a new whole bundle costs no query.
 * Only an instance that published everything itself knows which keys changed.
 */
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

/** Up to this number of deltas no whole bundle is needed: a target receives them in one answer. */
const MIN_DELTAS = 1000;

export interface ChainLedger {
  readonly revision: number;
  readonly baseRevision: number;
  /** Total size of the whole bundle's files. */
  readonly baseBytes: number;
  readonly basePublishedAtMs: number;
  /** Publication time of the newest document. */
  readonly publishedAtMs: number;
  readonly deltas: number;
  readonly deltaBytes: number;
  /** Keys that changed since the whole bundle; undefined if another instance published. */
  readonly touched: ReadonlySet<string> | undefined;
}

/** @param known this instance's totals, valid unless another instance has published */
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
    // Mutated in place: copying the set for each delta would cost as much as all of them hold.
    touched: touched === undefined ? undefined : grown(touched, keyIds),
  };
}

function grown(touched: ReadonlySet<string>, keyIds: readonly string[]): ReadonlySet<string> {
  const set = touched instanceof Set ? touched : new Set(touched);
  for (const keyId of keyIds) set.add(keyId);
  return set;
}

/**
 * Whether to publish a new whole bundle although only clients and keys changed. A limit on the number of deltas alone
 * would make every target of a large site fetch all keys again too often. Comparing bytes keeps the cost of whole
 * bundles at a fixed share of the deltas' cost, however many keys there are.
 */
export function isWorthWhole(
  { deltas, deltaBytes, baseBytes, basePublishedAtMs, publishedAtMs }: ChainLedger,
  lifetimeSeconds: number,
  nowMs: number,
): boolean {
  // Issued while this clock was ahead: verifiers reject it until that time.
  if (basePublishedAtMs > nowMs || publishedAtMs > nowMs) return true;
  if (deltas >= MIN_DELTAS && deltaBytes * 2 > baseBytes) return true;
  // At half the lifetime, which leaves the other half to recover from publishing failures.
  return nowMs - basePublishedAtMs >= lifetimeSeconds * 500;
}
