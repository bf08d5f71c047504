/** Composition root of the agent: connects the key keeper to files, Control and the admin listener, and runs it. */
import { basename, dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ReadinessCheck } from '../../process/admin/admin-server.ts';
import { type DirectoryLock, lockDirectory } from '../../process/files/directory-lock.ts';
import { readCaFile } from '../../process/files/input-files.ts';
import { systemErrorCode, usageError } from '../../process/program/errors.ts';
import type { CliContext } from '../../process/program/output.ts';
import { untilStopped } from '../../process/program/stop-signal.ts';
import { parseHostAndPort } from '../../process/settings/listen-address.ts';
import { createLogger, type Logger } from '../../process/telemetry/logger.ts';
import { formatMoment } from '../../protocol/rfc3339.ts';
import { parseControlUrl } from '../enroll/control-url.ts';
import { askReadiness, enrollWithFiles, type ReadinessQuestion } from '../enroll/enroll-with-files.ts';
import type { EnrolledKeyRecord, EnrollmentTarget } from '../enroll/enrollment-state.ts';
import { refreshEnrolledKey } from '../enroll/refresh-enrollment.ts';
import { openAgentListener } from './agent-listener.ts';
import { createAgentMetrics } from './agent-metrics.ts';
import type { AgentProbes, AgentRun } from './agent-run.ts';
import { type AgentPlan, type AgentValues, agentPlanOf, brokerAgentPlanOf } from './agent-settings.ts';
import { readTokenFile } from './agent-token.ts';
import { keepPassports } from './broker-agent.ts';
import { KeyKeeper } from './keeper.ts';
import type { KeeperEvent, KeeperPorts, KeeperState, KeyReadiness } from './keeper-ports.ts';
import { type KeyPair, KeyPairs } from './key-pairs.ts';
import { isUsable } from './renewal.ts';

/** Deadline for the readiness request to Control. */
const READINESS_TIMEOUT_MS = 5000;

/**
 * Runs until SIGTERM or SIGINT and then stops at once. The next run resumes an enrollment in progress.
 * @throws CliError, EnrollError, ClientError for invalid settings and files at startup
 */
export async function runAgent(settings: AgentValues, { env, version }: CliContext): Promise<void> {
  const logger = createLogger(settings.logLevel);
  const address = parseHostAndPort('admin-listen', settings.adminListen);
  const serve = async ({ readiness, registry }: AgentProbes) => {
    const admin = await openAgentListener(address, registry, readiness);
    logger.info({ event: 'listening', version, admin_listen: admin.address }, 'listening');
    return async () => {
      await admin.close();
      logger.info({ event: 'stopped' }, 'stopped');
    };
  };
  await untilStopped((stop) => keepKeyFile(settings, { env, logger, serve, stop }));
}

/**
 * Keeps the key file of the settings until it is stopped.
 * @throws CliError, EnrollError, ClientError for invalid settings and files at startup
 */
export function keepKeyFile(settings: AgentValues, run: AgentRun): Promise<void> {
  const brokerPlan = brokerAgentPlanOf(settings, run.env);
  return brokerPlan === undefined
    ? keepEnrolled(settings, run)
    : runExclusively(brokerPlan.keyFile, run.logger, () => keepPassports(brokerPlan, run));
}

async function keepEnrolled(settings: AgentValues, { logger, serve, stop }: AgentRun): Promise<void> {
  const plan = agentPlanOf(settings);
  const target = { ...plan.target, controlUrl: parseControlUrl(plan.target.controlUrl).text };
  await readCaFile(settings.controlCaFile);
  await runExclusively(plan.keyChoice.file, logger, async () => {
    const pairs = new KeyPairs(plan.keyChoice.file, target);
    await pairs.open();
    const { keeper, registry } = openKeeper({ plan, target, settings, pairs, logger });
    const end = await serve({ registry, readiness: () => agentReadiness(keeper.state, Date.now()) });
    await keeper.run(stop).finally(end);
  });
}

