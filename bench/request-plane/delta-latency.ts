/**
 * Measures whether deltas delay checks: latency of checks while a Control publishes 30 deltas a second, and while it publishes
 * none.
 */
import { keepOnCore, keepThisOnCore, MEASURED_CORE, OTHERS_CORE } from '../machine.ts';
import { figure, type Part, type PartResult, ratioBound } from '../report.ts';
import { ascending } from '../statistics.ts';
import { ratios } from './cost-in-turns.ts';
import { DELTAS_A_SECOND, DeltaPublisher, KEYS, KEYS_A_DELTA } from './delta-publisher.ts';
import { disturbance, measureInTurns, percentiles } from './in-turns.ts';
import { costOf, latenciesAt } from './load.ts';
import { goodRequests } from './requests.ts';
import { controlArguments, startVerifier } from './servers.ts';
import { writeSite } from './site.ts';
import { inWorkspace, type Workspace } from './workspace.ts';

const PAIRS = 8;
const MOST_PAIRS = 16;
const SLICE_SECONDS = 4;
const CAPACITY_REQUESTS = 15_000;
const MOST_RATIO = 1.5;

export const deltaLatency: Part = {
  name: 'delta-latency',
  title: `time of one check at a quarter of the load, with ${DELTAS_A_SECOND} deltas of ${KEYS_A_DELTA} keys a second onto ${KEYS} keys and without, ${PAIRS} slices of ${SLICE_SECONDS} s each, in turns`,
  run: () => inWorkspace(measure),
};

async function measure(workspace: Workspace): Promise<PartResult> {
  const site = await writeSite(workspace.directory, { routes: 10, keys: 100 });
  const publisher = workspace.started(await DeltaPublisher.start(site));
  const source = await controlArguments(publisher.url, publisher.token, workspace.directory);
  const verifier = workspace.started(
    await startVerifier({ site, source, replay: 'memory', workDirectory: workspace.directory }),
  );
  keepOnCore(verifier.pid, MEASURED_CORE);
  workspace.started(keepThisOnCore(OTHERS_CORE));
  const { perSecond } = await costOf(verifier, goodRequests(site, CAPACITY_REQUESTS));
  // The publisher shares a core with the sender.
  const rate = perSecond / 4;
  const requests = () => goodRequests(site, Math.floor(rate * SLICE_SECONDS));
  const perSecondWith: number[] = [];
  const takenAfterMs: number[] = [];
  const measured = await measureInTurns({
    first: () => {
      const sent = requests();
      return async () => ascending(await latenciesAt(verifier, sent, rate));
    },
    second: () => {
      const sent = requests();
      return async () => {
        await publisher.begin();
        const latenciesMs = await latenciesAt(verifier, sent, rate);
        perSecondWith.push(await publisher.end());
        // No delta is left over for a quiet slice.
        takenAfterMs.push(await publisher.untilTaken());
        return ascending(latenciesMs);
      };
    },
    pairs: PAIRS,
    mostPairs: MOST_PAIRS,
  });
  const p99Ms = { quiet: percentiles(measured.first, 0.99), deltas: percentiles(measured.second, 0.99) };
  return {
    figures: [
      figure('deltas published in a second, and all taken', '', perSecondWith),
      figure('from the end of a slice until the last was taken', 'ms', takenAfterMs),
      figure('without deltas, p99', 'ms', p99Ms.quiet),
      figure('with deltas, p99', 'ms', p99Ms.deltas),
      ...disturbance(measured),
    ],
    bounds: [ratioBound('p99 with deltas over without', ratios(p99Ms.deltas, p99Ms.quiet), MOST_RATIO)],
  };
}
