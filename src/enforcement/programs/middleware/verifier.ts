/** The verifier of the package `@proofgate/middleware`: opens in the application's process, protects its servers, admits requests. */

import cluster from 'node:cluster';
import { realpath } from 'node:fs/promises';
import { type IncomingMessage, maxHeaderSize } from 'node:http';
import { createReadinessMetrics } from '../../../process/admin/readiness-metrics.ts';
import { CliError, faultName, usageError } from '../../../process/program/errors.ts';
import { renderMetrics } from '../../../process/telemetry/instruments.ts';
import type { Logger } from '../../../process/telemetry/log.ts';
import { AuditFileError } from '../../../verifier/assembly/open-audit.ts';
import { type OpenVerifier, openVerifier } from '../../../verifier/assembly/open-verifier.ts';
import { stateInUse } from '../../../verifier/assembly/state-lock.ts';
import { verifierReadiness } from '../../../verifier/assembly/verifier-readiness.ts';
import type { Admission, AdmissionGate, HttpServer, SeenRequest } from '../../middleware/admission-gate.ts';
import { Guard } from '../../middleware/guard.ts';
import { type ProtectFault, protectServer } from '../../middleware/protected-server.ts';
import { explainOptions, planVerifier } from './options-plan.ts';
import type { VerifierOptions } from './verifier-options.ts';

/** A mistake in the options or in the use of a verifier. The code is stable; the text says what to do and has no secret. */
export class VerifierError extends Error {
  override readonly name = 'VerifierError';
  readonly code: string;

  constructor(code: string, text: string) {
    super(`${code}: ${text}`);
    this.code = code;
  }
}

export interface VerifierStatus {
  /** Whether requests can be allowed. */
  readonly isReady: boolean;
  /** Parts of the verifier, such as `bundle` and `replay_store`, each with its problem or warning. */
  readonly checks: readonly {
    readonly name: string;
    readonly problem: string | undefined;
    readonly warning: string | undefined;
  }[];
  /** Revision of the loaded bundle. */
  readonly bundleRevision: number | undefined;
}

export class Verifier implements AdmissionGate {
  readonly #opened: OpenVerifier;
  readonly #guard: Guard;
  readonly #release: () => void;
  readonly #onProtected: OnProtected;

  private constructor(opened: OpenVerifier, guard: Guard, release: () => void, onProtected: OnProtected) {
    this.#opened = opened;
    this.#guard = guard;
    this.#release = release;
    this.#onProtected = onProtected;
  }

  /**
   * Resolves when the bundle that is available is loaded. Without one, and without Redis, the verifier denies and retries.
   * @throws VerifierError for options and files that cannot work
   */
  static async open(options: VerifierOptions): Promise<Verifier> {
    try {
      return await open(options, (...parts) => new Verifier(...parts));
    } catch (error) {
      throw explained(error);
    }
  }

