/** Merges the readiness of several processes: each check once, with the first problem and the first warning. */
import type { ReadinessCheck } from '../../../enforcement/admin/server.ts';

export interface ProcessState {
  /** Such as `worker 2`. */
  readonly process: string;
  /** Undefined until its first report. */
  readonly checks: readonly ReadinessCheck[] | undefined;
}

export function mergeChecks(states: readonly ProcessState[]): readonly ReadinessCheck[] {
  const merged = new Map<string, ReadinessCheck>();
  for (const { checks, process } of states) {
    for (const { name, problem, routes, warning } of checks ?? []) {
      const before = merged.get(name);
      merged.set(name, {
        name,
        problem: before?.problem ?? named(process, problem),
        warning: before?.warning ?? named(process, warning),
        routes: before?.routes ?? routes,
      });
    }
  }
  return [...merged.values()];
}

function named(process: string, text: string | undefined): string | undefined {
  return text === undefined ? undefined : `${process}: ${text}`;
}
