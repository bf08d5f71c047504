/**
 * Measures that a check costs the same whatever the size of the site: 10 to 10,000 routes, 100 to 100,000 derived keys, always
 * the same 100 callers on the same ten routes. All verifiers run at once, and each takes turns with the smallest.
 */
import { keepOnCore, keepThisOnCore, MEASURED_CORE, OTHERS_CORE, residentMib } from '../machine.ts';
import { type Bound, type Figure, figure, type Part, type PartResult, ratioBound } from '../report.ts';
import { costInTurns, type Load, REQUESTS_A_SLICE, SLICES } from './cost-in-turns.ts';
import { costOf } from './load.ts';
import { goodRequests } from './requests.ts';
import { type RunningVerifier, siteArguments, startVerifier } from './servers.ts';
import { type BenchSite, type SiteSize, writeSite } from './site.ts';
import { inWorkspace, type Workspace } from './workspace.ts';

const SMALLEST: SiteSize = { routes: 10, keys: 100 };
const LARGEST: SiteSize = { routes: 10_000, keys: 100_000 };
const LARGER: readonly SiteSize[] = [
  { routes: 1_000, keys: 100 },
  { routes: 10_000, keys: 100 },
  { routes: 10, keys: 10_000 },
  { routes: 10, keys: 100_000 },
];
const WARM_UP_REQUESTS = 10_000;
const MOST_RATIO = 1.1;

export const scale: Part = {
  name: 'scale',
  title: `CPU of one check by the size of the site, ${SLICES}, in turns with the smallest; loading the largest`,
  run: () => inWorkspace(measure),
};

interface Subject {
  readonly site: BenchSite;
  readonly verifier: RunningVerifier;
}

async function measure(workspace: Workspace): Promise<PartResult> {
  const loaded = await measureLoading(workspace);
  const smallest = await startSubject(SMALLEST, workspace);
  const larger: Subject[] = [];
  for (const size of LARGER) larger.push(await startSubject(size, workspace));
  workspace.started(keepThisOnCore(OTHERS_CORE));
  for (const { site, verifier } of [smallest, ...larger]) {
    await costOf(verifier, goodRequests(site, WARM_UP_REQUESTS));
  }
  const figures: Figure[] = [];
  const bounds: Bound[] = [];
  for (const { site, verifier } of larger) {
    const { base, ratios, subject } = await costInTurns(
      () => loadOf(smallest),
      () => loadOf({ site, verifier }),
    );
    figures.push(figure(nameOf(site.size), 'µs CPU', subject));
    figures.push(figure(`${nameOf(site.size)}: the smallest in turns with it`, 'µs CPU', base));
    bounds.push(ratioBound(`${nameOf(site.size)}, over the smallest`, ratios, MOST_RATIO));
  }
  return { figures: [...figures, ...loaded], bounds };
}

async function startSubject(size: SiteSize, workspace: Workspace): Promise<Subject> {
  const site = await writeSite(workspace.directory, size);
  const verifier = workspace.started(await start(site, workspace));
  keepOnCore(verifier.pid, MEASURED_CORE);
  return { site, verifier };
}

function loadOf({ site, verifier }: Subject): Load {
  return { target: verifier, requests: goodRequests(site, REQUESTS_A_SLICE) };
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

function nameOf({ keys, routes }: SiteSize): string {
  return `${routes.toLocaleString('en')} routes, ${keys.toLocaleString('en')} keys`;
}
