/** Reads the ext_authz server's TLS files at startup and reloads them when they change. */
import { stat } from 'node:fs/promises';
import type { ReadinessCheck } from '../../enforcement/admin/admin-server.ts';
import {
  certificateExpirySeconds,
  type ServerTls,
  type TlsMaterial,
  TlsMaterialError,
  tlsOptions,
} from '../../enforcement/ext-authz-grpc/tls.ts';
import { CliError, usageError } from '../../program/errors.ts';
import { readPemFile } from '../../program/input-files.ts';
import { readMountedSecret } from '../../program/secret-files.ts';
import type { ExtAuthzServerMetrics } from '../../telemetry/ext-authz-server-metrics.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { VerifierSettings } from './verifier-settings.ts';

interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  readonly clientCaFile: string | undefined;
}

/** TLS files and their contents. Contains the private key. */
export interface ServerTlsPlan extends ServerTls {
  readonly files: TlsFiles;
}

/**
 * @returns undefined when TLS is not configured
 * @throws CliError `tls_pair_incomplete`, `tls_client_ca_missing`, `bad_client_san`, or as {@link readTlsMaterial}
 */
export async function planServerTls(settings: VerifierSettings): Promise<ServerTlsPlan | undefined> {
  const { tlsCertFile, tlsClientCaFile, tlsClientSans, tlsKeyFile } = settings;
  if (tlsCertFile === undefined && tlsKeyFile === undefined && tlsClientCaFile === undefined) {
    if (tlsClientSans.length === 0) return undefined;
  }
  if (tlsCertFile === undefined || tlsKeyFile === undefined) {
    throw usageError('tls_pair_incomplete', 'TLS needs both --tls-cert-file and --tls-key-file');
  }
  if (tlsClientSans.length > 0 && tlsClientCaFile === undefined) {
    throw usageError('tls_client_ca_missing', '--tls-client-san needs --tls-client-ca-file');
  }
  const odd = tlsClientSans.find((name) => !/^[A-Za-z0-9._~:/@%+*-]+$/.test(name));
  if (odd !== undefined) {
    throw usageError('bad_client_san', '--tls-client-san must be a URI or a DNS name of a certificate');
  }
  const files = { certFile: tlsCertFile, keyFile: tlsKeyFile, clientCaFile: tlsClientCaFile };
  return { files, clientNames: tlsClientSans, material: await readTlsMaterial(files) };
}

/** @throws CliError `tls_pair_invalid`, `tls_client_ca_invalid`, or an error of a file */
async function readTlsMaterial(files: TlsFiles): Promise<TlsMaterial> {
  const { certFile, clientCaFile, keyFile } = files;
  const cert = (await readPemFile(certFile)) ?? '';
  const clientCa = await readPemFile(clientCaFile);
  const material = { cert, clientCa, key: await readMountedSecret(keyFile) };
  try {
    tlsOptions(material);
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

export interface FollowedTls {
  readonly plan: ServerTlsPlan;
  readonly take: (material: TlsMaterial) => void;
  readonly metrics: ExtAuthzServerMetrics;
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
    logger.info({ expires: new Date(expirySeconds * 1000).toISOString() }, 'TLS files taken into use');
  };
  const failed = (error: unknown) => {
    const code = error instanceof CliError ? error.code : 'file_unreadable';
    if (code === fault) return;
    fault = code;
    metrics.certificateReloaded('failed');
    logger.error({ code }, 'TLS files refused: the ones before stay in use');
  };
  const timer = lookRegularly(() => look().catch(failed));
  return { check: () => tlsCheck(expirySeconds, fault), close: () => clearInterval(timer) };
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

function tlsCheck(expirySeconds: number, fault: string | undefined): ReadinessCheck {
  const leftSeconds = expirySeconds - Math.floor(Date.now() / 1000);
  const problem =
    leftSeconds > 0
      ? undefined
      : 'the certificate of the gRPC port has expired: put a new one into --tls-cert-file';
  const soon =
    leftSeconds < EXPIRES_SOON_SECONDS
      ? `the certificate of the gRPC port expires in ${leftSeconds} s: put a new one into --tls-cert-file`
      : undefined;
  const warning =
    fault === undefined
      ? soon
      : `changed TLS files are refused (${fault}), the ones before serve: mend them; they are looked at again`;
  return { name: 'tls', problem, warning };
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
