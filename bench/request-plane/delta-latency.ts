/** Deltas arrive without a mark on the request path: how long checks take while a Control publishes 30 a second, and while it does not. */

import { formatTime } from '../../src/bundle/times.ts';
import { startFakeControl } from '../../test/fakes/control-distribution.ts';
import { figure, type Part, type PartResult } from '../report.ts';
import { ascending, median, percentile } from '../statistics.ts';
import { costOf, latenciesAt } from './load.ts';
import { goodRequests } from './requests.ts';
import { controlArguments, startVerifier } from './servers.ts';
import { AUTH_SITE, contentOf, keyEntry, keyName, writeSite } from './site.ts';
import { inWorkspace, type Workspace } from './workspace.ts';

const KEYS = 100_000;
const DELTAS_A_SECOND = 30;
const KEYS_A_DELTA = 10;
const SLICES = 8;
const SLICE_SECONDS = 4;
const CAPACITY_REQUESTS = 15_000;
const MOST_RATIO = 1.5;
const TOKEN = 'bench-target-token';

export const deltaLatency: Part = {
  name: 'delta-latency',
  title: `time of one check at half load, with ${DELTAS_A_SECOND} deltas of ${KEYS_A_DELTA} keys a second onto ${KEYS} keys and without, ${SLICES} slices of ${SLICE_SECONDS} s each, in turns`,
  run: () => inWorkspace(measure),
};

async function measure(workspace: Workspace): Promise<PartResult> {
  const site = await writeSite(workspace.directory, { routes: 10, keys: 100 });
  const nowSeconds = () => Math.floor(Date.now() / 1000);
  const control = await startFakeControl({
    authSite: AUTH_SITE,
    signer: site.signer,
    nowSeconds,
    token: TOKEN,
  });
  workspace.started({ stop: () => control.close() });
  const times = { issued_at: formatTime(nowSeconds()), expires_at: formatTime(nowSeconds() + 7200) };
  control.publishWhole({ ...contentOf({ routes: 10, keys: KEYS }), ...times }, true);
  control.freshen();
  const source = await controlArguments(control.url, TOKEN, workspace.directory);
  const verifier = workspace.started(
    await startVerifier({ site, source, replay: 'memory', workDirectory: workspace.directory }),
  );
  const { perSecond } = await costOf(verifier, goodRequests(site, CAPACITY_REQUESTS));
  const rate = perSecond / 2;
  const p99Ms = { quiet: [] as number[], deltas: [] as number[] };
  let next = KEYS;
  const publish = () => {
    const indices = Array.from({ length: KEYS_A_DELTA }, () => next++);
    const expiresAt = formatTime(nowSeconds() + 3600);
    control.publishDelta({
      keys_put: indices.map((index) => keyEntry(index, expiresAt)),
      // Never one of the hundred that are in use.
      keys_removed: indices.map((index) => keyName(index - KEYS + 100)),
    });
  };
  for (let slice = 0; slice < SLICES; slice++) {
    for (const kind of ['quiet', 'deltas'] as const) {
      const requests = goodRequests(site, Math.floor(rate * SLICE_SECONDS));
      const timer = kind === 'deltas' ? setInterval(publish, 1000 / DELTAS_A_SECOND) : undefined;
      const latenciesMs = await latenciesAt(verifier, requests, rate).finally(() => clearInterval(timer));
      p99Ms[kind].push(percentile(ascending(latenciesMs), 0.99));
    }
  }
  const taken = control.acknowledgements.findLast(({ outcome }) => outcome === 'accepted')?.revision ?? 0;
  const published = (next - KEYS) / KEYS_A_DELTA;
  if (taken < published / 2) throw new Error(`void run: the verifier took ${taken} of ${published} deltas`);
  return {
    figures: [
      figure('deltas published', '', [published]),
      figure('without deltas, p99', 'ms', p99Ms.quiet),
      figure('with deltas, p99', 'ms', p99Ms.deltas),
    ],
    bounds: [
      {
        name: 'p99 with deltas over without',
        value: median(p99Ms.deltas) / median(p99Ms.quiet),
        atMost: MOST_RATIO,
      },
    ],
  };
}
