/** Serves with the certificate that lies in the files now: whoever renews it restarts nothing. */
import { stat } from 'node:fs/promises';
import { Server as TlsServer } from 'node:https';
import type { Server } from 'node:net';
import { CliError } from '../../program/errors.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { readTlsMaterial, type TlsFiles } from './control-plan.ts';

const LOOK_EVERY_MS = 2000;

/**
 * A pair that does not fit, as while the two files are being replaced, changes nothing; it is looked at again.
 * @returns ends it
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

/** Changes with the files, also when a link is put in another's place. */
async function fingerprint({ certFile, keyFile }: TlsFiles): Promise<string> {
  const stats = await Promise.all([stat(certFile), stat(keyFile)]);
  return stats.map(({ ino, mtimeMs, size }) => `${ino}:${mtimeMs}:${size}`).join(' ');
}

function codeOf(error: unknown): string {
  return error instanceof CliError ? error.code : 'file_unreadable';
}