/** Locks the files while it runs, so that no other agent uses them. */
async function runExclusively(keyFile: string, logger: Logger, run: () => Promise<void>): Promise<void> {
  const guard = await guardFiles(keyFile, logger);
  try {
    await run();
  } finally {
    await guard?.release();
  }
}

interface Parts {
  readonly plan: AgentPlan;
  readonly target: EnrollmentTarget;
  readonly settings: AgentValues;
  readonly pairs: KeyPairs;
  readonly logger: Logger;
}

function openKeeper(parts: Parts): {
  readonly keeper: KeyKeeper;
  readonly registry: AgentProbes['registry'];
} {
  const { plan, logger } = parts;
  const metrics = createAgentMetrics(() => {
    const { isRevoked, record } = keeper.state;
    const isValid = record !== undefined && !isRevoked && isUsable(record, Date.now());
    return isValid ? Math.floor(record.key.expiresAtMs / 1000) : 0;
  });
  const keeper = new KeyKeeper(
    portsOf(parts, (event) => {
      logKeeperEvent(logger, event);
      if (event.kind === 'failed') metrics.enrollmentEnded(event.failure.kind);
      if (event.kind === 'replaced') metrics.enrollmentEnded('enrolled');
    }),
    { ...plan, startsAnew: plan.forcesReenrollment },
  );
  return { keeper, registry: metrics.registry };
}

function portsOf(
  { plan, target, settings, pairs }: Parts,
  report: (event: KeeperEvent) => void,
): KeeperPorts {
  return {
    pairs,
    report,
    random: Math.random,
    now: () => ({ wallMs: Date.now(), monotonicMs: performance.now() }),
    sleep: async (waitMs, stop) => {
      await delay(waitMs, undefined, { signal: stop }).catch(() => undefined);
    },
    readToken: () => readTokenFile(plan.tokenFile),
    enroll: async ({ keyFile, maxRetryAfterMs, pollIntervalMs, stop, report: reportProgress }) => {
      const caPem = await readCaFile(settings.controlCaFile);
      const keyChoice = { kind: 'make', file: keyFile } as const;
      const { record } = await enrollWithFiles(
        { ...plan, target, keyChoice, pollIntervalMs, maxRetryAfterMs, forcesReenrollment: false },
        { connection: { url: parseControlUrl(target.controlUrl), caPem }, stop, report: reportProgress },
      );
      return record;
    },
    readinessOf: (pair, stop) => readinessOf(pair, settings.controlCaFile, stop),
    refresh: ({ keyFile }, stop) =>
      refreshEnrolledKey(keyFile, questionOf(settings.controlCaFile, stop)).catch(() => false),
  };
}

async function readinessOf(
  { key, record }: KeyPair,
  controlCaFile: string | undefined,
  stop: AbortSignal,
): Promise<KeyReadiness> {
  const state = {
    keyThumbprint: key.publicKey.thumbprint,
    target: record.target,
    enrolled: record,
    attempt: undefined,
  };
  const answer = await askReadiness(state, key, questionOf(controlCaFile, stop)).catch(() => undefined);
  if (answer?.kind !== 'known') return 'unknown';
  const { conditions, isReady } = answer.readiness;
  if (isReady) return 'ready';
  const isRevoked = conditions.some(
    ({ condition, state: found }) => condition === 'derived_key' && found === 'revoked',
  );
  return isRevoked ? 'revoked' : 'not_ready';
}

function questionOf(controlCaFile: string | undefined, stop: AbortSignal): ReadinessQuestion {
  return { controlUrl: undefined, controlCaFile, timeoutMs: READINESS_TIMEOUT_MS, stop };
}

