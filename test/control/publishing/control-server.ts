/** The distribution endpoint of Control, as targets use it: the publisher and the target routes over real HTTP. */
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { OPTIONAL_MEMBERS } from '../../../src/bundle/format/bundle-limits.ts';
import { createControlApp } from '../../../src/control/api/app.ts';
import { registerTargetSelfRoutes } from '../../../src/control/api/routes/targets-api.ts';
import { ApiProblem } from '../../../src/control/domain/api-problem.ts';
import { newId } from '../../../src/control/domain/resource-identifiers.ts';
import { Distribution } from '../../../src/control/publishing/distribution.ts';
import { startPublisher } from '../../../src/control/publishing/publisher.ts';
import type { ReportingTarget } from '../../../src/control/publishing/target-tokens.ts';
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

/** A request of an attached target that names no optional member. */
export function requestOf(targetId: string): ReportingTarget {
  return { targetId, siteId: SITE, generation: -1, tokenHash: '', lackedMembers: OPTIONAL_MEMBERS };
}

export async function detach(world: ControlWorld, targetId: string): Promise<void> {
  await world.change(async (tx) => {
    const row = await tx.targets.find(targetId);
    if (row !== undefined) await tx.targets.change(row, { state: 'detached' }, world.clock.ms);
  });
}

export interface ControlServer {
  readonly url: string;
  readonly port: number;
  readonly distribution: Distribution;
  /** Errors that the publisher or the distribution reported. */
  readonly faults: readonly unknown[];
  readonly stopPublisher: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** @param port the previous port, so that targets find a restarted server */
export async function startControl(world: ControlWorld, port = 0): Promise<ControlServer> {
  const { store, signingKeys, clock } = world;
  const { nowMs } = clock;
  const faults: unknown[] = [];
  const distribution = new Distribution({ store, nowMs, onFault: (error) => faults.push(error) });
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
  const onFault = (_activity: string, _siteId: string | undefined, error: unknown) => faults.push(error);
  const stopPublisher = startPublisher({ store, signingKeys, nowMs, onFault });
  const address = app.server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}`,
    port: address.port,
    distribution,
    faults,
    stopPublisher,
    async close() {
      await app.close();
      await stopPublisher();
      await distribution.close();
    },
  };
}
