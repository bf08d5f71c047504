/** Metrics of captured denials. Source: docs/operate/enforcement.md "Metrics". */
import type { Registry } from 'prom-client';
import { instrumentsOf } from '../../process/telemetry/instruments.ts';

const OUTCOMES = ['written', 'dropped', 'failed'] as const;
export type CaptureOutcome = (typeof OUTCOMES)[number];

/** @returns a function that counts one denied request */
export function createCaptureMetrics(registry: Registry): (outcome: CaptureOutcome) => void {
  const captures = instrumentsOf(registry).counter(
    'proofgate_denied_captures_total',
    'Denied requests that --capture-denied wrote or did not write.',
    'outcome',
  );
  for (const outcome of OUTCOMES) captures.inc({ outcome }, 0);
  return (outcome) => captures.inc({ outcome });
}
