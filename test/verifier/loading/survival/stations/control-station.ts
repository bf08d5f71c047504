/** Documents that a hostile Control hands to a verifier that follows it. */
import { newDirectory } from '../../../../support/bundle/bundle-directory.ts';
import { startFollower as startRefreshing } from '../../refresh-fixture.ts';
import { CLOCK_SECONDS, type SignedChain, TARGETS, type Target } from '../signed-chain.ts';
import { asText, ControlScript, SHARD } from './control-script.ts';
import { loadedAfter } from './directory-station.ts';
import { HostileControl } from './hostile-control.ts';
import { isDocumentAsSigned, type Loaded, loadedOf, requestOutcome, type Station } from './station.ts';

export async function openControlStation(chain: SignedChain, target: Target): Promise<Station> {
  const control = await HostileControl.start();
  const follower = await startFollower(chain, control.url, await newDirectory());
  const { loader } = follower;
  const script = new ControlScript(chain, control);
  await control.say(script.oldBundle());
  const isFirst = target === 'bundle.jws' || target === SHARD;
  const leading = isFirst ? undefined : TARGETS[TARGETS.indexOf(target) - 1];
  if (leading !== undefined) await control.say(script.leadTo(leading, chain.before[target]));
  const documents = new Map(TARGETS.map((name) => [name, chain.documents[name]]));
  const loaded = () => withoutAge(loadedOf(loader.snapshot), target);
  const after = withoutAge(await loadedAfter(chain, target), target);
  return {
    get before() {
      return loaded();
    },
    after,
    // Unknown statements alone are answered by a pause.
    prepare: () => control.say(script.soundStatement()),
    isAsSigned: (bytes) => isDocumentAsSigned(chain, target, isFirst ? bytes : Buffer.from(asText(bytes))),
    async offer(bytes) {
      await control.say(script.offer(new Map(documents).set(target, bytes), target));
      return loaded();
    },
    request: (nowSeconds) => requestOutcome(chain, loader, nowSeconds),
    async close() {
      await follower.stop();
      await control.close();
    },
  };
}

/** Ignores what valid statements change besides. */
function withoutAge(loaded: Loaded, target: Target): Loaded {
  if (loaded === undefined || target === 'freshness.jws') return loaded;
  const { freshAsOfSeconds: _, ...others } = loaded;
  return others;
}

/** A verifier's bundle that follows a Control. */
export function startFollower(chain: SignedChain, url: string, stateDirectory: string) {
  const { bundleSigners, freshnessSigners } = chain;
  return startRefreshing({
    url,
    stateDirectory,
    bundleSigners,
    freshnessSigners,
    nowSeconds: () => CLOCK_SECONDS,
    // No poll of files without a trigger.
    pollIntervalMs: 3_600_000,
    answerTimeoutMs: 15_000,
    retryFirstMs: 1,
    retryMaxMs: 4,
  });
}
