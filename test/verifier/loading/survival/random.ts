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
