/** Runs a worker: a verifier without the primary's tasks, and the worker's end of the channel to the primary. */
import type { ChainPosition } from '../../../../bundle/format/chain.ts';
import type { AdminListener, AdminOptions } from '../../../../process/admin/admin-server.ts';
import { type CliError, EXIT_CODES, toCliError } from '../../../../process/program/errors.ts';
import type { Shutdown } from '../../../../process/program/graceful-shutdown.ts';
import type { CliContext } from '../../../../process/program/output.ts';
import { leaveSignalsToParent, stopped } from '../../../../process/program/stop-signal.ts';
import type { PrimaryLink } from '../../../../verifier/assembly/open-bundle.ts';
import type { WorkerReport } from '../../../../verifier/summaries/worker-counts.ts';
import { runVerifier } from '../verifier-process.ts';
import type { VerifierSettings } from '../verifier-settings.ts';
import { parsePrimaryMessage, WORKER_NUMBER, type WorkerMessage } from './worker-messages.ts';

/** Runs until the primary closes it and Checks in flight are answered, then exits. Reports a failure to the primary. */
export async function runWorker(settings: VerifierSettings, context: CliContext): Promise<void> {
  // systemd signals all processes of a unit at once. The worker ignores the signal: the primary shuts workers down in order.
  // When the primary dies, Node ends its workers.
  leaveSignalsToParent();
  const channel = new WorkerChannel();
  try {
    await runVerifier(settings, context, {
      worker: process.env[WORKER_NUMBER] ?? '',
      runUntilShutdown: (_, run) => run(channel.shutdown),
      primary: channel,
      openAdmin: async (options, address) => channel.report(options, address),
      logStart: (logger, { addresses: { http_listen, listen }, authSite, version }) =>
        logger.info({ version, listen, http_listen, auth_site: authSite }, 'worker listening'),
    });
  } catch (error) {
    const shown = toCliError(error);
    await channel.fail(shown);
    process.exit(shown.exitCode);
  }
  // The open channel would keep the process alive.
  process.exit(EXIT_CODES.done);
}

const STATE_INTERVAL_MS = 200;

/** The part of `process` that the channel uses. */
export interface ChannelEnd {
  readonly connected: boolean;
  on(event: 'message', receive: (value: unknown) => void): unknown;
  send?(message: unknown, done: () => void): boolean;
}

/** Reports readiness, metrics and what is loaded, and receives shutdown messages. */
export class WorkerChannel implements PrimaryLink {
  readonly #end: ChannelEnd;
  readonly #leaving = new AbortController();
  readonly #closing = new AbortController();
  #metrics: AdminOptions['metrics'] | undefined;

  /** Announces itself: the primary then repeats a shutdown message that it sent earlier. */
  constructor(end: ChannelEnd = process) {
    this.#end = end;
    end.on('message', (value) => void this.#receive(value));
    this.#send({ kind: 'hearing' });
  }

  /**
   * Shutdown as the primary directs it. A worker that starts during the drain delay replaces one that died, so it still
   * opens its ext_authz server.
   */
  get shutdown(): Shutdown {
    const closing = this.#closing.signal;
    return {
      begun: this.#leaving.signal,
      isBeforeOpening: () => closing.aborted,
      untilClosing: () => stopped(closing),
    };
  }

  /**
   * Replaces the admin listener: sends this worker's readiness to the primary at an interval.
   * @param address address of the ext_authz server
   */
  report(
    { metrics, readiness }: Pick<AdminOptions, 'metrics' | 'readiness'>,
    address: string,
  ): AdminListener {
    this.#metrics = metrics;
    const report = () => this.#send({ kind: 'state', address, checks: readiness() });
    report();
    this.#leaving.signal.addEventListener('abort', report);
    const timer = setInterval(report, STATE_INTERVAL_MS);
    return {
      address: 'primary',
      close: async () => {
        report();
        clearInterval(timer);
      },
    };
  }

  /** Sends what was counted of decisions to the primary. */
  handOver(report: WorkerReport): void {
    this.#send(report);
  }

  loaded(position: ChainPosition): void {
    this.#send({ kind: 'loaded', position });
  }

  /** Sends the error to the primary, which exits with the same one if the workers have not all started yet. */
  fail({ code, message }: CliError): Promise<void> {
    return new Promise((resolve) => {
      this.#end.send?.({ kind: 'failed', code, message } satisfies WorkerMessage, () => resolve());
    });
  }

  async #receive(value: unknown): Promise<void> {
    const message = parsePrimaryMessage(value);
    switch (message?.kind) {
      case 'leave':
        this.#leaving.abort();
        return;
      case 'close':
        this.#leaving.abort();
        this.#closing.abort();
        return;
      case 'scrape':
        if (this.#metrics === undefined) return;
        this.#send({ kind: 'metrics', id: message.id, text: (await this.#metrics()).text });
    }
  }

  /** Sends nothing after a disconnect: without a primary the process is about to end. */
  #send(message: WorkerMessage): void {
    if (this.#end.connected) this.#end.send?.(message, () => undefined);
  }
}
