/** Tests the verifier's log lines about a loaded bundle. */
import { expect, it } from '@jest/globals';
import { bundleError } from '../../../src/bundle/format/bundle-error.ts';
import { renderMetrics } from '../../../src/process/telemetry/instruments.ts';
import { createLogger } from '../../../src/process/telemetry/logger.ts';
import {
  logBreakGlass,
  logBundleEvents,
  logRefreshEvents,
  logSharedMark,
} from '../../../src/verifier/assembly/bundle-log.ts';
import { SharedMarkError } from '../../../src/verifier/loading/state/shared-mark.ts';
import { createRefreshMetrics, createVerifierMetrics } from '../../../src/verifier/verifier-metrics.ts';
import { compileSite, newSiteKeys, siteContent, sourcesOf } from '../../support/fixtures/snapshot.ts';

/** Listeners at log level `info`, the lines and the metrics. */
function newLog() {
  const lines: string[] = [];
  const logger = createLogger('info', { write: (line) => void lines.push(line) });
  const metrics = createVerifierMetrics(() => undefined);
  const refreshMetrics = createRefreshMetrics(metrics.registry, () => undefined);
  return {
    bundle: logBundleEvents(logger, metrics, refreshMetrics),
    refresh: logRefreshEvents(logger, refreshMetrics),
    breakGlass: logBreakGlass(logger, metrics),
    sharedMark: logSharedMark(logger),
    /** Of each line the level, and what an alert may go by. */
    logged: () =>
      lines.map((line) => {
        const { level, time: _, service: __, msg: ___, ...fields } = JSON.parse(line);
        return [level, fields];
      }),
    metrics: () => renderMetrics(metrics.registry),
  };
}

const HEAD = 'A'.repeat(43);

it('logs what Control and its failures mean, but no line for each poll, acknowledgement or step', async () => {
  const { bundle, logged, metrics, refresh } = newLog();
  refresh.polled?.('failed');
  refresh.failed?.('poll', 'control_timeout', 'it did not answer in time');
  refresh.recovered?.('poll');
  refresh.polled?.('changed');
  refresh.acknowledged?.({ revision: 7, head: HEAD }, 'accepted');
  bundle.advanced?.(await compileSite(siteContent(newSiteKeys())), ['delta', 'link', 'delta'], 1);
  refresh.late?.({ revision: 7, workers: [2] });
  refresh.rebased?.(7, 1234);
  expect(logged()).toEqual([
    ['warn', { code: 'control_timeout', activity: 'poll' }],
    ['info', { activity: 'poll' }],
    ['warn', { revision: 7, workers: [2] }],
    ['info', { revision: 7, bytes: 1234 }],
  ]);
  const text = await metrics();
  for (const sample of [
    /^proofgate_control_polls_total\{outcome="failed"\} 1$/m,
    /^proofgate_control_polls_total\{outcome="changed"\} 1$/m,
    /^proofgate_bundle_steps_total\{kind="delta"\} 2$/m,
    /^proofgate_bundle_steps_total\{kind="link"\} 1$/m,
    /^proofgate_control_failures_total\{.*code="control_timeout".*\} 1$/m,
  ])
    expect(text).toMatch(sample);
});

it('logs each rejection as an error with its code, and counts it', async () => {
  const { breakGlass, bundle, logged, metrics } = newLog();
  bundle.refused?.(bundleError('chain_broken', 'bundle.jws', '', 'x'), 'control');
  bundle.freshnessRefused?.(bundleError('signature_invalid', 'freshness.jws', '', 'x'));
  breakGlass.refused?.({ code: 'signatures_insufficient', text: 'x' });
  expect(logged()).toEqual([
    ['error', { code: 'chain_broken', source: 'control' }],
    ['error', { code: 'signature_invalid' }],
    ['error', { code: 'signatures_insufficient' }],
  ]);
  const text = await metrics();
  for (const code of ['chain_broken', 'signature_invalid', 'signatures_insufficient'])
    expect(text).toMatch(new RegExp(`^proofgate_bundle_refused_total\\{.*code="${code}".*\\} 1$`, 'm'));
});

it('warns of a break-glass statement that begins, and of a shared mark that fails or disagrees', () => {
  const { breakGlass, logged, sharedMark } = newLog();
  const statement = { revision: 7, head: HEAD, fromSeconds: 0, untilSeconds: 60, signers: ['one'] };
  breakGlass.accepted?.(statement);
  breakGlass.removed?.();
  sharedMark.raiseFailed?.(new SharedMarkError('unavailable', 'x'));
  sharedMark.raiseWorksAgain?.();
  sharedMark.bound?.({ revision: 7, head: HEAD });
  sharedMark.disagrees?.({ revision: 7, head: HEAD }, { revision: 7, head: 'B'.repeat(43) });
  expect(logged()).toEqual([
    [
      'warn',
      {
        ...{ revision: 7, head: HEAD, signers: ['one'] },
        ...{ from: '1970-01-01T00:00:00Z', until: '1970-01-01T00:01:00Z' },
      },
    ],
    ['info', {}],
    ['warn', { fault: 'unavailable' }],
    ['info', {}],
    ['info', { revision: 7 }],
    ['error', { revision: 7, head: HEAD, shared_head: 'B'.repeat(43) }],
  ]);
});

it('names each rule that matches nothing, after the bundle', async () => {
  const content = siteContent(newSiteKeys());
  for (const source of sourcesOf(content, 'orders-read')) {
    source.subject_prefix &&= source.subject_prefix.replace('/ns/prod/', '/ns//prod/');
  }
  const { bundle, logged } = newLog();
  bundle.loaded?.(await compileSite(content), { source: 'directory', durationMs: 1 });
  expect(logged()).toEqual([
    ['info', expect.objectContaining({ source: 'directory', revision: 7 })],
    [
      'warn',
      {
        code: 'subject_not_canonical',
        path: '/route_sources/0/allowed_sources/2/subject_prefix',
      },
    ],
  ]);
});
