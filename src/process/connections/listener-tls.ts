/** Reads the TLS files of a listener at startup and reloads them when they change. */
import type { ReadinessCheck } from '../admin/admin-server.ts';
import { fileFingerprint } from '../files/file-fingerprint.ts';
import { FileFollower } from '../files/file-follower.ts';
import { readPemFile } from '../files/input-files.ts';
import { readMountedSecret } from '../files/secret-files.ts';
import { type CliError, usageError } from '../program/errors.ts';
import type { Logger } from '../telemetry/logger.ts';
import {
  certificateExpirySeconds,
  isSameMaterial,
  type ServerTls,
  type TlsMaterial,
  TlsMaterialError,
  tlsOptions,
} from './tls-material.ts';

/** TLS settings of one listener. */
export interface ListenerTlsSettings {
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
  readonly clientCaFile?: string | undefined;
  readonly clientSans?: readonly string[];
}

/** The listener in messages. */
export interface ListenerName {
  /** Name of its readiness check. */
  readonly check: string;
  /** Name of the port, such as `gRPC port`. */
  readonly port: string;
  /** Start of its flags: `tls` in `--tls-cert-file`. */
  readonly flagPrefix: string;
}

export interface TlsFiles {
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
  { certFile, clientCaFile, clientSans = [], keyFile }: ListenerTlsSettings,
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
export async function readTlsMaterial(files: TlsFiles): Promise<TlsMaterial> {
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
 * Reloads changed files. Files that do not match, as during their replacement, change nothing. Each check resolves the
 * file names again, so it detects a replaced symbolic link.
 */
export function followTlsFiles({ logger, metrics, plan, take }: FollowedTls): TlsFollower {
  const { certFile, clientCaFile, keyFile } = plan.files;
  const paths = [certFile, keyFile, ...(clientCaFile === undefined ? [] : [clientCaFile])];
  let expirySeconds = certificateExpirySeconds(plan.material);
  let used = plan.material;
  metrics.certificateExpires(expirySeconds);
  const follower = new FileFollower({
    fingerprint: () => fileFingerprint(...paths),
    read: () => readTlsMaterial(plan.files),
    take(material) {
      if (isSameMaterial(material, used)) return;
      take(material);
      used = material;
      expirySeconds = certificateExpirySeconds(material);
      metrics.certificateExpires(expirySeconds);
      metrics.certificateReloaded('succeeded');
      const expires = new Date(expirySeconds * 1000).toISOString();
      logger.info({ event: 'file_reloaded', file: plan.listener.check, expires }, 'TLS files taken into use');
    },
    onRejected({ code }) {
      metrics.certificateReloaded('failed');
      logger.error(
        { event: 'file_rejected', file: plan.listener.check, code },
        'the changed TLS files are invalid; the previous ones stay in use',
      );
    },
  });
  return {
    check: () => tlsCheck(plan.listener, expirySeconds, follower.fault?.code),
    close: () => follower.close(),
  };
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
