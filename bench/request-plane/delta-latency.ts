/** Deltas arrive without a mark on the request path: how long checks take while a Control publishes 30 a second, and while it does not. */
import { figure, type Part, type PartResult } from '../report.ts';
import { ascending, median, percentile } from '../statistics.ts';
import { DELTAS_A_SECOND, DeltaPublisher, KEYS, KEYS_A_DELTA } from './delta-publisher.ts';
import { costOf, latenciesAt } from './load.ts';
import { goodRequests } from './requests.ts';
import { controlArguments, startVerifier } from './servers.ts';
import { writeSite } from './site.ts';
import { inWorkspace, type Workspace } from './workspace.ts';

const SLICES = 8;
const SLICE_SECONDS = 4;
const CAPACITY_REQUESTS = 15_000;
const MOST_RATIO = 1.5;

export const deltaLatency: Part = {
  name: 'delta-latency',
  title: `time of one check at half load, with ${DELTAS_A_SECOND} deltas of ${KEYS_A_DELTA} keys a second onto ${KEYS} keys and without, ${SLICES} slices of ${SLICE_SECONDS} s each, in turns`,
  run: () => inWorkspace(measure),
};

async function measure(workspace: Workspace): Promise<PartResult> {
  const site = await writeSite(workspace.directory, { routes: 10, keys: 100 });
  const publisher = workspace.started(await DeltaPublisher.start(site));
  const source = await controlArguments(publisher.url, publisher.token, workspace.directory);
  const verifier = workspace.started(
    await startVerifier({ site, source, replay: 'memory', workDirectory: workspace.directory }),
  );
  const { perSecond } = await costOf(verifier, goodRequests(site, CAPACITY_REQUESTS));
  const rate = perSecond / 2;
  const perSecondWith: number[] = [];
  const p99Ms = { quiet: [] as number[], deltas: [] as number[] };
  const takenAfterMs: number[] = [];
  for (let slice = 0; slice < SLICES; slice++) {
    for (const kind of ['quiet', 'deltas'] as const) {
      const requests = goodRequests(site, Math.floor(rate * SLICE_SECONDS));
      if (kind === 'deltas') await publisher.begin();
      const latenciesMs = await latenciesAt(verifier, requests, rate);
      p99Ms[kind].push(percentile(ascending(latenciesMs), 0.99));
      if (kind === 'quiet') continue;
      perSecondWith.push(await publisher.end());
      // None is left over for a slice that is to be quiet.
      takenAfterMs.push(await publisher.untilTaken());
    }
  }
  return report(perSecondWith, takenAfterMs, p99Ms);
}

function report(
  perSecond: readonly number[],
  takenAfterMs: readonly number[],
  p99Ms: { readonly quiet: readonly number[]; readonly deltas: readonly number[] },
): PartResult {
  const ratio = median(p99Ms.deltas) / median(p99Ms.quiet);
  return {
    figures: [
      figure('deltas published in a second, and all taken', '', perSecond),
      figure('from the end of a slice until the last was taken', 'ms', takenAfterMs),
      figure('without deltas, p99', 'ms', p99Ms.quiet),
      figure('with deltas, p99', 'ms', p99Ms.deltas),
    ],
    bounds: [{ name: 'p99 with deltas over without', value: ratio, atMost: MOST_RATIO }],
  };
}
