/** Reloads Control's TLS certificate when its files change, without a restart. */
import { Server as TlsServer } from 'node:https';
import type { Server } from 'node:net';
import { readTlsMaterial, type TlsFiles } from '../../process/connections/listener-tls.ts';
import { isSameMaterial, type TlsMaterial } from '../../process/connections/tls-material.ts';
import { fileFingerprint } from '../../process/files/file-fingerprint.ts';
import { FileFollower } from '../../process/files/file-follower.ts';
import type { Logger } from '../../process/telemetry/logger.ts';

/**
 * While the certificate and key do not match, as during their replacement, the old pair stays in use.
 * @param served the material that the server was opened with
 * @returns a function that stops following
 */
export function followCertificate(
  server: Server,
  files: TlsFiles,
  served: TlsMaterial,
  logger: Logger,
): () => void {
  if (!(server instanceof TlsServer)) return () => {};
  let used = served;
  const follower = new FileFollower({
    fingerprint: () => fileFingerprint(files.certFile, files.keyFile),
    read: () => readTlsMaterial(files),
    take(material) {
      if (isSameMaterial(material, used)) return;
      const { cert, key } = material;
      server.setSecureContext({ cert, key });
      used = material;
      logger.info({ event: 'certificate_changed' }, 'serving with the changed certificate');
    },
    onRejected: ({ code }) => logger.warn({ event: 'certificate_unusable', code }, 'certificate'),
  });
  return () => follower.close();
}
