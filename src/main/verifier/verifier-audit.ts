/** Opens the verifier's audit trail: its sinks, their log and metrics, and reopening files on SIGHUP. */
import cluster from 'node:cluster';
import { systemErrorCode, usageError } from '../../program/errors.ts';
import { type AuditMetrics, createAuditMetrics } from '../../telemetry/audit-metrics.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { VerifierMetrics } from '../../telemetry/metrics.ts';
import { createJsonLinesSink } from '../../verifier/audit/json-lines.ts';
import { shipping } from '../../verifier/audit/shipped-sink.ts';
import type { AuditMode, AuditSink, OperatedAuditSink } from '../../verifier/audit/sink.ts';
import { type AuditPlan, planAudit } from './audit-plan.ts';
import { type AuditWatch, watchAuditSink } from './audit-watch.ts';
import type { VerifierSettings } from './verifier-settings.ts';

export interface VerifierAudit {
  readonly sink: AuditSink;
  readonly mode: AuditMode;
  health(): AuditHealth;
  close(): Promise<void>;
}

export interface AuditHealth {
  readonly mode: AuditMode;
  /** Codes of the current failures of the local sink and of the collector. */
  readonly recorder: string | undefined;
  readonly collector: string | undefined;
}

/** @throws CliError for invalid settings */
export async function openVerifierAudit(
  settings: VerifierSettings,
  { registry }: VerifierMetrics,
  logger: Logger,
): Promise<VerifierAudit> {
  const plan = await planAudit(settings);
  const metrics = createAuditMetrics(registry);
  const recorder = openRecorder(plan, metrics, logger);
  const collector = await openCollector(plan, metrics, logger);
  const sink = together(recorder?.sink, collector?.sink, plan.mode);
  const reopen = () => {
    logger.info('audit file reopened by signal');
    sink.reopen();
  };
  process.on('SIGHUP', reopen);
  return {
    sink,
    mode: plan.mode,
    health: () => ({
      mode: plan.mode,
      recorder: recorder?.watch.failing(),
      collector: collector?.watch.failing(),
    }),
    close: () => sink.close(),
  };
}

interface WatchedSink {
  readonly sink: OperatedAuditSink;
  readonly watch: AuditWatch;
}

/** @throws CliError `audit_file_unusable` */
function openRecorder(plan: AuditPlan, metrics: AuditMetrics, logger: Logger): WatchedSink | undefined {
  const { file, maxQueueBytes, mode } = plan;
  if (file === undefined) return undefined;
  const name = file === '-' ? 'stdout' : 'file';
  const watch = watchAuditSink(
    name,
    metrics.forSink(name, () => sink?.queuedBytes ?? 0),
    logger,
  );
  let sink: OperatedAuditSink | undefined;
  try {
    sink = createJsonLinesSink({
      destination: file,
      mode,
      observer: watch,
      maxQueueBytes,
      isShared: cluster.isWorker,
    });
    return { sink, watch };
  } catch (error) {
    throw usageError(
      'audit_file_unusable',
      `${file} cannot be written (${systemErrorCode(error) ?? 'error'})`,
    );
  }
}

async function openCollector(
  plan: AuditPlan,
  metrics: AuditMetrics,
  logger: Logger,
): Promise<WatchedSink | undefined> {
  const { collector, maxQueueBytes } = plan;
  if (collector === undefined) return undefined;
  const watch = watchAuditSink(
    'http',
    metrics.forSink('http', () => sink.queuedBytes),
    logger,
  );
  // Loaded on demand: its HTTP client takes some MiB that a verifier without a collector does not need.
  const { createHttpBatchSink } = await import('../../verifier/audit/http-batches.ts');
  const sink = createHttpBatchSink({ ...collector, observer: watch, maxQueueBytes });
  return { sink, watch };
}

function together(
  recorder: OperatedAuditSink | undefined,
  collector: OperatedAuditSink | undefined,
  mode: AuditMode,
): OperatedAuditSink {
  const only = recorder ?? collector;
  if (only === undefined) throw new Error('an audit trail without a sink');
  return recorder === undefined || collector === undefined ? only : shipping(recorder, collector, mode);
}
