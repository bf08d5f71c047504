/** Half an hour of steady load, good and bad requests mixed: memory stays where it was. */
import { setTimeout as sleep } from 'node:timers/promises';
import { figure, type Part, type PartResult } from '../report.ts';
import { slopeOf } from '../statistics.ts';
import { latenciesAt } from './load.ts';
import { encodeRequest, fieldsOf, goodPlan } from './requests.ts';
import { residentMib } from './scale.ts';
import { siteArguments, startVerifier } from './servers.ts';
import { type BenchSite, writeSite } from './site.ts';
import { inWorkspace, type Workspace } from './workspace.ts';

const MINUTES = Number(process.env.PROOFGATE_BENCH_SOAK_MINUTES ?? 30);
const REQUESTS_A_SECOND = 500;
const SLICE_SECONDS = 10;
/** Caches and the store's records, kept for five minutes, fill up first. */
const SETTLING_SHARE = 0.4;
/** Of the resident memory in an hour: noise of the garbage collector stays below, a leak of a few bytes a request does not. */
const MOST_SHARE_AN_HOUR = 0.1;
const LEAST_POINTS = 10;

export const memorySoak: Part = {
  name: 'soak',
  title: `resident memory over ${MINUTES} minutes at ${REQUESTS_A_SECOND} requests a second, a third of them refused, half with new passports`,
  run: () => inWorkspace(measure),
};

async function measure(workspace: Workspace): Promise<PartResult> {
  const site = await writeSite(workspace.directory, { routes: 10, keys: 100 });
  const verifier = workspace.started(
    await startVerifier({
      site,
      source: siteArguments(site),
      replay: 'memory',
      workDirectory: workspace.directory,
    }),
  );
  const points: { readonly x: number; readonly y: number }[] = [];
  const startMs = performance.now();
  while (performance.now() - startMs < MINUTES * 60_000) {
    const target = { ...verifier, isGood: (answer: Buffer) => answer.byteLength > 0 };
    await latenciesAt(target, mixedRequests(site), REQUESTS_A_SECOND);
    await sleep(0);
    points.push({ x: (performance.now() - startMs) / 3_600_000, y: residentMib(verifier.pid) });
  }
  const settled = points.slice(Math.floor(points.length * SETTLING_SHARE));
  if (settled.length < LEAST_POINTS) throw new Error('void run: too short for a slope');
  const mib = settled.map(({ y }) => y);
  const slope = slopeOf(settled);
  const mean = mib.reduce((sum, value) => sum + value, 0) / mib.length;
  return {
    figures: [figure('resident memory', 'MiB', mib), figure('slope', 'MiB an hour', [slope])],
    bounds: [
      { name: 'growth in an hour, share of the memory', value: slope / mean, atMost: MOST_SHARE_AN_HOUR },
    ],
  };
}

function mixedRequests(site: BenchSite): Buffer[] {
  return Array.from({ length: REQUESTS_A_SECOND * SLICE_SECONDS }, (_, index) => {
    const good = { ...goodPlan(site, index), freshPassport: index % 2 === 0 };
    return encodeRequest(fieldsOf(index % 3 === 0 ? { ...good, sentPath: `${good.path}x` } : good));
  });
}
