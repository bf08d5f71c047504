/** The metric of answered requests that every proxy has. Source: docs/operate/proxy.md "Metrics", docs/operate/signer.md "Metrics". */
import type { Registry } from 'prom-client';
import { DurationHistogram } from '../telemetry/duration-histogram.ts';

/** `1xx` is a switch of protocols; `gone`: the client left before the response ended. */
export const STATUS_CLASSES = ['1xx', '2xx', '3xx', '4xx', '5xx', 'gone'] as const;
export type StatusClass = (typeof STATUS_CLASSES)[number];

export function servedMetric(registry: Registry): (status: StatusClass, seconds: number) => void {
  const duration = new DurationHistogram({
    name: 'http_server_request_duration_seconds',
    help: 'Time from the head of a request to the end of its response.',
    labelNames: ['status'],
    registry,
  });
  const observe = Object.fromEntries(
    STATUS_CLASSES.map((status) => [status, duration.series({ status })]),
  ) as { readonly [S in StatusClass]: (seconds: number) => void };
  return (status, seconds) => observe[status](seconds);
}
