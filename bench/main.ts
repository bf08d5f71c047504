/**
 * `make bench`: measures the cost of the request plane in parts, each against floors or smaller cases measured in the same run.
 * Usage: node main.js [PART…]; without names, all parts but the half hour of `soak`. Figures go to the terminal and to
 * `bench/results.json`. Exit code 1: a figure crosses its bound or a part has no result; 2: unknown part.
 */
import { fileURLToPath } from 'node:url';
import { passports } from './broker/passports.ts';
import { footprint } from './footprint/footprint.ts';
import { keep, type Part, print } from './report.ts';
import { behindEnvoy } from './request-plane/behind-envoy.ts';
import { checkCost, checkCostInImage } from './request-plane/check-cost.ts';
import { deltaCost } from './request-plane/delta-cost.ts';
import { deltaLatency } from './request-plane/delta-latency.ts';
import { denials } from './request-plane/denials.ts';
import { ed25519 } from './request-plane/ed25519.ts';
import { es256 } from './request-plane/es256.ts';
import { hostileInput } from './request-plane/hostile-input.ts';
import { latency } from './request-plane/latency.ts';
import { liveRecords } from './request-plane/live-records.ts';
import { memorySoak } from './request-plane/memory-soak.ts';
import { middlewareCost } from './request-plane/middleware.ts';
import { proxies } from './request-plane/proxies.ts';
import { scale } from './request-plane/scale.ts';
import { signer } from './request-plane/signer.ts';
import { sdk } from './sdk/signatures.ts';

const PARTS: readonly Part[] = [
  checkCost,
  checkCostInImage,
  latency,
  behindEnvoy,
  denials,
  hostileInput,
  scale,
  deltaCost,
  deltaLatency,
  ed25519,
  es256,
  liveRecords,
  middlewareCost,
  proxies,
  signer,
  passports,
  sdk,
  footprint,
  memorySoak,
];
const ONLY_BY_NAME: ReadonlySet<Part> = new Set([memorySoak]);

/** The compiled program lies in `.build/bench/`. */
const RESULTS = fileURLToPath(new URL('../../bench/results.json', import.meta.url));

function chosen(names: readonly string[]): readonly Part[] {
  if (names.length === 0) return PARTS.filter((part) => !ONLY_BY_NAME.has(part));
  const parts = PARTS.filter(({ name }) => names.includes(name));
  if (parts.length === new Set(names).size) return parts;
  console.error(`no such part; there are ${PARTS.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}

for (const part of chosen(process.argv.slice(2))) {
  try {
    const result = await part.run();
    if (!print(part, result)) process.exitCode = 1;
    keep(RESULTS, part, result);
  } catch (error) {
    // The others are not void for it.
    console.error(`\n${part.name}: no result`, error);
    process.exitCode = 1;
  }
}
