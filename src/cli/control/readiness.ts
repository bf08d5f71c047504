/** Whether this Control can serve: asked of the database now and then, so that a probe costs nothing. */
import type { ControlStore } from '../../control/store/port.ts';
import type { ReadinessCheck } from '../../enforcement/admin/server.ts';

const PING_EVERY_MS = 1000;

export interface ControlReadiness {
  checks(): readonly ReadinessCheck[];
  isReady(): boolean;
  /** From now on no new requests are to come. */
  leave(): void;
  stop(): void;
}

export async function watchReadiness(store: ControlStore): Promise<ControlReadiness> {
  let problem: string | undefined;
  let leaving = false;
  let isAsking = false;
  const ask = async () => {
    if (isAsking) return;
    isAsking = true;
    problem = await store.ping().then(
      () => undefined,
      () => 'the database does not answer',
    );
    isAsking = false;
  };
  await ask();
  const timer = setInterval(() => void ask(), PING_EVERY_MS).unref();
  const checks = () => [
    { name: 'database', problem },
    { name: 'listener', problem: leaving ? 'draining: no new requests are taken' : undefined },
  ];
  return {
    checks,
    isReady: () => checks().every((check) => check.problem === undefined),
    leave: () => {
      leaving = true;
    },
    stop: () => clearInterval(timer),
  };
}