  /**
   * Captures requests of the server before the application sees them, and ends those that no middleware sees. Call it before the
   * server listens.
   * @throws VerifierError `server_not_supported`, `server_already_protected`
   */
  protect<S extends HttpServer>(server: S): S {
    const fault = protectServer(server, this.#guard);
    if (fault !== undefined) throw new VerifierError(fault, PROTECT_FAULTS[fault]);
    this.#onProtected(server);
    return server;
  }

  /**
   * For adapters of other frameworks: verifies a request of a protected server. Never rejects.
   * @param look returns the application's view of the request; called before and after the verification
   */
  admit(request: IncomingMessage, look: () => SeenRequest): Promise<Admission> {
    return this.#guard.admit(request, look);
  }

  status(): VerifierStatus {
    return statusOf(this.#opened);
  }

  /** Metrics in the text format of Prometheus: those of `proofgate verifier`. */
  metrics(): Promise<string> {
    return renderMetrics(this.#opened.metrics.registry);
  }

  /** Opens the audit file again, after its rotation. */
  reopenAudit(): void {
    this.#opened.reopenAudit();
  }

  /** Ends background work after queued audit events are written. Later requests are denied. */
  async close(): Promise<void> {
    this.#guard.close();
    await this.#opened.close();
    this.#release();
  }
}

type OnProtected = (server: HttpServer) => void;

type Make = (opened: OpenVerifier, guard: Guard, release: () => void, onProtected: OnProtected) => Verifier;

async function open(options: VerifierOptions, make: Make): Promise<Verifier> {
  assertRuntime(options);
  const { logger = SILENT } = options;
  const { externalOrigin, maxBodyBytes, setup } = await planVerifier(options);
  const release = await claimStateDirectory(setup.stateDirectory);
  try {
    const onInternalError = (error: unknown) =>
      logger.error({ fault: faultName(error) }, 'internal fault: the request was denied');
    const opened = await openVerifier({ setup, logger, onInternalError });
    createReadinessMetrics(opened.metrics.registry, () => readinessOf(opened));
    const { verifier } = opened;
    const guard = new Guard({
      verifier,
      externalOrigin,
      maxBodyBytes,
      onUnprotected: reportOnce(options.logger, UNPROTECTED),
      onBodyTaken: reportOnce(options.logger, BODY_TAKEN),
      onInternalError,
    });
    return make(opened, guard, release, warnOfSmallHeaders(logger));
  } catch (error) {
    release();
    throw error;
  }
}

/** Only Node's own HTTP parser shows a request as it was received. Workers of a cluster share no memory. */
function assertRuntime({ replay }: VerifierOptions): void {
  if ('bun' in process.versions || 'Deno' in globalThis) {
    throw usageError('runtime_not_supported', 'the middleware needs Node.js');
  }
  if (cluster.isWorker && replay === 'memory') {
    const text = 'workers of a cluster do not share memory: give --replay a URL of Redis';
    throw usageError('memory_in_cluster_worker', text);
  }
}

const CLAIMED = new Set<string>();

/** In this process, also where the lock is not possible. @throws CliError `state_dir_in_use` */
async function claimStateDirectory(directory: string): Promise<() => void> {
  const path = await realpath(directory);
  if (CLAIMED.has(path)) throw stateInUse(directory);
  CLAIMED.add(path);
  return () => CLAIMED.delete(path);
}

const PROTECT_FAULTS: { readonly [F in ProtectFault]: string } = {
  server_not_supported: 'protect takes a server of node:http or node:https, and no HTTP/2',
  server_already_protected: 'another verifier protects this server',
};

function readinessOf(opened: OpenVerifier) {
  const checks = verifierReadiness({ ...opened.status(), leaving: false });
  return checks.filter(({ name }) => name !== 'listener');
}

function statusOf(opened: OpenVerifier): VerifierStatus {
  const checks = readinessOf(opened).map(({ name, problem, warning }) => ({ name, problem, warning }));
  const isReady = checks.every(({ problem }) => problem === undefined);
  return { isReady, checks, bundleRevision: opened.status().bundle.snapshot?.revision };
}

function explained(error: unknown): unknown {
  if (error instanceof AuditFileError) return new VerifierError('audit_file_unusable', error.message);
  if (!(error instanceof CliError)) return error;
  const { code, text } = explainOptions(error);
  return new VerifierError(code, text);
}

const UNPROTECTED = 'requests are denied: verifier.protect(server) was not called for their server';
const BODY_TAKEN =
  'requests are denied (body_unavailable): a body parser is in front of the middleware; put the middleware first';

/** Reports a mistake in the application's code; without a logger, as a warning of the process. */
function reportOnce(logger: Logger | undefined, text: string): () => void {
  let isReported = false;
  return () => {
    if (isReported) return;
    isReported = true;
    if (logger === undefined) process.emitWarning(text, 'ProofgateWarning');
    else logger.error(text);
  };
}

/**
 * Room for a passport and a proof of at most 8 KiB each and 16 KiB of other headers. Node.js answers 431 to larger
 * headers.
 */
const WISHED_HEADER_BYTES = 32_768;

function warnOfSmallHeaders(logger: Logger): OnProtected {
  return (server) => {
    const own: unknown = Reflect.get(server, 'maxHeaderSize');
    const bytes = typeof own === 'number' ? own : maxHeaderSize;
    if (bytes >= WISHED_HEADER_BYTES) return;
    logger.warn(
      { maxHeaderSize: bytes },
      `a large token beside passport and proof is answered with 431: createServer({ maxHeaderSize: ${WISHED_HEADER_BYTES} }, …) takes it`,
    );
  };
}

const SILENT: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore };

function ignore(): void {}
