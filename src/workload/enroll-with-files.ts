/** Runs an enrollment with this machine's files, clocks, timers and network. */
import { setTimeout as delay } from 'node:timers/promises';
import { ControlClient } from '../client/enroll/control-client.ts';
import { enroll } from '../client/enroll/enroll.ts';
import type { EnrollEvent, EnrollResult } from '../client/enroll/enroll-ports.ts';
import { type ControlConnection, UndiciControlHttp } from '../client/enroll/undici-control-http.ts';
import type { EnrollPlan } from './enroll-settings.ts';
import { openEnrollmentKey } from './enrollment-key.ts';
import { EnrollmentStateFile } from './state-file.ts';
import { readWorkloadToken } from './workload-token-file.ts';

export interface EnrollSurroundings {
  readonly connection: ControlConnection;
  readonly stop: AbortSignal;
  readonly tell: (event: EnrollEvent) => void;
}

/**
 * @param plan its Control URL is normalized to the form that is signed
 * @throws EnrollError, ClientError `ca_invalid`, CliError for files
 */
export async function enrollWithFiles(
  plan: EnrollPlan,
  { connection, stop, tell }: EnrollSurroundings,
): Promise<EnrollResult> {
  const http = new UndiciControlHttp(connection);
  try {
    const { keyChoice, tokenFile, target, ...how } = plan;
    const key = await openEnrollmentKey(keyChoice, target);
    const nowMs = () => Date.now();
    return await enroll(
      { ...how, target, key },
      {
        control: new ControlClient({ http, target, key, nowMs }),
        states: new EnrollmentStateFile(keyChoice.file),
        readToken: () => readWorkloadToken(tokenFile),
        nowMs,
        monotonicMs: () => performance.now(),
        sleep,
        random: Math.random,
        stop,
        tell,
      },
    );
  } finally {
    await http.close();
  }
}

async function sleep(waitMs: number, stop: AbortSignal): Promise<void> {
  await delay(waitMs, undefined, { signal: stop }).catch(() => undefined);
}
