export class NothingToPick extends Error {}

/** A seeded generator (mulberry32): the same seed gives the same run. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Whole numbers from 0 up to, not including, `bound`. */
  below(bound: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * bound);
  }

  pick<T>(list: readonly T[]): T {
    const chosen = list[this.below(list.length)];
    if (chosen === undefined) throw new NothingToPick('nothing to pick from');
    return chosen;
  }
}

/** One change of one place in a text of one character a byte. */
export const TEXT_CHANGES = {
  'flip a bit': (text, random) => replaceAt(text, random, (code) => code ^ (1 << random.below(8))),
  'replace a character': (text, random) =>
    replaceAt(text, random, (code) => (code + 1 + random.below(255)) % 256),
  'insert a character': (text, random) => {
    const at = random.below(text.length + 1);
    return text.slice(0, at) + String.fromCharCode(random.below(256)) + text.slice(at);
  },
  'delete a character': (text, random) => {
    const at = random.below(text.length);
    return text.slice(0, at) + text.slice(at + 1);
  },
  'duplicate a character': (text, random) => {
    const at = random.below(text.length);
    return text.slice(0, at + 1) + text.slice(at);
  },
  'swap two neighbours': (text, random) => {
    const at = random.below(text.length);
    return text.slice(0, at) + text.charAt(at + 1) + text.charAt(at) + text.slice(at + 2);
  },
  'cut the end off': (text, random) => text.slice(0, random.below(text.length)),
  'say it twice': (text) => text + text,
} as const satisfies { readonly [name: string]: (text: string, random: Random) => string };

export type TextChange = keyof typeof TEXT_CHANGES;

function replaceAt(text: string, random: Random, change: (code: number) => number): string {
  if (text === '') return text;
  const at = random.below(text.length);
  return text.slice(0, at) + String.fromCharCode(change(text.charCodeAt(at))) + text.slice(at + 1);
}
