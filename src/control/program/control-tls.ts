/** Reloads Control's TLS certificate when its files change, without a restart. */
import { stat } from 'node:fs/promises';
import { Server as TlsServer } from 'node:https';
import type { Server } from 'node:net';
import { CliError } from '../../process/program/errors.ts';
import type { Logger } from '../../process/telemetry/logger.ts';
import { readTlsMaterial, type TlsFiles } from './control-plan.ts';

const LOOK_EVERY_MS = 2000;

/**
 * While the certificate and key do not match, as during their replacement, the old pair stays in use and the next poll retries.
 * @returns a function that stops polling
 */
export function followCertificate(server: Server, files: TlsFiles, logger: Logger): () => void {
  if (!(server instanceof TlsServer)) return () => {};
  let served: string | undefined;
  let isLooking = false;
  const look = async () => {
    const found = await fingerprint(files);
    if (served === undefined || found === served) {
      served = found;
      return;
    }
    server.setSecureContext(await readTlsMaterial(files));
    served = found;
    logger.info({ event: 'certificate_changed' }, 'serving with the changed certificate');
  };
  const timer = setInterval(() => {
    if (isLooking) return;
    isLooking = true;
    look()
      .catch((error: unknown) =>
        logger.warn({ event: 'certificate_unusable', code: codeOf(error) }, 'certificate'),
      )
      .finally(() => {
        isLooking = false;
      });
  }, LOOK_EVERY_MS).unref();
  void look().catch(() => {});
  return () => clearInterval(timer);
}

/** Follows symbolic links, so it also changes when a link is replaced. */
async function fingerprint({ certFile, keyFile }: TlsFiles): Promise<string> {
  const stats = await Promise.all([stat(certFile), stat(keyFile)]);
  return stats.map(({ ino, mtimeMs, size }) => `${ino}:${mtimeMs}:${size}`).join(' ');
}

function codeOf(error: unknown): string {
  return error instanceof CliError ? error.code : 'file_unreadable';
}
