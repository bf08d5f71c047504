/** What a verifier saw of paths that no route matches, as operations to propose routes for. */
import { formatMoment } from '../../protocol/rfc3339.ts';
import type { ObservedPathsContent } from '../../verifier/observation/observed-paths-file.ts';
import type { ShownApi } from './route-proposal.ts';

export function observedApi({ authSite, others, shapes }: ObservedPathsContent): ShownApi {
  const further = others > 0 ? [`${others} requests had other methods, or paths beyond the bound`] : [];
  return {
    title: `observed paths of ${authSite}: callers chose them, so read each before you take it`,
    format: undefined,
    servers: [],
    operations: shapes.map(({ method, pathTemplate: path }) => ({
      method,
      path,
      operationId: undefined,
      tag: undefined,
      servers: [{ origin: undefined, basePath: '' }],
      matrixParameters: [],
    })),
    notes: [
      ...shapes.map(
        ({ firstSeenMs, lastSeenMs, method, pathTemplate, requests }) =>
          `${method} ${pathTemplate}: ${requests} requests from ${formatMoment(firstSeenMs)} to ${formatMoment(lastSeenMs)}`,
      ),
      ...further,
    ],
  };
}
