/** Activates a source's newest revision, so that workloads can enroll, and waits until it is active. */
import { setTimeout as delay } from 'node:timers/promises';
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';
import { type ControlApi, textMember } from './control-api.ts';
import { OperatorError } from './operator-error.ts';
import { revisionPath } from './paths.ts';
import { newestRevision } from './plan.ts';
import type { SiteSource } from './site-file.ts';

export interface SourceToActivate {
  readonly siteId: string;
  readonly declared: SiteSource;
  /** The source as Control returns it. */
  readonly source: JsonObject;
  /** Timeout for the activation. */
  readonly timeoutMs: number;
  /** Called repeatedly until the source is active. */
  readonly onWaiting: (text: string) => void;
}

/** States from which a revision becomes active without further action. */
const ON_ITS_WAY: ReadonlySet<unknown> = new Set(['activating', 'publishing']);
const POLL_MS = 200;

/** @throws OperatorError `source_not_activated`, `source_not_active_yet`, or an error of Control */
export async function activateSource(api: ControlApi, wish: SourceToActivate): Promise<void> {
  const { declared, source } = wish;
  const newest = newestRevision(source);
  const path = revisionPath(textMember(source, 'source_id'), Number(newest?.revision));
  if (!ON_ITS_WAY.has(newest?.state)) {
    const { body } = await api.act(`${path}/validate`);
    if (body.state !== 'validated') throw notActivated(declared.name, body);
    await api.act(`${path}/activate`, { expected_scope: declared.expected_scope });
  }
  await awaitActive(api, path, wish);
}

async function awaitActive(api: ControlApi, path: string, wish: SourceToActivate): Promise<void> {
  const { name } = wish.declared;
  const deadlineMs = performance.now() + wish.timeoutMs;
  for (;;) {
    const { body } = await api.get(path);
    if (body.state === 'active') return;
    if (!ON_ITS_WAY.has(body.state)) throw notActivated(name, body);
    if (performance.now() > deadlineMs) throw notYet(name, body, wish.siteId);
    wish.onWaiting(`source ${name} is ${String(body.state)}: waiting for every target to acknowledge it`);
    await delay(POLL_MS);
  }
}

function notYet(name: string, { state, waiting_for: targets }: JsonObject, siteId: string): OperatorError {
  // Control 0.2.4 does not name them.
  const known = Array.isArray(targets) ? targets.filter(isJsonObject) : [];
  const which = known.length === 0 ? 'a target has' : `${known.map((one) => one.name).join(', ')} has`;
  const advice = `proofgate ctl get propagation ${siteId} shows why; detach a target that is gone with proofgate ctl detach`;
  const text = `source ${name} is still ${String(state)}: ${which} not acknowledged it. ${advice}`;
  return new OperatorError('timed_out', 'source_not_active_yet', text);
}

function notActivated(name: string, { failure, state }: JsonObject): OperatorError {
  const why = isJsonObject(failure) ? `${String(failure.code)}: ${String(failure.detail)}` : String(state);
  return new OperatorError('refused', 'source_not_activated', `source ${name} was not activated: ${why}`);
}
