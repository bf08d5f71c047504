/**
 * A site to measure: `proofgate control` as a process of its own, on SQLite, with its default log level; as many live keys as
 * wanted, listed in its whole bundle; and targets that follow it.
 */
import { readFile } from 'node:fs/promises';
import { request } from 'undici';
import { POLL_PATH } from '../../src/bundle/format/bundle-limits.ts';
import type { ControlClient } from '../../src/cli/ctl/client/control-client.ts';
import { isJsonObject } from '../../src/protocol/strict-json.ts';
import { ControlStage } from '../../test/support/control/control-fixture.ts';
import { instanceArguments } from '../../test/support/control/control-instance.ts';
import { SITE_ID } from '../../test/support/control/site-declaration.ts';
import { type Service, startProofgate } from '../../test/support/harness/sidecar.ts';
import { waitFor } from '../../test/support/wait.ts';
import { cpuUsOf } from '../machine.ts';
import { seedKeys } from './seed-keys.ts';
import { SimulatedTargets } from './simulated-targets.ts';

const CREATIONS_AT_ONCE = 4;
/** Another one than the declared route has. */
const CHANGED_STALENESS_SECONDS = 29;

export interface SiteWish {
  readonly keys: number;
  readonly targets: number;
}

export class MeasuredSite {
  readonly stage: ControlStage;
  readonly targets: SimulatedTargets;
  readonly api: ControlClient;
  /** The policy under which keys are enrolled, with automatic approval. */
  readonly policy: string;
  readonly bootstrapToken: string;
  readonly #control: Service;

  private constructor(
    parts: Pick<MeasuredSite, 'stage' | 'targets' | 'api' | 'policy' | 'bootstrapToken'>,
    control: Service,
  ) {
    this.stage = parts.stage;
    this.targets = parts.targets;
    this.api = parts.api;
    this.policy = parts.policy;
    this.bootstrapToken = parts.bootstrapToken;
    this.#control = control;
  }

  /** All targets have the bundle that lists the keys. */
  static async open(wish: SiteWish): Promise<MeasuredSite> {
    const stage = await ControlStage.start();
    let control: Service | undefined;
    try {
      const { reference } = await stage.policy('billing');
      const { keyId } = await stage.enroll('billing');
      await stage.stopControl();
      const revision = await seedKeys(stage.dataDirectory, keyId, wish.keys);
      control = await startControl(stage);
      const api = await stage.api();
      const tokens = await createTargets(api, wish.targets);
      const published = await untilListed(stage.controlUrl, tokens[0] ?? '', { ...wish, after: revision });
      const targets = new SimulatedTargets(stage.controlUrl, tokens);
      await targets.hold(published);
      const bootstrapToken = (await readFile(stage.tokenFile, 'utf8')).trim();
      return new MeasuredSite({ stage, targets, api, policy: String(reference), bootstrapToken }, control);
    } catch (error) {
      await control?.stop();
      await stage.stop();
      throw error;
    }
  }

  /** CPU that Control has used so far, milliseconds. */
  get cpuMs(): number {
    return cpuUsOf(this.#control.pid) / 1000;
  }

  /** Another whole bundle. @returns milliseconds from the answer until all targets acknowledged it */
  async changeRoute(): Promise<number> {
    const path = `/v1/sites/${SITE_ID}/routes/orders-read`;
    const { body, etag } = await this.api.get(path);
    const { revision } = this.targets;
    if (!isJsonObject(body.definition)) throw new Error('a route without a definition');
    const definition = { ...body.definition, max_staleness_seconds: CHANGED_STALENESS_SECONDS };
    await this.api.put(path, { body: { definition }, etag });
    const answeredMs = performance.now();
    return (await this.targets.spread.everywhereAfter(revision)) - answeredMs;
  }

  async close(): Promise<void> {
    await this.targets.stop();
    await this.api.close();
    await this.#control.stop();
    await this.stage.stop();
  }
}

/** As the end-to-end tests run it, but for what they have it log. */
function startControl(stage: ControlStage): Promise<Service> {
  const args = instanceArguments(stage.instanceSettings());
  const level = args.indexOf('--log-level');
  return startProofgate(args.toSpliced(level, 2), {
    readyUrl: `${stage.controlUrl}/healthz`,
  });
}

/** @returns their tokens */
async function createTargets(api: ControlClient, count: number): Promise<readonly string[]> {
  const tokens: string[] = [];
  let next = 0;
  const create = async () => {
    while (next < count) {
      next += 1;
      const { body } = await api.create(`/v1/sites/${SITE_ID}/targets`, {
        body: { name: `gateway ${next}` },
      });
      tokens.push(String(body.token));
    }
  };
  await Promise.all(Array.from({ length: CREATIONS_AT_ONCE }, create));
  return tokens;
}

/** @returns revision of the whole bundle @throws Error when it does not list the keys */
async function untilListed(
  url: string,
  token: string,
  { keys, after }: { readonly keys: number; readonly after: number },
): Promise<number> {
  const get = async (path: string) => {
    const { statusCode, body } = await request(`${url}${path}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`${path} was answered ${statusCode}`);
    return text;
  };
  const whole = await waitFor('a bundle that lists the keys', async () => {
    const { whole } = JSON.parse(await get(POLL_PATH));
    return whole.revision > after ? whole : undefined;
  });
  let listed = 0;
  for (const { name, path } of whole.files) {
    if (String(name).endsWith('.jsonl')) listed += (await get(path)).split('\n').filter(Boolean).length;
  }
  if (listed < keys) throw new Error(`the bundle lists ${listed} keys, not ${keys}`);
  return whole.revision;
}
