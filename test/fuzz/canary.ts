/** A planted fault for the fuzzer: random guessing does not find it, only coverage and recorded comparisons do. */
import type { FuzzTarget } from './target.ts';

function run(input: Buffer): void {
  const [first = '', second = '', third = ''] = input.toString('latin1').split('|');
  if (first !== 'passport') return;
  if (!second.startsWith('p')) return;
  if (second.length !== 5) return;
  if (second.slice(1) !== 'roof') return;
  let ones = 0;
  for (const character of third) if (character === '1') ones++;
  if (ones < 8) return;
  throw new Error('the canary was found');
}

export const canaryTarget: FuzzTarget = {
  name: 'canary',
  seeds: [Buffer.from('a|b|c')],
  dictionary: ['|'],
  maxBytes: 64,
  maxStepsPerByte: 100,
  run,
};
