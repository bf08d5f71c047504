/** The distribution endpoint of Control, as targets use it: the publisher and the target routes over real HTTP. */
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { createControlApp } from '../../../src/control/api/app.ts';
import { registerTargetSelfRoutes } from '../../../src/control/api/routes/targets-self-api.ts';
import { ApiProblem } from '../../../src/control/domain/api-problem.ts';
import { newId } from '../../../src/control/domain/resource-identifiers.ts';
import { Distribution } from '../../../src/control/publishing/distribution.ts';
import { Publisher } from '../../../src/control/publishing/publisher.ts';
import { newToken, tokenHash } from '../../../src/control/secrets/bearer-token.ts';
import { type ControlWorld, SITE } from './publishing-fixture.ts';

export interface TestTarget {
  readonly id: string;
  readonly token: string;
}

export async function addTargets(world: ControlWorld, count: number): Promise<readonly TestTarget[]> {
  const { ms } = world.clock;
  const targets = Array.from({ length: count }, () => ({
    id: newId('target', ms),
    token: newToken('target'),
  }));
  await world.change(async (tx) => {
    for (const { id, token } of targets) {
      await tx.targets.add({
        id,
        siteId: SITE,
        name: id,
        state: 'attached',
        tokenHash: tokenHash(token),
        version: 1,
        createdAtMs: ms,
        updatedAtMs: ms,
      });
    }
  });
  return targets;
}

export async function addTarget(world: ControlWorld): Promise<TestTarget> {
  const [target] = await addTargets(world, 1);
  if (target === undefined) throw new Error('no target');
  return target;
}

export async function detach(world: ControlWorld, targetId: string): Promise<void> {
  await world.change(async (tx) => {
    const row = await tx.targets.find(targetId);
    if (row !== undefined) await tx.targets.change(row, { state: 'detached' }, world.clock.ms);
  });
}

export class ControlServer {
  readonly url: string;
  readonly distribution: Distribution;
  readonly publisher: Publisher;
  /** Errors that the publisher or the distribution reported. */
  readonly faults: unknown[];
  readonly #close: () => Promise<void>;

  private constructor(
    parts: Pick<ControlServer, 'url' | 'distribution' | 'publisher' | 'faults'>,
    close: () => Promise<void>,
  ) {
    this.url = parts.url;
    this.distribution = parts.distribution;
    this.publisher = parts.publisher;
    this.faults = parts.faults;
    this.#close = close;
  }

  /** @param port the previous port, so that targets find a restarted server */
  static async start({ store, signingKeys, clock }: ControlWorld, port = 0): Promise<ControlServer> {
    const faults: unknown[] = [];
    const { nowMs } = clock;
    const distribution = new Distribution({ store, nowMs, onFault: (error) => faults.push(error) });
    const publisher = new Publisher({
      store,
      signingKeys,
      nowMs,
      onFault: (_activity, _siteId, error) => faults.push(error),
    });
    const app = await createControlApp({
      store,
      operators: { authenticate: () => Promise.reject(new ApiProblem('authentication_required')) },
      targets: distribution,
      log: pino({ enabled: false }),
      origins: [],
      limits: { requestsPerSecondPerTarget: 1000 },
    });
    registerTargetSelfRoutes(app, distribution);
    await app.listen({ host: '127.0.0.1', port });
    publisher.start();
    const address = app.server.address() as AddressInfo;
    const parts = { url: `http://127.0.0.1:${address.port}`, distribution, publisher, faults };
    return new ControlServer(parts, async () => {
      await app.close();
      await publisher.close();
      await distribution.close();
    });
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  close(): Promise<void> {
    return this.#close();
  }
}

const LOOK_AGAIN_MS = 10;
/** Below the timeout of the tests, so that the failure names the missing condition. */
const GIVE_UP_MS = 25_000;

export async function eventually(holds: () => Promise<boolean> | boolean): Promise<void> {
  const endMs = performance.now() + GIVE_UP_MS;
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`never: ${holds.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
}
