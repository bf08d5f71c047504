/** Follows Control in this process as a verifier does: state directory, refresh, acknowledgements. */
import { mkdir, readFile } from 'node:fs/promises';
import { importPublicJwk } from '../../../../src/protocol/import-public-key.ts';
import type { JsonObject } from '../../../../src/protocol/strict-json.ts';
import { BundleLoader } from '../../../../src/verifier/loading/bundle-loader.ts';
import { ControlConnection } from '../../../../src/verifier/loading/refresh/control-connection.ts';
import { Refresher } from '../../../../src/verifier/loading/refresh/refresher.ts';
import { FileMark } from '../../../../src/verifier/loading/state/high-water-mark.ts';
import { PersistedBundle } from '../../../../src/verifier/loading/state/persisted-bundle.ts';
import type { ControlStage } from '../../../support/control/control-fixture.ts';
import { SITE_ID } from '../../../support/control/site-declaration.ts';

export interface FollowerOptions {
  readonly stage: ControlStage;
  /** Default: the stage's. */
  readonly controlUrl?: string;
  readonly stateDirectory: string;
  readonly tokenFile: string;
}

export class SiteFollower {
  readonly loader: BundleLoader;
  /** Codes of what it refused. */
  readonly problems: string[];
  readonly #close: () => Promise<void>;

  private constructor(loader: BundleLoader, problems: string[], close: () => Promise<void>) {
    this.loader = loader;
    this.problems = problems;
    this.#close = close;
  }

  static async start(options: FollowerOptions): Promise<SiteFollower> {
    const { stage, controlUrl = stage.controlUrl, stateDirectory, tokenFile } = options;
    await mkdir(stateDirectory, { recursive: true });
    const problems: string[] = [];
    const persisted = new PersistedBundle(stateDirectory);
    const mark = new FileMark({ stateDirectory, authSite: SITE_ID });
    const nowSeconds = () => Math.floor(Date.now() / 1000);
    const loader = new BundleLoader({
      authSite: SITE_ID,
      directory: undefined,
      persisted,
      bundleSigners: await pinnedKeys(stage, 'bundle'),
      freshnessSigners: await pinnedKeys(stage, 'freshness'),
      mark,
      nowSeconds,
      listener: {
        refused: ({ code }) => problems.push(code),
        freshnessRefused: ({ code }) => problems.push(`freshness ${code}`),
      },
    });
    await loader.start();
    const readToken = async () => (await readFile(tokenFile, 'utf8')).trim();
    const connection = new ControlConnection({ url: new URL(controlUrl), readToken });
    const common = {
      authSite: SITE_ID,
      connection,
      loader,
      persisted,
      mark,
      nowSeconds,
      secondsUntilStale: () => 10,
    };
    const refresher = new Refresher({ ...common, retryFirstMs: 20, retryMaxMs: 200 });
    refresher.start();
    return new SiteFollower(loader, problems, async () => {
      await refresher.close();
      loader.close();
      await persisted.close();
    });
  }

  get revision(): number {
    return this.loader.position?.revision ?? 0;
  }

  /** `active`, `revoked`; undefined for a key that requests cannot use. */
  statusOf(keyId: string): string | undefined {
    const key = this.loader.snapshot?.keys.get(keyId);
    return key?.kind === 'derived_key' ? key.status : undefined;
  }

  /** Number of all keys, including issuers' keys. */
  get keyCount(): number {
    return this.loader.snapshot?.keys.size ?? 0;
  }

  stop(): Promise<void> {
    return this.#close();
  }
}

async function pinnedKeys(stage: ControlStage, purpose: 'bundle' | 'freshness') {
  const api = await stage.api();
  try {
    const { items } = (await api.get(`/v1/sites/${SITE_ID}/signing-keys`)).body;
    const keys = (Array.isArray(items) ? items : []).flatMap((item: JsonObject) => {
      const key = item.purpose === purpose ? importPublicJwk(item.jwk) : undefined;
      return key === undefined ? [] : [key];
    });
    return { keys, threshold: 1 };
  } finally {
    await api.close();
  }
}
