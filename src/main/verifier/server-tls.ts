/** The ext_authz server's certificate as files: read at the start, and again whenever they change. */
import { stat } from 'node:fs/promises';
import type { ReadinessCheck } from '../../enforcement/admin/server.ts';
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

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  readonly clientCaFile: string | undefined;
}

/** Files that could be read, and what they held. Holds a secret. */
export interface ServerTlsPlan extends ServerTls {
  readonly files: TlsFiles;
}

/**
 * @returns undefined where no TLS is asked for
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

/** @throws CliError `tls_pair_invalid`, `tls_client_ca_invalid`, or as files are refused */
export async function readTlsMaterial(files: TlsFiles): Promise<TlsMaterial> {
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
/** Whoever renews certificates does so earlier. */
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
 * Takes changed files into use. What does not fit, as while they are being replaced, changes nothing, is told once, and is
 * looked at again. Files are looked at by name each time, so a link that is put in another's place is a change.
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

/** One look at a time. */
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

/** Changes with the files, also when a link is put in another's place. */
async function fingerprint({ certFile, clientCaFile, keyFile }: TlsFiles): Promise<string> {
  const named = [certFile, keyFile, ...(clientCaFile === undefined ? [] : [clientCaFile])];
  const stats = await Promise.all(named.map((file) => stat(file)));
  return stats.map(({ ino, mtimeMs, size }) => `${ino}:${mtimeMs}:${size}`).join(' ');
}
