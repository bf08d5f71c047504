/** Ways to damage a file without knowing what is in it. */
export interface ToCorrupt {
  readonly bytes: Buffer;
  /** Other documents of the same chain. */
  readonly others: readonly Buffer[];
}

export type Corrupt = (from: ToCorrupt, random: Random) => Buffer;

const LONGEST_RANGE = 64;

export const BYTE_CORRUPTIONS: { readonly [kind: string]: Corrupt } = {
  bits_flipped: ({ bytes }, random) => {
    const copy = Buffer.from(bytes);
    for (let flips = 1 + random.int(8); flips > 0; flips--) {
      const at = random.int(copy.length);
      copy[at] = (copy[at] ?? 0) ^ (1 << random.int(8));
    }
    return copy;
  },
  byte_set: ({ bytes }, random) => {
    const copy = Buffer.from(bytes);
    copy[random.int(copy.length)] = random.int(256);
    return copy;
  },
  bytes_inserted: ({ bytes }, random) => {
    const at = random.int(bytes.length + 1);
    return Buffer.concat([bytes.subarray(0, at), random.bytes(1 + random.int(4)), bytes.subarray(at)]);
  },
  byte_removed: ({ bytes }, random) => without(bytes, random.int(bytes.length), 1),
  range_removed: ({ bytes }, random) =>
    without(bytes, random.int(bytes.length), 1 + random.int(LONGEST_RANGE)),
  range_doubled: ({ bytes }, random) => {
    const at = random.int(bytes.length);
    const end = at + 1 + random.int(LONGEST_RANGE);
    return Buffer.concat([bytes.subarray(0, end), bytes.subarray(at)]);
  },
  range_zeroed: ({ bytes }, random) => {
    const at = random.int(bytes.length);
    return Buffer.from(bytes).fill(0, at, Math.min(bytes.length, at + 1 + random.int(LONGEST_RANGE)));
  },
  ranges_swapped: ({ bytes }, random) => {
    const [a = 0, b = 0, c = 0] = [0, 0, 0].map(() => random.int(bytes.length)).sort((x, y) => x - y);
    const parts = [bytes.subarray(0, a), bytes.subarray(b, c), bytes.subarray(a, b), bytes.subarray(c)];
    return Buffer.concat(parts);
  },
  truncated: ({ bytes }, random) => bytes.subarray(0, random.int(bytes.length)),
  extended: ({ bytes }, random) => Buffer.concat([bytes, random.bytes(1 + random.int(16))]),
  case_changed: ({ bytes }, random) => changeOne(bytes, /[A-Za-z]/, random, (byte) => byte ^ 0x20),
  digit_changed: ({ bytes }, random) =>
    changeOne(bytes, /[0-9]/, random, (byte) => 0x30 + ((byte - 0x30 + 1 + random.int(9)) % 10)),
  spliced: ({ bytes, others }, random) => {
    const other = random.pick(others);
    return Buffer.concat([
      bytes.subarray(0, random.int(bytes.length)),
      other.subarray(random.int(other.length)),
    ]);
  },
  another_document: ({ others }, random) => random.pick(others),
  lines_shuffled: ({ bytes }, random) =>
    Buffer.from(random.shuffled(bytes.toString('latin1').split('\n')).join('\n'), 'latin1'),
};

function without(bytes: Buffer, at: number, length: number): Buffer {
  return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)]);
}

function changeOne(bytes: Buffer, sign: RegExp, random: Random, change: (byte: number) => number): Buffer {
  const copy = Buffer.from(bytes);
  const start = random.int(copy.length);
  for (let step = 0; step < copy.length; step++) {
    const at = (start + step) % copy.length;
    const byte = copy[at] ?? 0;
    if (!sign.test(String.fromCharCode(byte))) continue;
    copy[at] = change(byte);
    break;
  }
  return copy;
}

/** Numbers that look random and are the same again for the same seed, so that a failure can be repeated. */
export interface Random {
  /** 0 to `below` - 1. */
  int(below: number): number;
  pick<T>(items: readonly T[]): T;
  shuffled<T>(items: readonly T[]): T[];
  bytes(length: number): Buffer;
}

/** `PROOFGATE_TEST_SEED`, otherwise another one each time. Tests show it when they fail. */
export function testSeed(): number {
  const given = process.env.PROOFGATE_TEST_SEED;
  return given === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(given) >>> 0;
}

/** Mulberry32: 32 bits of state, more than enough to choose what to break. */
export function newRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  const int = (below: number) => (below <= 1 ? 0 : next() % below);
  return {
    int,
    pick: (items) => {
      const item = items[int(items.length)];
      if (item === undefined) throw new Error('nothing to choose from');
      return item;
    },
    shuffled: (items) => {
      const left = [...items];
      return items.flatMap(() => left.splice(int(left.length), 1));
    },
    bytes: (length) => Buffer.from(Array.from({ length }, () => int(256))),
  };
}
