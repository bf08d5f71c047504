/** Reads the TLS files of a listener at startup and reloads them when they change. */
import { stat } from 'node:fs/promises';
import type { ReadinessCheck } from '../admin/admin-server.ts';
import { readPemFile } from '../files/input-files.ts';
import { readMountedSecret } from '../files/secret-files.ts';
import { CliError, usageError } from '../program/errors.ts';
import type { Logger } from '../telemetry/logger.ts';
import {
  certificateExpirySeconds,
  type ServerTls,
  type TlsMaterial,
  TlsMaterialError,
  tlsOptions,
} from './tls-material.ts';

/** TLS settings of one listener. */
export interface ListenerTlsSettings {
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
  readonly clientCaFile: string | undefined;
  readonly clientSans: readonly string[];
}

/** The listener in messages. */
export interface ListenerName {
  /** Name of its readiness check. */
  readonly check: string;
  /** Such as `gRPC port`. */
  readonly port: string;
  /** Start of its flags: `tls` in `--tls-cert-file`. */
  readonly flagPrefix: string;
}

interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  readonly clientCaFile: string | undefined;
}

/** TLS files and their contents. Contains the private key. */
export interface ServerTlsPlan extends ServerTls {
  readonly listener: ListenerName;
  readonly files: TlsFiles;
}

/**
 * @returns undefined when TLS is not configured
 * @throws CliError `tls_pair_incomplete`, `tls_client_ca_missing`, `bad_client_san`, or as {@link readTlsMaterial}
 */
export async function planListenerTls(
  listener: ListenerName,
  { certFile, clientCaFile, clientSans, keyFile }: ListenerTlsSettings,
): Promise<ServerTlsPlan | undefined> {
  const flag = `--${listener.flagPrefix}`;
  if (certFile === undefined && keyFile === undefined && clientCaFile === undefined) {
    if (clientSans.length === 0) return undefined;
  }
  if (certFile === undefined || keyFile === undefined) {
    throw usageError('tls_pair_incomplete', `TLS needs both ${flag}-cert-file and ${flag}-key-file`);
  }
  if (clientSans.length > 0 && clientCaFile === undefined) {
    throw usageError('tls_client_ca_missing', `${flag}-client-san needs ${flag}-client-ca-file`);
  }
  const odd = clientSans.find((name) => !/^[A-Za-z0-9._~:/@%+*-]+$/.test(name));
  if (odd !== undefined) {
    throw usageError('bad_client_san', `${flag}-client-san must be a URI or a DNS name of a certificate`);
  }
  const files = { certFile, keyFile, clientCaFile };
  return { listener, files, clientNames: clientSans, material: await readTlsMaterial(files) };
}

/** @throws CliError `tls_pair_invalid`, `tls_client_ca_invalid`, or an error of a file */
async function readTlsMaterial(files: TlsFiles): Promise<TlsMaterial> {
  const { certFile, clientCaFile, keyFile } = files;
  const cert = (await readPemFile(certFile)) ?? '';
  const clientCa = await readPemFile(clientCaFile);
  const material = { cert, clientCa, key: await readMountedSecret(keyFile) };
  try {
    tlsOptions({ material }, []);
    return material;
  } catch (error) {
    throw error instanceof TlsMaterialError ? materialFault(error, files) : error;
  }
}

function materialFault({ member, message }: TlsMaterialError, files: TlsFiles): CliError {
  return member === 'pair'
    ? usageError('tls_pair_invalid', `${files.certFile} and ${files.keyFile} are ${message}, in PEM`)
    : usageError('tls_client_ca_invalid', `${files.clientCaFile ?? ''}: ${message}, in PEM`);
}

const LOOK_EVERY_MS = 1_000;
/** Automatic renewal happens earlier than this. */
const EXPIRES_SOON_SECONDS = 24 * 60 * 60;

