/**
 * Measures ES256 beside Ed25519 in the same run: one verification in each way that Node.js has, and a whole check of callers
 * with either kind of key by one verifier.
 */
import { createVerify, verify, webcrypto } from 'node:crypto';
import { verifySignature } from '../../src/protocol/verify-signature.ts';
import { figure, type Part, type PartResult, ratioBound } from '../report.ts';
import { costInTurns, REQUESTS_A_SLICE, SLICES } from './cost-in-turns.ts';
import { costOf } from './load.ts';
import { goodRequests } from './requests.ts';
import { siteArguments, startVerifier } from './servers.ts';
import { type BenchCaller, type BenchSite, writeSite } from './site.ts';
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
import { inWorkspace, type Workspace } from './workspace.ts';

const WARM_UP_REQUESTS = 15_000;
/** Most that a verification and a check with P-256 may cost, as a multiple of the same with Ed25519. */
const MOST_VERIFICATION_RATIO = 1.5;
const MOST_CHECK_RATIO = 1.25;

const WAY_NAMES = ['ed25519', 'shipped', 'der', 'verifyObject', 'subtle', 'pool'] as const;
type WayName = (typeof WAY_NAMES)[number];

export const es256: Part = {
  name: 'es256',
  title: `ES256 beside Ed25519: a verification, ${ROUNDS} rounds of ${VERIFICATIONS_A_ROUND}, and a check, ${SLICES}`,
  run: () => inWorkspace(measure),
};

async function measure(workspace: Workspace): Promise<PartResult> {
  const site = await writeSite(workspace.directory, { routes: 10, keys: 100, es256Keys: 100 });
  const ways = await waysOf(site);
  const costs = await measureWays(ways, WAY_NAMES);
  const checks = await measureChecks(workspace, site);
  const over = (way: WayName, base: WayName, atMost: number) => ({
    name: `${ways[way].name} over ${ways[base].name}`,
    value: cpuRatio(costs, way, base),
    atMost,
  });
  return {
    figures: [
      ...wayFigures(ways, costs),
      figure('check, Ed25519', 'µs CPU', checks.base),
      figure('check, ES256', 'µs CPU', checks.subject),
    ],
    bounds: [
      over('shipped', 'ed25519', MOST_VERIFICATION_RATIO),
      over('shipped', 'subtle', 1),
      over('shipped', 'pool', 1),
      ratioBound('check, ES256 over Ed25519', checks.ratios, MOST_CHECK_RATIO),
    ],
  };
}

async function measureChecks({ directory }: Workspace, site: BenchSite) {
  const source = siteArguments(site);
  const server = await startVerifier({ site, source, replay: 'memory', workDirectory: directory });
  const requestsOf = (callers: readonly BenchCaller[], count: number) =>
    goodRequests({ ...site, callers }, count);
  const load = (callers: readonly BenchCaller[]) => () => ({
    target: server,
    requests: requestsOf(callers, REQUESTS_A_SLICE),
  });
  try {
    for (const callers of [site.callers, site.es256Callers]) {
      await costOf(server, requestsOf(callers, WARM_UP_REQUESTS));
    }
    return await costInTurns(load(site.callers), load(site.es256Callers));
  } finally {
    await server.stop();
  }
}

/** Every way verifies transcripts of the same size; the message is hashed by the way itself. */
async function waysOf(site: BenchSite): Promise<{ readonly [N in WayName]: Way }> {
  const p256 = signedTranscripts(site, site.es256Callers);
  const subtleKeys = new Map<Signed, webcrypto.CryptoKey>();
  for (const one of p256) subtleKeys.set(one, await importForWebCrypto(one));
  const ders = new Map(p256.map((one) => [one, derOf(one.signature)]));
  const shipped: Way['way'] = ({ key, message, signature }) => verifySignature(key, message, signature);
  const alone = (name: string, way: Way['way']): Way => ({ name, inFlight: 1, way, signed: p256 });
  return {
    ed25519: {
      ...alone('Ed25519, as the verifier does it', shipped),
      signed: signedTranscripts(site, site.callers),
    },
    shipped: alone('ES256, as the verifier does it', shipped),
    der: alone('node:crypto, signature in DER', (one) =>
      verify('sha256', one.message, one.key.keyObject, ders.get(one) ?? one.signature),
    ),
    verifyObject: alone('node:crypto, createVerify', ({ key, message, signature }) =>
      createVerify('sha256').update(message).verify(p1363(key.keyObject), signature),
    ),
    subtle: alone('WebCrypto', (one) => {
      const key = subtleKeys.get(one);
      if (key === undefined) return false;
      return webcrypto.subtle.verify({ name: 'ECDSA', hash: 'SHA-256' }, key, one.signature, one.message);
    }),
    pool: alone('node:crypto, thread pool', onThePool),
  };
}

const p1363 = (key: Signed['key']['keyObject']) => ({ key, dsaEncoding: 'ieee-p1363' }) as const;

const onThePool: Way['way'] = ({ key, message, signature }) =>
  new Promise((resolve, reject) => {
    verify('sha256', message, p1363(key.keyObject), signature, (error, holds) => {
      if (error === null) resolve(holds);
      else reject(error);
    });
  });

function importForWebCrypto({ key }: Signed): Promise<webcrypto.CryptoKey> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256' };
  return webcrypto.subtle.importKey('jwk', { ...key.jwk }, algorithm, false, ['verify']);
}

/** ECDSA-Sig-Value (RFC 3279, section 2.2.3) of r and s. */
function derOf(signature: Buffer): Buffer {
  const integers = Buffer.concat([signature.subarray(0, 32), signature.subarray(32)].map(derInteger));
  return Buffer.concat([Buffer.from([0x30, integers.length]), integers]);
}

function derInteger(bytes: Buffer): Buffer {
  const start = bytes.findIndex((byte) => byte !== 0);
  const value = bytes.subarray(start === -1 ? 31 : start);
  const padded = (value[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), value]) : value;
  return Buffer.concat([Buffer.from([0x02, padded.length]), padded]);
}
