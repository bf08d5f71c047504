/** A workload that enrolls at a Control on loopback over real HTTP, with its state in memory and shortened waits. */
import { setTimeout as delay } from 'node:timers/promises';
import { ControlClient } from '../../../src/caller/enroll/control-client.ts';
import { parseControlUrl } from '../../../src/caller/enroll/control-url.ts';
import { enroll } from '../../../src/caller/enroll/enroll.ts';
import type {
  EnrollEvent,
  EnrollPorts,
  EnrollRequest,
  EnrollResult,
} from '../../../src/caller/enroll/enroll-run.ts';
import type { EnrollmentState, EnrollmentStates } from '../../../src/caller/enroll/enrollment-state.ts';
import { formatEnrollmentState, parseEnrollmentState } from '../../../src/caller/enroll/state-format.ts';
import { ServiceHttp } from '../../../src/caller/service/service-http.ts';
import { Redacted } from '../../../src/protocol/redacted.ts';
import type { SigningKey } from '../../../src/protocol/signing.ts';
import { newEd25519Key } from '../../support/caller/signing.ts';
import { POLICY } from '../../support/fakes/control-enrollment.ts';

/** Simulates a kill of the process. */
export class Killed extends Error {}

/** Keeps the serialized state, so that each load parses what was saved. */
class StatesInMemory implements EnrollmentStates {
  text: string | undefined;
  saves = 0;
  /** Called before and after each save with its number, from 1; may throw {@link Killed}. */
  onSave: (moment: 'before' | 'after', number: number) => void = () => {};

  async load(): Promise<EnrollmentState | undefined> {
    return this.text === undefined ? undefined : parseEnrollmentState(this.text, 'state');
  }

  async save(state: EnrollmentState): Promise<void> {
    this.saves += 1;
    this.onSave('before', this.saves);
    this.text = formatEnrollmentState(state);
    this.onSave('after', this.saves);
  }
}

export interface Workload {
  readonly key: SigningKey;
  readonly states: StatesInMemory;
  token: string;
}

export function newWorkload(token: string): Workload {
  return { key: newEd25519Key(), states: new StatesInMemory(), token };
}

export interface EnrollRunOptions {
  readonly request?: Partial<EnrollRequest>;
  readonly ports?: Partial<EnrollPorts>;
  readonly controlUrl: string;
}

export interface WatchedRun {
  readonly events: EnrollEvent[];
  /** Requested waits in milliseconds. */
  readonly waits: number[];
  readonly ended: Promise<EnrollResult>;
}

/** Maximum real duration of a wait; the run sees the requested duration. */
const REAL_WAIT_MS = 2;

export function startEnroll(workload: Workload, options: EnrollRunOptions): WatchedRun {
  const { key, states } = workload;
  const target = { controlUrl: options.controlUrl, policy: POLICY };
  const events: EnrollEvent[] = [];
  const waits: number[] = [];
  let skippedMs = 0;
  const http = new ServiceHttp({ url: parseControlUrl(options.controlUrl), caPem: undefined });
  const nowMs = options.ports?.nowMs ?? (() => Date.now());
  const ports: EnrollPorts = {
    control: new ControlClient({ http, target: options.request?.target ?? target, key, nowMs }),
    states,
    readToken: async () => new Redacted(workload.token),
    nowMs,
    monotonicMs: () => performance.now() + skippedMs,
    sleep: async (waitMs) => {
      waits.push(waitMs);
      skippedMs += waitMs;
      await delay(Math.min(waitMs, REAL_WAIT_MS));
    },
    random: () => 0.5,
    stop: new AbortController().signal,
    report: (event) => events.push(event),
    ...options.ports,
  };
  const request: EnrollRequest = {
    target,
    provider: 'oidc_jwks',
    key,
    waitsForActivation: true,
    timeoutMs: 300_000,
    requestTimeoutMs: 5000,
    pollIntervalMs: 2000,
    submitRetries: 2,
    refreshSkewMs: 300_000,
    forcesReenrollment: false,
    ...options.request,
  };
  const ended = enroll(request, ports).finally(() => http.close());
  ended.catch(() => {});
  return { events, waits, ended };
}

export function runEnroll(workload: Workload, options: EnrollRunOptions): Promise<EnrollResult> {
  return startEnroll(workload, options).ended;
}

/** `done`, or the code of the error. */
export async function outcomeOf(ended: Promise<EnrollResult>): Promise<string> {
  try {
    await ended;
    return 'done';
  } catch (error) {
    if (error instanceof Killed) return 'killed';
    if (error instanceof Error && 'code' in error) return String(error.code);
    throw error;
  }
}