export interface TlsFileMetrics {
  /** @param seconds since the epoch */
  certificateExpires(seconds: number): void;
  certificateReloaded(outcome: 'succeeded' | 'failed'): void;
}

export interface FollowedTls {
  readonly plan: ServerTlsPlan;
  readonly take: (material: TlsMaterial) => void;
  readonly metrics: TlsFileMetrics;
  readonly logger: Logger;
}

export interface TlsFollower {
  check(): ReadinessCheck;
  close(): void;
}

/**
 * Reloads changed files. Files that do not match, as during their replacement, change nothing: the fault is logged once and
 * the next poll retries. Each poll resolves the file names anew, so it notices a replaced symbolic link.
 */
export function followTlsFiles({ logger, metrics, plan, take }: FollowedTls): TlsFollower {
  const { files } = plan;
  let expirySeconds = certificateExpirySeconds(plan.material);
  let used = plan.material;
  let seen: string | undefined;
  let fault: string | undefined;
  metrics.certificateExpires(expirySeconds);
  const look = async () => {
    const found = await fingerprint(files);
    if (found === seen && fault === undefined) return;
    const material = await readTlsMaterial(files);
    seen = found;
    fault = undefined;
    if (isSame(material, used)) return;
    take(material);
    used = material;
    expirySeconds = certificateExpirySeconds(material);
    metrics.certificateExpires(expirySeconds);
    metrics.certificateReloaded('succeeded');
    const expires = new Date(expirySeconds * 1000).toISOString();
    logger.info({ event: 'file_reloaded', file: plan.listener.check, expires }, 'TLS files taken into use');
  };
  const failed = (error: unknown) => {
    const code = error instanceof CliError ? error.code : 'file_unreadable';
    if (code === fault) return;
    fault = code;
    metrics.certificateReloaded('failed');
    logger.error(
      { event: 'file_rejected', file: plan.listener.check, code },
      'the changed TLS files are invalid; the previous ones stay in use',
    );
  };
  const timer = lookRegularly(() => look().catch(failed));
  return { check: () => tlsCheck(plan.listener, expirySeconds, fault), close: () => clearInterval(timer) };
}

/** Skips a poll while the previous one still runs. */
function lookRegularly(look: () => Promise<void>): NodeJS.Timeout {
  let isLooking = false;
  return setInterval(() => {
    if (isLooking) return;
    isLooking = true;
    void look().finally(() => {
      isLooking = false;
    });
  }, LOOK_EVERY_MS).unref();
}

function tlsCheck(
  { check, flagPrefix, port }: ListenerName,
  expirySeconds: number,
  fault: string | undefined,
): ReadinessCheck {
  const leftSeconds = expirySeconds - Math.floor(Date.now() / 1000);
  const problem =
    leftSeconds > 0
      ? undefined
      : `the certificate of the ${port} has expired: put a new one into --${flagPrefix}-cert-file`;
  const soon =
    leftSeconds > 0 && leftSeconds < EXPIRES_SOON_SECONDS
      ? `the certificate of the ${port} expires in ${leftSeconds} s: put a new one into --${flagPrefix}-cert-file`
      : undefined;
  const warning =
    fault === undefined
      ? soon
      : `the changed TLS files are invalid (${fault}); the previous ones stay in use`;
  return { name: check, problem, warning };
}

function isSame(a: TlsMaterial, b: TlsMaterial): boolean {
  return a.cert === b.cert && a.key === b.key && a.clientCa === b.clientCa;
}

/** Follows symbolic links, so it also changes when a link is replaced. */
async function fingerprint({ certFile, clientCaFile, keyFile }: TlsFiles): Promise<string> {
  const named = [certFile, keyFile, ...(clientCaFile === undefined ? [] : [clientCaFile])];
  const stats = await Promise.all(named.map((file) => stat(file)));
  return stats.map(({ ino, mtimeMs, size }) => `${ino}:${mtimeMs}:${size}`).join(' ');
}
