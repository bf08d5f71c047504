/**
 * Measures Ed25519 verification in each available way: OpenSSL by node:crypto on the calling thread, the same on libuv's thread
 * pool with a callback, and libsodium, which has no verification on the pool. All get the same transcripts, keys and
 * signatures, in turns.
 */
import { verify } from 'node:crypto';
import sodium from 'sodium-native';
import { verifySignature } from '../../src/protocol/verify-signature.ts';
import type { Part, PartResult } from '../report.ts';
import { type BenchSite, writeSite } from './site.ts';
import {
  cpuRatio,
  measureWays,
  ROUNDS,
  type Signed,
  signedTranscripts,
  VERIFICATIONS_A_ROUND,
  type Way,
  wayFigures,
} from './verification-ways.ts';
import { inWorkspace } from './workspace.ts';

/** As many as there are concurrent checks in the other parts. */
const IN_FLIGHT = 64;

const onThePool: Way['way'] = ({ key, message, signature }) =>
  new Promise((resolve, reject) => {
    verify(null, message, key.keyObject, signature, (error, holds) => {
      if (error === null) resolve(holds);
      else reject(error);
    });
  });

const WAY_NAMES = ['node', 'poolSingle', 'pool', 'sodium', 'shipped'] as const;
type WayName = (typeof WAY_NAMES)[number];

const waysFor = (signed: readonly Signed[]): { readonly [N in WayName]: Way } => ({
  node: {
    name: 'node:crypto',
    inFlight: 1,
    way: ({ key, message, signature }) => verify(null, message, key.keyObject, signature),
    signed,
  },
  poolSingle: { name: 'node:crypto, thread pool, one at a time', inFlight: 1, way: onThePool, signed },
  pool: {
    name: `node:crypto, thread pool, ${IN_FLIGHT} in flight`,
    inFlight: IN_FLIGHT,
    way: onThePool,
    signed,
  },
  sodium: {
    name: 'sodium-native',
    inFlight: 1,
    way: ({ key, message, signature }) =>
      sodium.crypto_sign_verify_detached(signature, message, key.rawPoint),
    signed,
  },
  shipped: {
    name: 'as the verifier does it',
    inFlight: 1,
    way: ({ key, message, signature }) => verifySignature(key, message, signature),
    signed,
  },
});

export const ed25519: Part = {
  name: 'ed25519',
  title: `one Ed25519 verification of a transcript, ${ROUNDS} rounds of ${VERIFICATIONS_A_ROUND}, in turns`,
  run: () =>
    inWorkspace(async ({ directory }) => measure(await writeSite(directory, { routes: 10, keys: 100 }))),
};

async function measure(site: BenchSite): Promise<PartResult> {
  const ways = waysFor(signedTranscripts(site, site.callers));
  const costs = await measureWays(ways, WAY_NAMES);
  const shippedOver = (name: WayName) => ({
    name: `CPU over ${ways[name].name}`,
    value: cpuRatio(costs, 'shipped', name),
    atMost: 1,
  });
  return {
    figures: wayFigures(ways, costs),
    bounds: [shippedOver('node'), shippedOver('poolSingle'), shippedOver('pool')],
  };
}
