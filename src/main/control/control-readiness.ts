/** Readiness of Control: a timer checks the database, so that a probe reads a cached result. */
import type { ControlStore } from '../../control/store/port.ts';
import type { ReadinessCheck } from '../../enforcement/admin/server.ts';

const PING_EVERY_MS = 1000;
/** A write costs a disk sync, so most rounds only ping; after a failed write every round writes. */
const PINGS_PER_WRITE = 5;

export interface ControlReadiness {
  checks(): readonly ReadinessCheck[];
  isReady(): boolean;
  /** Reports "draining" from now on, so that load balancers stop sending requests. */
  leave(): void;
  stop(): void;
}

export async function watchReadiness(store: ControlStore): Promise<ControlReadiness> {
  let problem: string | undefined;
  let leaving = false;
  let isAsking = false;
  let pingsUntilWrite = 0;
  const problemNow = async () => {
    if (!(await succeeds(store.ping()))) return 'the database does not answer';
    pingsUntilWrite -= 1;
    if (pingsUntilWrite > 0) return undefined;
    if (!(await succeeds(store.tryWrite()))) return 'the database takes no writes: is its disk full?';
    pingsUntilWrite = PINGS_PER_WRITE;
    return undefined;
  };
  const ask = async () => {
    if (isAsking) return;
    isAsking = true;
    problem = await problemNow();
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

function succeeds(asked: Promise<void>): Promise<boolean> {
  return asked.then(
    () => true,
    () => false,
  );
}
