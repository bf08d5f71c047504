/**
 * Measures Ed25519 verification in each available way: OpenSSL by node:crypto on the calling thread, the same on libuv's thread
 * pool with a callback, and libsodium, which has no verification on the pool. All get the same transcripts, keys and
 * signatures, in turns. CPU is of the whole process, so it includes the pool's threads.
 */
import { verify } from 'node:crypto';
import sodium from 'sodium-native';
import { importPublicKey, type PublicKey } from '../../src/protocol/public-key.ts';
import { verifySignature } from '../../src/protocol/signature.ts';
import { figure, type Part, type PartResult } from '../report.ts';
import { median } from '../statistics.ts';
import { signedTranscript } from './requests.ts';
import { type BenchSite, writeSite } from './site.ts';
import { inWorkspace } from './workspace.ts';

const ROUNDS = 9;
const VERIFICATIONS_A_ROUND = Number(process.env.PROOFGATE_BENCH_VERIFICATIONS ?? 10_000);
const TRANSCRIPTS = 1_000;
/** As many as there are concurrent checks in the other parts. */
const IN_FLIGHT = 64;

interface Signed {
  readonly key: PublicKey;
  readonly message: Buffer;
  readonly signature: Buffer;
}

type Way = (signed: Signed) => boolean | Promise<boolean>;

const onThePool: Way = ({ key, message, signature }) =>
  new Promise((resolve, reject) => {
    verify(null, message, key.keyObject, signature, (error, holds) => {
      if (error === null) resolve(holds);
      else reject(error);
    });
  });

/** How many at a time, and how. */
const WAYS = {
  node: {
    name: 'node:crypto',
    inFlight: 1,
    way: ({ key, message, signature }) => verify(null, message, key.keyObject, signature),
  },
  poolSingle: { name: 'node:crypto, thread pool, one at a time', inFlight: 1, way: onThePool },
  pool: {
    name: `node:crypto, thread pool, ${IN_FLIGHT} in flight`,
    inFlight: IN_FLIGHT,
    way: onThePool,
  },
  sodium: {
    name: 'sodium-native',
    inFlight: 1,
    way: ({ key, message, signature }) =>
      sodium.crypto_sign_verify_detached(signature, message, key.rawPoint),
  },
  shipped: {
    name: 'as the verifier does it',
    inFlight: 1,
    way: ({ key, message, signature }) => verifySignature(key, message, signature),
  },
} as const satisfies {
  readonly [name: string]: { readonly name: string; readonly inFlight: number; readonly way: Way };
};
type WayName = keyof typeof WAYS;
const WAY_NAMES = Object.keys(WAYS) as WayName[];

export const ed25519: Part = {
  name: 'ed25519',
  title: `one Ed25519 verification of a transcript, ${ROUNDS} rounds of ${VERIFICATIONS_A_ROUND}, in turns`,
  run: () =>
    inWorkspace(async ({ directory }) => measure(await writeSite(directory, { routes: 10, keys: 100 }))),
};

interface Cost {
  readonly cpuUs: number;
  readonly perSecond: number;
}

async function measure(site: BenchSite): Promise<PartResult> {
  const signed = Array.from({ length: TRANSCRIPTS }, (_, index) => signedOf(site, index));
  const costs: { readonly [W in WayName]: Cost[] } = {
    node: [],
    poolSingle: [],
    pool: [],
    sodium: [],
    shipped: [],
  };
  // The first round warms up.
  for (let round = 0; round <= ROUNDS; round++) {
    for (const name of WAY_NAMES) {
      const { inFlight, way } = WAYS[name];
      const cost = await costOfWay(way, inFlight, signed);
      if (round > 0) costs[name].push(cost);
    }
  }
  return report(costs);
}

function signedOf(site: BenchSite, index: number): Signed {
  const { jwk, message, signature } = signedTranscript(site, index);
  const key = importPublicKey(jwk);
  if (key === undefined) throw new Error('a key of the site is refused');
  return { key, message: Buffer.from(message, 'base64url'), signature: Buffer.from(signature, 'base64url') };
}

async function costOfWay(way: Way, inFlight: number, signed: readonly Signed[]): Promise<Cost> {
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

function report(costs: { readonly [W in WayName]: readonly Cost[] }): PartResult {
  const cpuUs = (name: WayName) => costs[name].map((cost) => cost.cpuUs);
  const shippedOver = (name: WayName) => ({
    name: `CPU over ${WAYS[name].name}`,
    value: median(cpuUs('shipped')) / median(cpuUs(name)),
    atMost: 1,
  });
  return {
    figures: [
      ...WAY_NAMES.map((name) => figure(WAYS[name].name, 'µs CPU', cpuUs(name))),
      ...WAY_NAMES.map((name) =>
        figure(
          WAYS[name].name,
          'a second',
          costs[name].map(({ perSecond }) => perSecond),
        ),
      ),
    ],
    bounds: [shippedOver('node'), shippedOver('poolSingle'), shippedOver('pool')],
  };
}
