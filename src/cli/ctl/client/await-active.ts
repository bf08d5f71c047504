/** Waits until the sources of a declaration are active, so that workloads can enroll. */
import { setTimeout as delay } from 'node:timers/promises';
import type { ControlApi, Schemas } from './control-api.ts';
import { OperatorError } from './operator-error.ts';

export interface ActivationWait {
  readonly siteId: string;
  /** Timeout for the activation of each source. */
  readonly timeoutMs: number;
  /** Called repeatedly until the source is active. */
  readonly onWaiting: (text: string) => void;
}

type Revision = Schemas['SourceRevision'];

/** States from which a revision becomes active, or fails, by itself. */
const IN_PROGRESS: ReadonlySet<Revision['state']> = new Set(['activating', 'publishing']);
const POLL_MS = 200;

/** @throws OperatorError `source_not_activated`, `source_not_active_yet`, or an error of Control */
export async function awaitActive(
  api: ControlApi,
  { source_id, revision, name }: Schemas['ActivatingSource'],
  { siteId, timeoutMs, onWaiting }: ActivationWait,
): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    const path = { source_id, revision };
    const { body } = await api.get('/v1/sources/{source_id}/revisions/{revision}', { path });
    if (body.state === 'active') return;
    if (!IN_PROGRESS.has(body.state)) throw notActivated(name, body);
    if (performance.now() > deadlineMs) throw notYet(name, body, siteId);
    onWaiting(`source ${name} is ${body.state}: waiting for every target to acknowledge it`);
    await delay(POLL_MS);
  }
}

function notYet(name: string, { state, waiting_for: targets = [] }: Revision, siteId: string): OperatorError {
  const which = targets.length === 0 ? 'a target has' : `${targets.map((one) => one.name).join(', ')} has`;
  const advice = `proofgate ctl get propagation ${siteId} shows why; detach a target that is gone with proofgate ctl detach`;
  const text = `source ${name} is still ${state}: ${which} not acknowledged it. ${advice}`;
  return new OperatorError('timed_out', 'source_not_active_yet', text);
}

function notActivated(name: string, { failure, state }: Revision): OperatorError {
  const why = failure === undefined ? state : `${failure.code}: ${failure.detail}`;
  const text = `source ${name} was not activated: ${why}. Its policies wait; apply again when that is corrected`;
  return new OperatorError('refused', 'source_not_activated', text);
}
