/**
 * The agent with a broker: keeps a holder key and its passports on disk, and renews them.
 * Source: docs/operate/workloads.md "With a broker".
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { ReadinessCheck } from '../../process/admin/admin-server.ts';
import { readCaFile } from '../../process/files/input-files.ts';
import { readSigningKeyFile } from '../../process/files/key-files.ts';
import { CliError } from '../../process/program/errors.ts';
import type { Logger } from '../../process/telemetry/logger.ts';
import { ClientError } from '../../protocol/client-error.ts';
import { formatMoment } from '../../protocol/rfc3339.ts';
import { BrokerError } from '../broker/broker-error.ts';
import { openIdentitySource } from '../broker/broker-identity.ts';
import type { IdentitySource } from '../broker/identity-source.ts';
import {
  type KeepEvent,
  type KeepFailure,
  PassportKeeper,
  type PassportKeeperPorts,
} from '../broker/passport-keeper.ts';
import { createPassportMetrics } from './agent-metrics.ts';
import type { AgentRun } from './agent-run.ts';
import type { BrokerAgentPlan } from './agent-settings.ts';
import { issuePassports } from './issue-passports.ts';
import { PassportPairs } from './passport-pairs.ts';

/** The part of the installed set that the agent keeps in memory. */
export interface InstalledPassports {
  readonly endsAtMs: number;
  readonly lifetimeMs: number;
  readonly keyThumbprint: string;
  readonly svid: { readonly spiffeId: string; readonly expiresAtMs: number } | undefined;
  readonly subject: string;
}

/** @throws CliError, BrokerError, ClientError for invalid settings and files at startup */
export async function keepPassports(
  plan: BrokerAgentPlan,
  { logger, serve, stop }: Omit<AgentRun, 'env'>,
): Promise<void> {
  const { call, keyFile } = plan;
  await readCaFile(call.caFile);
  if (call.source.kind === 'key') await readSigningKeyFile(call.source.file);
  const pairs = new PassportPairs(keyFile);
  await pairs.open();
  // The SVID's own key stays in memory. The key in the file can only sign requests, and only until the passport expires.
  const source = openIdentitySource(call, 'signed_form');
  try {
    const metrics = createPassportMetrics(() => endSeconds(keeper.current));
    const keeper = new PassportKeeper<InstalledPassports>(
      portsOf(plan, { pairs, source }, (event) => {
        logKeepEvent(logger, event);
        metrics.passportsEnded(event.kind === 'renewed' ? 'issued' : event.failure.kind);
      }),
      await readInstalled(pairs),
    );
    const end = await serve({
      registry: metrics.registry,
      readiness: () => passportReadiness(keeper, Date.now()),
    });
    await keeper.run(stop).finally(end);
  } finally {
    source.close();
  }
}

function portsOf(
  { audiences, call, profileFile }: BrokerAgentPlan,
  { pairs, source }: { readonly pairs: PassportPairs; readonly source: IdentitySource },
  report: (event: KeepEvent<InstalledPassports>) => void,
): PassportKeeperPorts<InstalledPassports> {
  const { url } = call;
  return {
    issue: async (stop) => {
      const set = await issuePassports({ url, source, audiences, profileFile }, stop);
      await pairs.install(set, url.text);
      return {
        endsAtMs: Math.min(...set.passports.map(({ expiresAtMs }) => expiresAtMs)),
        lifetimeMs: Math.min(...set.passports.map(({ lifetimeMs }) => lifetimeMs)),
        keyThumbprint: set.key.publicKey.thumbprint,
        svid: set.svid,
        subject: set.passports[0]?.subject ?? '',
      };
    },
    onChange: (listener) => source.onChange(listener),
    failureOf,
    now: () => ({ wallMs: Date.now(), monotonicMs: performance.now() }),
    sleep: async (waitMs, stop) => {
      await delay(waitMs, undefined, { signal: stop }).catch(() => undefined);
    },
    random: Math.random,
    report,
  };
}

/** The set that an earlier run installed: valid until it expires, and renewed at once. */
async function readInstalled(pairs: PassportPairs): Promise<InstalledPassports | undefined> {
  const state = await pairs.current();
  const [first] = state?.passports ?? [];
  if (state === undefined || first === undefined) return undefined;
  const endsAtMs = Math.min(...state.passports.map(({ expiresAtMs }) => expiresAtMs));
  const { keyThumbprint, svid } = state;
  return { endsAtMs, lifetimeMs: Number.POSITIVE_INFINITY, keyThumbprint, svid, subject: first.subject };
}

function failureOf(error: unknown): KeepFailure {
  if (error instanceof BrokerError) return { kind: error.kind, code: error.code, text: error.message };
  if (error instanceof ClientError || error instanceof CliError) {
    return { kind: 'usage', code: error.code, text: error.message };
  }
  return { kind: 'internal', code: 'internal', text: error instanceof Error ? error.message : 'unexpected' };
}

function endSeconds(installed: InstalledPassports | undefined): number {
  const isValid = installed !== undefined && Date.now() < installed.endsAtMs;
  return isValid ? Math.floor(installed.endsAtMs / 1000) : 0;
}

/** Log lines: codes, thumbprints, names and times, never a key or a passport. Source: docs/operate/workloads.md "Log". */
function logKeepEvent(logger: Logger, event: KeepEvent<InstalledPassports>): void {
  if (event.kind === 'failed') {
    const { code, text } = event.failure;
    const again_in_ms = Math.ceil(event.waitMs);
    logger.warn({ event: 'passport_failed', code, text, again_in_ms }, 'no new passport');
    return;
  }
  const { endsAtMs, keyThumbprint, subject, svid } = event.set;
  logger.info(
    {
      event: 'passport_renewed',
      subject,
      key_thumbprint: keyThumbprint,
      expires_at: formatMoment(endsAtMs),
      svid_expires_at: svid && formatMoment(svid.expiresAtMs),
    },
    'passport put in place',
  );
}

/** Ready while the installed passports are valid. Source: docs/operate/workloads.md "With a broker". */
export function passportReadiness(
  { current, failure }: Pick<PassportKeeper<InstalledPassports>, 'current' | 'failure'>,
  nowMs: number,
): readonly ReadinessCheck[] {
  const why = failure && `${failure.code}: ${failure.text}`;
  const isValid = current !== undefined && nowMs < current.endsAtMs;
  const problem =
    current === undefined
      ? 'passport_missing: the first passport is under way'
      : `passport_expired: the passport ended at ${formatMoment(current.endsAtMs)}`;
  return [
    { name: 'passport', problem: isValid ? undefined : [problem, why].filter(Boolean).join('; ') },
    { name: 'renewal', problem: undefined, warning: why },
  ];
}
