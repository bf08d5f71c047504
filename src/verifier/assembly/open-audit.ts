/** Opens the audit trail of a verifier or a broker: its sinks, with their log and metrics. */

import type { Logger } from '../../process/telemetry/log.ts';
import { type AuditMetrics, type AuditSinkName, createAuditMetrics } from '../audit/audit-metrics.ts';
import type { HttpTransportOptions } from '../audit/http-transport.ts';
import { createJsonLinesSink } from '../audit/json-lines.ts';
import type { AuditMode, AuditObserver, OperatedAuditSink } from '../audit/sink.ts';
import { shipping } from '../audit/sink.ts';
import type { VerifierMetrics } from '../verifier-metrics.ts';

export interface AuditSetup {
  readonly mode: AuditMode;
  /** `-` is standard output; undefined when events go to the collector only. At least one of the two is given. */
  readonly file: string | undefined;
  readonly collector: HttpTransportOptions | undefined;
  readonly maxQueueBytes: number;
}

export interface OpenAudit {
  readonly sink: OperatedAuditSink;
  health(): AuditHealth;
}

export interface AuditHealth {
  readonly mode: AuditMode;
  /** Codes of the current failures of the local sink and of the collector. */
  readonly recorder: string | undefined;
  readonly collector: string | undefined;
}

/** The audit file cannot be opened. The message names the file and the system's error code. */
export class AuditFileError extends Error {
  override readonly name = 'AuditFileError';
}

/**
 * @param isShared whether other processes append to the same file
 * @throws AuditFileError
 */
export async function openAudit(
  setup: AuditSetup,
  isShared: boolean,
  logger: Logger,
  { registry }: Pick<VerifierMetrics, 'registry'>,
): Promise<OpenAudit> {
  const metrics = createAuditMetrics(registry);
  const { collector: transport, file, maxQueueBytes, mode } = setup;
  const recorder =
    file === undefined
      ? undefined
      : await watched(file === '-' ? 'stdout' : 'file', metrics, logger, (observer) =>
          openFile(file, () =>
            createJsonLinesSink({ destination: file, mode, observer, maxQueueBytes, isShared }),
          ),
        );
  const collector =
    transport &&
    (await watched('http', metrics, logger, async (observer) => {
      // Loaded on demand: its HTTP client takes some MiB that a verifier without a collector does not need.
      const { createHttpBatchSink } = await import('../audit/http-transport.ts');
      return createHttpBatchSink({ ...transport, observer, maxQueueBytes });
    }));
  const only = recorder ?? collector;
  if (only === undefined) throw new Error('an audit trail without a sink');
  return {
    sink: recorder && collector ? shipping(recorder.sink, collector.sink, mode) : only.sink,
    health: () => ({ mode, recorder: recorder?.failing(), collector: collector?.failing() }),
  };
}

interface WatchedSink {
  readonly sink: OperatedAuditSink;
  /** Code of the current failure. */
  failing(): string | undefined;
}

/** Opens a sink that counts its events in metrics and logs its failures. */
async function watched(
  name: AuditSinkName,
  auditMetrics: AuditMetrics,
  logger: Logger,
  open: (observer: AuditObserver) => OperatedAuditSink | Promise<OperatedAuditSink>,
): Promise<WatchedSink> {
  const metrics = auditMetrics.forSink(name, () => sink?.queuedBytes ?? 0);
  let failing: string | undefined;
  let sink: OperatedAuditSink | undefined;
  sink = await open({
    written(events) {
      metrics.written(events);
      if (failing === undefined) return;
      failing = undefined;
      logger.info({ sink: name }, 'audit events are written again');
    },
    dropped: metrics.dropped,
    failed(code) {
      metrics.failed(code);
      if (failing === code) return;
      failing = code;
      logger.error({ sink: name, code }, 'audit events cannot be written');
    },
  });
  return { sink, failing: () => failing };
}

function openFile(file: string, open: () => OperatedAuditSink): OperatedAuditSink {
  try {
    return open();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : 'error';
    throw new AuditFileError(`${file} cannot be written (${code})`);
  }
}
