/** Deltas arrive without a mark on the request path: how long checks take while a Control publishes 30 a second, and while it does not. */

import { formatTime } from '../../src/bundle/times.ts';
import { waitFor } from '../../test/e2e/harness/wait.ts';
import { type FakeControl, startFakeControl } from '../../test/fakes/control-distribution.ts';
import { figure, type Part, type PartResult } from '../report.ts';
import { ascending, median, percentile } from '../statistics.ts';
import { costOf, latenciesAt } from './load.ts';
import { goodRequests } from './requests.ts';
import { controlArguments, startVerifier } from './servers.ts';
import { AUTH_SITE, type BenchSite, contentOf, keyEntry, keyName, writeSite } from './site.ts';
import { inWorkspace, type Workspace } from './workspace.ts';

const KEYS = 100_000;
const DELTAS_A_SECOND = 30;
const KEYS_A_DELTA = 10;
const SLICES = 8;
const SLICE_SECONDS = 4;
const CAPACITY_REQUESTS = 15_000;
const MOST_RATIO = 1.5;
/** Of the deltas that are due in a slice: the last may be on its way when it ends. */
const LEAST_SHARE = 0.95;
/** After a slice: a verifier that falls behind has not had the load that is measured. */
const MOST_BEHIND_MS = 5_000;
const TOKEN = 'bench-target-token';

export const deltaLatency: Part = {
  name: 'delta-latency',
  title: `time of one check at half load, with ${DELTAS_A_SECOND} deltas of ${KEYS_A_DELTA} keys a second onto ${KEYS} keys and without, ${SLICES} slices of ${SLICE_SECONDS} s each, in turns`,
  run: () => inWorkspace(measure),
};

async function measure(workspace: Workspace): Promise<PartResult> {
  const site = await writeSite(workspace.directory, { routes: 10, keys: 100 });
  const control = await startControl(workspace, site);
  const source = await controlArguments(control.url, TOKEN, workspace.directory);
  const verifier = workspace.started(
    await startVerifier({ site, source, replay: 'memory', workDirectory: workspace.directory }),
  );
  const { perSecond } = await costOf(verifier, goodRequests(site, CAPACITY_REQUESTS));
  const rate = perSecond / 2;
  const deltas = new DeltaStream(control);
  const p99Ms = { quiet: [] as number[], deltas: [] as number[] };
  const takenAfterMs: number[] = [];
  for (let slice = 0; slice < SLICES; slice++) {
    for (const kind of ['quiet', 'deltas'] as const) {
      const requests = goodRequests(site, Math.floor(rate * SLICE_SECONDS));
      const stop = kind === 'deltas' ? deltas.begin() : () => undefined;
      const latenciesMs = await latenciesAt(verifier, requests, rate).finally(stop);
      p99Ms[kind].push(percentile(ascending(latenciesMs), 0.99));
      // None is left over for a slice that is to be quiet.
      if (kind === 'deltas') takenAfterMs.push(await untilTaken(control));
    }
  }
  return report(deltas, takenAfterMs, p99Ms);
}

function report(
  { perSecond, published }: DeltaStream,
  takenAfterMs: readonly number[],
  p99Ms: { readonly quiet: readonly number[]; readonly deltas: readonly number[] },
): PartResult {
  const ratio = median(p99Ms.deltas) / median(p99Ms.quiet);
  return {
    figures: [
      figure('deltas published, and all taken', '', [published]),
      figure('deltas in a second', '', perSecond),
      figure('from the end of a slice until the last was taken', 'ms', takenAfterMs),
      figure('without deltas, p99', 'ms', p99Ms.quiet),
      figure('with deltas, p99', 'ms', p99Ms.deltas),
    ],
    bounds: [{ name: 'p99 with deltas over without', value: ratio, atMost: MOST_RATIO }],
  };
}

/** With all the keys, published and fresh. */
async function startControl(workspace: Workspace, { signer }: BenchSite): Promise<FakeControl> {
  const control = await startFakeControl({ authSite: AUTH_SITE, signer, nowSeconds, token: TOKEN });
  workspace.started({ stop: () => control.close() });
  const times = { issued_at: formatTime(nowSeconds()), expires_at: formatTime(nowSeconds() + 7200) };
  control.publishWhole({ ...contentOf({ routes: 10, keys: KEYS }), ...times }, true);
  control.freshen();
  return control;
}

/** Deltas by the clock: new keys for as many old ones. What is late is made up for. */
class DeltaStream {
  readonly #control: FakeControl;
  #nextKey = KEYS;
  /** Of each slice. */
  readonly perSecond: number[] = [];

  constructor(control: FakeControl) {
    this.#control = control;
  }

  get published(): number {
    return (this.#nextKey - KEYS) / KEYS_A_DELTA;
  }

  /** @returns ends it; void when there were fewer than a slice is to have */
  begin(): () => void {
    const before = this.published;
    const startMs = performance.now();
    const publishDue = () => {
      const seconds = (performance.now() - startMs) / 1000;
      while (this.published - before < Math.floor(seconds * DELTAS_A_SECOND)) this.#publish();
    };
    const timer = setInterval(publishDue, 1000 / DELTAS_A_SECOND);
    return () => {
      clearInterval(timer);
      const perSecond = (this.published - before) / ((performance.now() - startMs) / 1000);
      if (perSecond < DELTAS_A_SECOND * LEAST_SHARE) {
        throw new Error(`void run: ${perSecond} deltas in a second`);
      }
      this.perSecond.push(perSecond);
    };
  }

  #publish(): void {
    const indices = Array.from({ length: KEYS_A_DELTA }, () => this.#nextKey++);
    const expiresAt = formatTime(nowSeconds() + 3600);
    this.#control.publishDelta({
      keys_put: indices.map((index) => keyEntry(index, expiresAt)),
      // Never one of the hundred that are in use.
      keys_removed: indices.map((index) => keyName(index - KEYS + 100)),
    });
  }
}

/** Until the verifier acknowledges the end of the chain. @returns milliseconds @throws when it does not: the run is void */
async function untilTaken(control: FakeControl): Promise<number> {
  const startMs = performance.now();
  const { head, revision } = control.position;
  const atMs = await waitFor(`void run: revision ${revision} to be taken`, MOST_BEHIND_MS, () => {
    const last = control.acknowledgements.findLast(({ outcome }) => outcome === 'accepted');
    return last?.revision === revision && last.head === head ? last.atMs : undefined;
  });
  return Math.max(0, atMs - startMs);
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
