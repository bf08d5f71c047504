/** Makes new inputs from earlier ones: one to eight changes of bytes, words, numbers and parts. */
import type { Random } from '../../support/random.ts';
import type { ComparedPair } from './coverage.ts';

export interface MutationSources {
  readonly random: Random;
  /** Words of the format. */
  readonly dictionary: readonly Buffer[];
  /** Values that the changed input was compared with. */
  readonly pairs: readonly ComparedPair[];
  /** Another input that reached something. */
  readonly other: () => Buffer;
  readonly maxBytes: number;
}

type Change = (input: Buffer, sources: MutationSources) => Buffer;

const CHANGES: readonly Change[] = [
  flipBit,
  replaceByte,
  insertBytes,
  deletePart,
  deletePart,
  repeatPart,
  movePart,
  insertWord,
  insertWord,
  overwriteWithWord,
  answerComparison,
  answerComparison,
  answerComparison,
  changeNumber,
  takePartOfOther,
  joinWithOther,
];

export function mutate(input: Buffer, sources: MutationSources): Buffer {
  let changed = input;
  for (let left = 1 << sources.random.below(4); left > 0; left--) {
    changed = sources.random.pick(CHANGES)(changed, sources);
  }
  return changed.length > sources.maxBytes ? changed.subarray(0, sources.maxBytes) : changed;
}

function replaced(input: Buffer, start: number, end: number, by: Uint8Array): Buffer {
  return Buffer.concat([input.subarray(0, start), by, input.subarray(end)]);
}

/** Most parts are short, some as long as the whole. */
function lengthOfPart(input: Buffer, { random }: MutationSources): number {
  return 1 + random.below(random.below(4) === 0 ? Math.max(1, input.length) : 16);
}

function flipBit(input: Buffer, { random }: MutationSources): Buffer {
  const changed = Buffer.from(input);
  const at = random.below(input.length);
  if (at < input.length) changed[at] = (input[at] ?? 0) ^ (1 << random.below(8));
  return changed;
}

function replaceByte(input: Buffer, { random }: MutationSources): Buffer {
  const changed = Buffer.from(input);
  const at = random.below(input.length);
  if (at < input.length) changed[at] = aByte(random);
  return changed;
}

/** Visible characters more often than others. */
function aByte(random: Random): number {
  return random.below(4) === 0 ? random.below(256) : 0x20 + random.below(0x5f);
}

function insertBytes(input: Buffer, { random }: MutationSources): Buffer {
  const at = random.below(input.length + 1);
  const bytes = Uint8Array.from({ length: 1 + random.below(8) }, () => aByte(random));
  return replaced(input, at, at, bytes);
}

function deletePart(input: Buffer, sources: MutationSources): Buffer {
  const at = sources.random.below(input.length + 1);
  return replaced(input, at, at + lengthOfPart(input, sources), Buffer.alloc(0));
}

function repeatPart(input: Buffer, sources: MutationSources): Buffer {
  const at = sources.random.below(input.length + 1);
  const part = input.subarray(at, at + lengthOfPart(input, sources));
  return replaced(input, at, at, part);
}

function movePart(input: Buffer, sources: MutationSources): Buffer {
  const from = sources.random.below(input.length + 1);
  const part = input.subarray(from, from + lengthOfPart(input, sources));
  const without = replaced(input, from, from + part.length, Buffer.alloc(0));
  const to = sources.random.below(without.length + 1);
  return replaced(without, to, to, part);
}

function insertWord(input: Buffer, { dictionary, random }: MutationSources): Buffer {
  const at = random.below(input.length + 1);
  return replaced(input, at, at, random.pick(dictionary));
}

function overwriteWithWord(input: Buffer, { dictionary, random }: MutationSources): Buffer {
  const word = random.pick(dictionary);
  const at = random.below(input.length + 1);
  return replaced(input, at, at + word.length, word);
}

/** One side of a comparison stands in the input: the other side takes its place. */
function answerComparison(input: Buffer, { pairs, random }: MutationSources): Buffer {
  if (pairs.length === 0) return input;
  const { left, right } = random.pick(pairs);
  const [found, wanted] = random.below(2) === 0 ? [left, right] : [right, left];
  const word = Buffer.from(wanted, 'latin1');
  const at = found === '' ? -1 : input.indexOf(found, random.below(input.length + 1), 'latin1');
  const start = at === -1 && found !== '' ? input.indexOf(found, 0, 'latin1') : at;
  if (start !== -1) return replaced(input, start, start + found.length, word);
  const anywhere = random.below(input.length + 1);
  return replaced(input, anywhere, anywhere, word);
}

const NUMBERS = ['0', '1', '-1', '00', '1e3', '1.0', '4294967296', '9007199254740991', '9007199254740992'];

function changeNumber(input: Buffer, { random }: MutationSources): Buffer {
  const from = random.below(input.length + 1);
  const match = /[0-9]+/.exec(input.toString('latin1', from));
  if (match === null) return input;
  const start = from + match.index;
  const near = String(Number(match[0]) + random.below(5) - 2);
  const text = random.below(2) === 0 ? near : random.pick(NUMBERS);
  return replaced(input, start, start + match[0].length, Buffer.from(text));
}

function takePartOfOther(input: Buffer, sources: MutationSources): Buffer {
  const other = sources.other();
  const from = sources.random.below(other.length + 1);
  const part = other.subarray(from, from + lengthOfPart(other, sources));
  const at = sources.random.below(input.length + 1);
  return replaced(input, at, sources.random.below(2) === 0 ? at : at + part.length, part);
}

function joinWithOther(input: Buffer, { other, random }: MutationSources): Buffer {
  const second = other();
  const end = input.subarray(0, random.below(input.length + 1));
  return Buffer.concat([end, second.subarray(random.below(second.length + 1))]);
}
