/** Waits until the sources of a declaration are active, so that workloads can enroll. */
import { setTimeout as delay } from 'node:timers/promises';
import type { SourceState } from '../../../control/contract/vocabulary.ts';
import { isJsonObject, type JsonObject, jsonObjects } from '../../../protocol/strict-json.ts';
import type { ControlApi } from './control-api.ts';
import { OperatorError } from './operator-error.ts';
import { revisionPath } from './paths.ts';

/** A source revision whose activation continues in Control. */
export interface ActivatingSource {
  readonly sourceId: string;
  readonly revision: number;
  readonly name: string;
}

export interface ActivationWait {
  readonly siteId: string;
  /** Timeout for the activation of each source. */
  readonly timeoutMs: number;
  /** Called repeatedly until the source is active. */
  readonly onWaiting: (text: string) => void;
}

/** States from which a revision becomes active, or fails, by itself. */
const IN_PROGRESS: ReadonlySet<unknown> = new Set<SourceState>(['activating', 'publishing']);
const POLL_MS = 200;

/** @throws OperatorError `source_not_activated`, `source_not_active_yet`, or an error of Control */
export async function awaitActive(
  api: ControlApi,
  { sourceId, revision, name }: ActivatingSource,
  { siteId, timeoutMs, onWaiting }: ActivationWait,
): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    const { body } = await api.get(revisionPath(sourceId, revision));
    if (body.state === 'active') return;
    if (!IN_PROGRESS.has(body.state)) throw notActivated(name, body);
    if (performance.now() > deadlineMs) throw notYet(name, body, siteId);
    onWaiting(`source ${name} is ${String(body.state)}: waiting for every target to acknowledge it`);
    await delay(POLL_MS);
  }
}

function notYet(name: string, { state, waiting_for: targets }: JsonObject, siteId: string): OperatorError {
  const known = jsonObjects(targets);
  const which = known.length === 0 ? 'a target has' : `${known.map((one) => one.name).join(', ')} has`;
  const advice = `proofgate ctl get propagation ${siteId} shows why; detach a target that is gone with proofgate ctl detach`;
  const text = `source ${name} is still ${String(state)}: ${which} not acknowledged it. ${advice}`;
  return new OperatorError('timed_out', 'source_not_active_yet', text);
}

function notActivated(name: string, { failure, state }: JsonObject): OperatorError {
  const why = isJsonObject(failure) ? `${String(failure.code)}: ${String(failure.detail)}` : String(state);
  const text = `source ${name} was not activated: ${why}. Its policies wait; apply again when that is corrected`;
  return new OperatorError('refused', 'source_not_activated', text);
}
