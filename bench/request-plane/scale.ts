/**
 * A check costs the same whatever the site holds: 10 to 10,000 routes, 100 to 100,000 derived keys, always the same 100
 * callers on the same ten routes. All verifiers run at once, and rounds go from one to the next.
 */
import { readFileSync } from 'node:fs';
import { type Figure, figure, type Part, type PartResult } from '../report.ts';
import { median } from '../statistics.ts';
import { costOf } from './load.ts';
import { goodRequests } from './requests.ts';
import { type RunningVerifier, siteArguments, startVerifier } from './servers.ts';
import { type BenchSite, type SiteSize, writeSite } from './site.ts';
import { inWorkspace, type Workspace } from './workspace.ts';

const SMALLEST: SiteSize = { routes: 10, keys: 100 };
const LARGEST: SiteSize = { routes: 10_000, keys: 100_000 };
const SIZES: readonly SiteSize[] = [
  SMALLEST,
  { routes: 1_000, keys: 100 },
  { routes: 10_000, keys: 100 },
  { routes: 10, keys: 10_000 },
  { routes: 10, keys: 100_000 },
];
const ROUNDS = 7;
const REQUESTS_A_ROUND = 10_000;
const MOST_RATIO = 1.1;

export const scale: Part = {
  name: 'scale',
  title: `CPU of one check by the size of the site, ${ROUNDS} rounds of ${REQUESTS_A_ROUND}; loading the largest`,
  run: () => inWorkspace(measure),
};

interface Measured {
  readonly site: BenchSite;
  readonly verifier: RunningVerifier;
  readonly cpuUs: number[];
}

async function measure(workspace: Workspace): Promise<PartResult> {
  const loaded = await measureLoading(workspace);
  const measured: Measured[] = [];
  for (const size of SIZES) {
    const site = await writeSite(workspace.directory, size);
    measured.push({ site, verifier: workspace.started(await start(site, workspace)), cpuUs: [] });
  }
  for (let round = 0; round < ROUNDS; round++) {
    for (const { cpuUs, site, verifier } of measured) {
      cpuUs.push((await costOf(verifier, goodRequests(site, REQUESTS_A_ROUND))).cpuUs);
    }
  }
  const [smallest, ...larger] = measured;
  const base = median(smallest?.cpuUs ?? []);
  return {
    figures: [...measured.map(({ cpuUs, site }) => figure(nameOf(site.size), 'µs CPU', cpuUs)), ...loaded],
    bounds: larger.map(({ cpuUs, site }) => ({
      name: `${nameOf(site.size)}, over the smallest`,
      value: median(cpuUs) / base,
      atMost: MOST_RATIO,
    })),
  };
}

function start(site: BenchSite, { directory }: Workspace): Promise<RunningVerifier> {
  return startVerifier({ site, source: siteArguments(site), replay: 'memory', workDirectory: directory });
}

/** Of a verifier that starts with the largest bundle, and of one with the smallest beside it. */
async function measureLoading(workspace: Workspace): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const size of [SMALLEST, LARGEST]) {
    const site = await writeSite(workspace.directory, size);
    const verifier = await start(site, workspace);
    figures.push(figure(`start to ready, ${nameOf(size)}`, 'ms', [verifier.readyAfterMs]));
    figures.push(figure(`resident memory then, ${nameOf(size)}`, 'MiB', [residentMib(verifier.pid)]));
    await verifier.stop();
  }
  return figures;
}

/** proc(5), `VmRSS`, in KiB. */
export function residentMib(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}

function nameOf({ keys, routes }: SiteSize): string {
  return `${routes.toLocaleString('en')} routes, ${keys.toLocaleString('en')} keys`;
}
