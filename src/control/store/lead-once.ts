import type { ReportIncident } from './port.ts';

/** Runs a leader's work once. If it throws, or returns before the signal aborts, that is reported as an incident. */
export async function leadOnce(
  name: string,
  work: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
  report: ReportIncident,
): Promise<void> {
  try {
    await work(signal);
    if (!signal.aborted) report({ kind: 'lead_work_failed', name, error: new Error('it returned') });
  } catch (error) {
    if (!signal.aborted) report({ kind: 'lead_work_failed', name, error });
  }
}
