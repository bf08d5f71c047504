import type { ReportIncident } from './port.ts';

/** Runs work that leads. That it throws, or returns before it was told to, is an incident and nothing more. */
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
