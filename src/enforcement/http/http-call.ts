/** The pending HTTP request as the verifier's {@link CallContext}. */

import type { CallContext } from '../../process/connections/call-context.ts';
import type { DecisionTracer } from '../../process/telemetry/decision-trace.ts';
import type { RequestHeaders } from '../../protocol/credentials.ts';

/** @param isGone whether the caller has closed the connection or the stream */
export function httpCall(
  headers: RequestHeaders,
  tracer: DecisionTracer | undefined,
  isGone: () => boolean,
): CallContext {
  const parent = headers.lookup('traceparent');
  return {
    waitedTooLong: false,
    trace: tracer?.begin(parent.kind === 'single' ? parent.value : undefined),
    // There is no `traceparent` besides the request's own.
    traceparent: () => undefined,
    isGone,
  };
}
