/**
 * Measures one signature verification in several ways, in turns, on the same transcripts. CPU is of the whole process, so it
 * includes the threads of libuv's pool.
 */
import { importPublicKey } from '../../src/protocol/import-public-key.ts';
import type { PublicKey } from '../../src/protocol/public-key.ts';
import { type Figure, figure } from '../report.ts';
import { median } from '../statistics.ts';
import { signedTranscript } from './requests.ts';
import type { BenchCaller, BenchSite } from './site.ts';

export const ROUNDS = 9;
export const VERIFICATIONS_A_ROUND = Number(process.env.PROOFGATE_BENCH_VERIFICATIONS ?? 10_000);
const TRANSCRIPTS = 1_000;

export interface Signed {
  readonly key: PublicKey;
  readonly message: Buffer;
  readonly signature: Buffer;
}

/** One way to verify, and how many at a time. */
export interface Way {
  readonly name: string;
  readonly inFlight: number;
  readonly way: (signed: Signed) => boolean | Promise<boolean>;
  readonly signed: readonly Signed[];
}

interface Cost {
  readonly cpuUs: number;
  readonly perSecond: number;
}

export type WayCosts<N extends string> = ReadonlyMap<N, readonly Cost[]>;

export function signedTranscripts(site: BenchSite, callers: readonly BenchCaller[]): readonly Signed[] {
  return Array.from({ length: TRANSCRIPTS }, (_, index) => {
    const { jwk, message, signature } = signedTranscript({ ...site, callers }, index);
    const key = importPublicKey(jwk);
    if (key === undefined) throw new Error('a key of the site is refused');
    return {
      key,
      message: Buffer.from(message, 'base64url'),
      signature: Buffer.from(signature, 'base64url'),
    };
  });
}

export async function measureWays<N extends string>(
  ways: { readonly [name in N]: Way },
  names: readonly N[],
): Promise<WayCosts<N>> {
  const costs = new Map<N, Cost[]>(names.map((name) => [name, []]));
  // The first round warms up.
  for (let round = 0; round <= ROUNDS; round++) {
    for (const name of names) {
      const cost = await costOfWay(ways[name]);
      if (round > 0) costs.get(name)?.push(cost);
    }
  }
  return costs;
}

async function costOfWay({ inFlight, signed, way }: Way): Promise<Cost> {
  let next = 0;
  const verifyRest = async () => {
    while (next < VERIFICATIONS_A_ROUND) {
      const one = signed[next++ % signed.length];
      const answer = one === undefined ? false : way(one);
      // Does not wait for a turn of the event loop when the answer is synchronous.
      if (!(answer === true || (answer !== false && (await answer)))) {
        throw new Error('void run: a good signature did not verify');
      }
    }
  };
  const [startCpu, startMs] = [process.cpuUsage(), performance.now()];
  await Promise.all(Array.from({ length: inFlight }, verifyRest));
  const seconds = (performance.now() - startMs) / 1000;
  const { system, user } = process.cpuUsage(startCpu);
  return { cpuUs: (user + system) / VERIFICATIONS_A_ROUND, perSecond: VERIFICATIONS_A_ROUND / seconds };
}

export function wayFigures<N extends string>(
  ways: { readonly [name in N]: Way },
  costs: WayCosts<N>,
): readonly Figure[] {
  const of = (value: (cost: Cost) => number, unit: string) =>
    [...costs].map(([name, ofWay]) => figure(ways[name].name, unit, ofWay.map(value)));
  return [...of(({ cpuUs }) => cpuUs, 'µs CPU'), ...of(({ perSecond }) => perSecond, 'a second')];
}

/** Median CPU of one way over that of another. */
export function cpuRatio<N extends string>(costs: WayCosts<N>, way: N, base: N): number {
  const cpuUs = (name: N) => median((costs.get(name) ?? []).map((cost) => cost.cpuUs));
  return cpuUs(way) / cpuUs(base);
}
