/** The states of a verifier that cases need, at one enforcement point: each started when the first case needs it. */
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import type { Snapshot } from '../../src/bundle/compile/snapshot.ts';
import type { PointState } from '../support/points/conformance-case.ts';
import type {
  EnforcementPoint,
  EnforcementPointDriver,
  PointOptions,
} from '../support/points/enforcement-point.ts';
import { loadSnapshot } from '../support/points/oracle.ts';
import { nowSeconds, type Site } from '../support/site/site.ts';
import { STANDARD_ROUTES, TOKEN_ISSUERS } from '../support/site/standard-routes.ts';
import { startRedis } from '../support/site/verifier-states.ts';

export interface StartedState {
  readonly point: EnforcementPoint;
  /** What the core decides from in this state. */
  readonly snapshot: Snapshot | undefined;
}

export interface PointStates {
  of(state: PointState): Promise<StartedState>;
  /** Ends every point, then what they used. */
  stop(): Promise<void>;
}

export function pointStates(driver: EnforcementPointDriver, site: Site): PointStates {
  const started = new Map<PointState, Promise<StartedState>>();
  const stops: (() => Promise<unknown>)[] = [];
  const start = async (state: PointState): Promise<StartedState> => {
    const { options, afterStart } = await STATES[state](site, stops);
    const point = await driver.start(options);
    stops.push(() => point.stop());
    await afterStart?.();
    return { point, snapshot: await loadSnapshot(site, options.bundleDirectory) };
  };
  return {
    of: (state) => {
      const starting = started.get(state) ?? start(state);
      started.set(state, starting);
      return starting;
    },
    stop: async () => {
      await Promise.allSettled(started.values());
      for (const stop of stops.reverse()) await stop();
    },
  };
}

/** What the core decides from in each state, with no point at all. */
export interface CoreStates {
  of(state: PointState): Promise<Snapshot | undefined>;
  stop(): Promise<void>;
}

export function coreStates(site: Site): CoreStates {
  const loaded = new Map<PointState, Promise<Snapshot | undefined>>();
  const load = async (state: PointState) => {
    const { options } = await STATES[BUNDLE_OF[state] ?? state](site, []);
    return loadSnapshot(site, options.bundleDirectory);
  };
  return {
    of: (state) => {
      const loading = loaded.get(state) ?? load(state);
      loaded.set(state, loading);
      return loading;
    },
    stop: async () => void (await Promise.allSettled(loaded.values())),
  };
}

/** States whose bundle is another one's; a core needs no Redis. */
const BUNDLE_OF: { readonly [S in PointState]?: PointState } = { redis: 'usual', redis_gone: 'usual' };

interface StateSetup {
  readonly options: PointOptions;
  readonly afterStart?: () => Promise<unknown>;
}

type MakeState = (site: Site, stops: (() => Promise<unknown>)[]) => Promise<StateSetup>;

const withBundle =
  (
    options: Partial<PointOptions> = {},
    makeBundle: (site: Site) => Promise<string> = (site) => site.makeBundle(),
  ): MakeState =>
  async (site) => ({ options: { ...usual(site, await makeBundle(site)), ...options } });

const onRedis =
  (isKilled: boolean): MakeState =>
  async (site, stops) => {
    const { server, url } = await startRedis({ site, stops });
    const options = { ...usual(site, await site.makeBundle()), replay: url };
    return { options, ...(isKilled && { afterStart: () => server.kill() }) };
  };

const STATES: { readonly [S in PointState]: MakeState } = {
  usual: withBundle(),
  redis: onRedis(false),
  redis_gone: onRedis(true),
  standard_proofs: withBundle({}, (site) =>
    site.makeBundle({ moreRoutes: Object.values(STANDARD_ROUTES), oauthIssuers: TOKEN_ISSUERS }),
  ),
  small_quota: withBundle({ holderQuota: 1 }),
  full_disk: withBundle({ audit: 'full_disk' }),
  no_bundle: withBundle({ becomesReady: false }, ({ directory }) => mkdtemp(join(directory, 'no-bundle-'))),
  expired_bundle: withBundle({ becomesReady: false }, makeBundleWithTimes(-100, -50)),
  future_bundle: withBundle({ becomesReady: false }, makeBundleWithTimes(1000, 2000)),
};

function usual(site: Site, bundleDirectory: string): PointOptions {
  return {
    site,
    bundleDirectory,
    replay: 'memory',
    audit: 'required_file',
    holderQuota: undefined,
    becomesReady: true,
  };
}

/** @param issuedInSeconds from now, like the other */
function makeBundleWithTimes(issuedInSeconds: number, expiresInSeconds: number) {
  return (site: Site) =>
    site.makeBundle({
      issuedAtSeconds: nowSeconds() + issuedInSeconds,
      expiresAtSeconds: nowSeconds() + expiresInSeconds,
    });
}
