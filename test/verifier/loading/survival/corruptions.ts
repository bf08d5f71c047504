/** One corruption after the other, the same ones for the same seed. */
import { BYTE_CORRUPTIONS } from './byte-corruptions.ts';
import { ENVELOPE_CORRUPTIONS } from './envelope-corruptions.ts';
import type { Random } from './random.ts';
import { type SignedChain, TARGETS, type Target } from './signed-chain.ts';

export interface Corruption {
  readonly kind: string;
  readonly bytes: Buffer;
}

const isSigned = (target: Target): boolean => target.endsWith('.jws');

/** Half of them know what they change. */
export function corruption(chain: SignedChain, target: Target, random: Random): Corruption {
  const all = isSigned(target) && random.int(2) === 0 ? ENVELOPE_CORRUPTIONS : BYTE_CORRUPTIONS;
  const kind = random.pick(Object.keys(all));
  const others = TARGETS.filter((name) => name !== target).map((name) => chain.documents[name]);
  const bytes = all[kind]?.({ bytes: chain.documents[target], others }, random);
  if (bytes === undefined) throw new Error('no such kind');
  return { kind, bytes };
}