/** @throws CliError `agent_running`, `file_not_found` */
async function guardFiles(keyFile: string, logger: Logger): Promise<DirectoryLock | undefined> {
  const directory = dirname(keyFile);
  let lock: DirectoryLock;
  try {
    lock = await lockDirectory(directory, `.${basename(keyFile)}.agent-`);
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'ENOENT' || code === 'EACCES' || code === 'EROFS') {
      throw usageError('file_not_written', `${directory} cannot be written to (${code})`);
    }
    logger.warn(
      { event: 'files_not_guarded', fault: code },
      'the folder takes no sockets: a second agent would not be noticed',
    );
    return undefined;
  }
  if (!(await lock.isHeldByOthers())) return lock;
  await lock.release();
  throw usageError('agent_running', `another agent renews ${keyFile}: run one agent for each key file`);
}

/** Log lines of the agent: codes, key IDs and times, never a key or a token. Source: docs/operate/workloads.md "Log". */
function logKeeperEvent(logger: Logger, event: KeeperEvent): void {
  switch (event.kind) {
    case 'taken_over':
      logger.info({ event: 'key_taken_over', ...keyFields(event.record) }, 'key taken over');
      return;
    case 'enrolling':
      logger.info({ event: 'enrolling', cause: event.cause }, 'enrolling a new key');
      return;
    case 'under_way':
      logger.info({ event: 'enrollment_waiting', ...event.trouble }, 'enrollment under way');
      return;
    case 'replaced':
      logReplaced(logger, event);
      return;
    case 'failed': {
      const { code, text } = event.failure;
      const again_in_ms = Number.isFinite(event.waitMs) ? Math.ceil(event.waitMs) : 'token_change';
      logger.warn({ event: 'enrollment_failed', code, text, again_in_ms }, 'enrollment failed');
      return;
    }
    case 'held_up':
      logger.warn({ event: 'renewal_held_up', ...event.trouble }, 'renewal held up');
      return;
    case 'refreshed':
      logger.info({ event: 'profiles_refreshed', ...keyFields(event.record) }, 'signing profiles changed');
      return;
    case 'revoked':
      logger.error({ event: 'key_revoked', ...keyFields(event.record) }, 'key in place was revoked');
      return;
  }
}

function logReplaced(logger: Logger, event: Extract<KeeperEvent, { readonly kind: 'replaced' }>): void {
  const fields = { event: 'key_replaced', verifiers: event.readiness, ...keyFields(event.record) };
  if (event.readiness === 'ready') logger.info(fields, 'key put in place');
  else logger.warn(fields, 'key put in place, unconfirmed');
}

function keyFields({ key }: EnrolledKeyRecord) {
  return { key_id: key.keyId, expires_at: formatMoment(key.expiresAtMs) };
}

/** Readiness of the agent for `/readyz`: ready while the installed key is valid. Source: docs/operate/workloads.md "Probes". */
export function agentReadiness(state: KeeperState, nowMs: number): readonly ReadinessCheck[] {
  const { isUnconfirmed, trouble } = state;
  const why = trouble && `${trouble.code}: ${trouble.text}`;
  const problem = keyProblem(state, nowMs);
  const unconfirmed = isUnconfirmed
    ? 'key_unconfirmed: not every verifier is known to have the key: proofgate status says what blocks it'
    : undefined;
  return [
    { name: 'key', problem: problem === undefined ? undefined : [problem, why].filter(Boolean).join('; ') },
    { name: 'renewal', problem: undefined, warning: why ?? unconfirmed },
  ];
}

function keyProblem({ record, isRevoked, trouble }: KeeperState, nowMs: number): string | undefined {
  if (record === undefined) {
    return trouble === undefined ? 'not_enrolled: the first enrollment is under way' : 'not_enrolled';
  }
  if (isRevoked) return 'key_revoked: Control revoked the key in place: another one is being enrolled';
  if (isUsable(record, nowMs)) return undefined;
  return `key_expired: the key in place ended at ${formatMoment(record.key.expiresAtMs)}`;
}
