/** Tests the verifier's log lines about a loaded bundle. */
import { expect, it } from '@jest/globals';
import { createLogger } from '../../../src/process/telemetry/logger.ts';
import { logBundleEvents } from '../../../src/verifier/assembly/bundle-log.ts';
import { createRefreshMetrics, createVerifierMetrics } from '../../../src/verifier/verifier-metrics.ts';
import { compileSite, newSiteKeys, siteContent, sourcesOf } from '../../support/fixtures/snapshot.ts';

it('names each rule that matches nothing, after the bundle', async () => {
  const content = siteContent(newSiteKeys());
  for (const source of sourcesOf(content, 'orders-read')) {
    source.subject_prefix &&= source.subject_prefix.replace('/ns/prod/', '/ns//prod/');
  }
  const lines: string[] = [];
  const logger = createLogger('info', { write: (line) => void lines.push(line) });
  const metrics = createVerifierMetrics(() => undefined);
  const refreshMetrics = createRefreshMetrics(metrics.registry, () => undefined);
  const listener = logBundleEvents(logger, metrics, refreshMetrics);
  listener.loaded?.(await compileSite(content), { source: 'directory', durationMs: 1 });
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({ level: 'info', msg: 'bundle loaded' }),
    expect.objectContaining({
      level: 'warn',
      code: 'subject_not_canonical',
      path: '/route_sources/0/allowed_sources/2/subject_prefix',
    }),
  ]);
});
