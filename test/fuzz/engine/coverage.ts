/** Records what instrumented modules report (`instrumenting-hooks.mjs`). Load it before the first of them. */

const MAX_EDGES = 1 << 16;
const counters = new Uint32Array(MAX_EDGES);
const seen = new Uint8Array(MAX_EDGES);
let usedEdges = 0;

/** Pairs that one execution compared and found different. */
const MAX_PAIRS = 64;
const MAX_TEXT = 128;
let pairs: ComparedPair[] = [];

export interface ComparedPair {
  readonly left: string;
  readonly right: string;
}

/** How an instrumented module finds us. */
interface Fuzzing {
  edges(count: number): Uint32Array;
  isSame(left: unknown, right: unknown): boolean;
}

declare global {
  var fuzzing: Fuzzing;
}

globalThis.fuzzing = {
  edges(count) {
    if (usedEdges + count > MAX_EDGES) throw new RangeError('more edges than there is room for');
    usedEdges += count;
    return counters.subarray(usedEdges - count, usedEdges);
  },
  isSame(left, right) {
    if (left === right) return true;
    if (typeof left === 'string' && typeof right === 'string' && pairs.length < MAX_PAIRS) {
      if (left.length <= MAX_TEXT && right.length <= MAX_TEXT) pairs.push({ left, right });
    }
    return false;
  },
};

export interface Observed {
  /** Whether an edge is new, or its hit count reached a new bucket. */
  readonly isNew: boolean;
  /** Edges taken, each as often as it was. */
  readonly steps: number;
  readonly pairs: readonly ComparedPair[];
}

export function beginExecution(): void {
  counters.fill(0, 0, usedEdges);
  pairs = [];
}

export function endExecution(): Observed {
  let isNew = false;
  let steps = 0;
  for (let edge = 0; edge < usedEdges; edge++) {
    const count = counters[edge] ?? 0;
    if (count === 0) continue;
    steps += count;
    const bit = bitOf(count);
    const before = seen[edge] ?? 0;
    if ((before & bit) !== 0) continue;
    seen[edge] = before | bit;
    isNew = true;
  }
  return { isNew, steps, pairs };
}

/** Buckets of hit counts: 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, and more. */
function bitOf(count: number): number {
  if (count <= 3) return 1 << (count - 1);
  if (count <= 7) return 8;
  if (count <= 15) return 16;
  if (count <= 31) return 32;
  return count <= 127 ? 64 : 128;
}

export interface CoverageFigures {
  readonly edges: number;
  readonly edgesTaken: number;
  /** Pairs of an edge and how often it was taken. */
  readonly features: number;
}

export function coverageFigures(): CoverageFigures {
  let edgesTaken = 0;
  let features = 0;
  for (const bits of seen.subarray(0, usedEdges)) {
    if (bits !== 0) edgesTaken += 1;
    for (let rest = bits; rest !== 0; rest &= rest - 1) features += 1;
  }
  return { edges: usedEdges, edgesTaken, features };
}
