/** Settings of the audit trail, and its options. Source: docs/operate/cli.md. */
import { readCaFile } from '../../process/files/input-files.ts';
import { readBearerTokenFile, readBearerTokenFileIfUsable } from '../../process/files/secret-files.ts';
import { usageError } from '../../process/program/errors.ts';
import { isBareHttpUrl, mayCarrySecrets } from '../../process/settings/service-urls.ts';
import {
  choice,
  integer,
  optional,
  type SettingValues,
  text,
  toggle,
  withDefault,
} from '../../process/settings/settings.ts';
import type { AuditSetup } from './open-audit.ts';

export const AUDIT_SETTINGS = {
  auditFile: optional(
    text(
      '--audit-file <file>',
      'file for audit events, JSON lines; - (the default without --audit-url) is standard output',
    ),
  ),
  auditUrl: optional(text('--audit-url <url>', 'collector that receives audit events in batches')),
  auditTokenFile: optional(
    text('--audit-token-file <file>', "the collector's token; read again for each batch"),
  ),
  auditCaFile: optional(
    text('--audit-ca-file <file>', 'CA certificates (PEM) for the connection to the collector'),
  ),
  auditGzip: toggle('--audit-gzip', 'compress requests to the collector', false),
  auditQueueBytes: withDefault(
    integer('--audit-queue-bytes <count>', 'maximum size of queued audit events, bytes', {
      min: 65_536,
      max: 1_073_741_824,
    }),
    '16777216',
  ),
  audit: withDefault(
    choice('--audit <mode>', 'required: deny a request whose audit event cannot be written', [
      'best-effort',
      'required',
    ]),
    'best-effort',
  ),
};

type AuditSettings = SettingValues<typeof AUDIT_SETTINGS> & { readonly allowPlainHttp: boolean };

/** @throws CliError with exit code 2 */
export async function planAudit(settings: AuditSettings): Promise<AuditSetup> {
  const mode = settings.audit === 'required' ? 'required' : 'best_effort';
  const collector = await planCollector(settings);
  const file = settings.auditFile ?? (collector === undefined ? '-' : undefined);
  if (mode === 'required' && file === undefined) {
    // In this mode an event is on disk before the response leaves. A queue in memory does not ensure that,
    // and a round trip to the collector for each request costs too much.
    throw usageError(
      'audit_required_needs_file',
      '--audit required records in a file: give --audit-file beside --audit-url',
    );
  }
  return { mode, file, collector, maxQueueBytes: settings.auditQueueBytes };
}

async function planCollector(settings: AuditSettings): Promise<AuditSetup['collector']> {
  const { allowPlainHttp, auditCaFile, auditGzip, auditTokenFile, auditUrl } = settings;
  if (auditUrl === undefined) {
    if (auditCaFile === undefined && auditTokenFile === undefined && !auditGzip) return undefined;
    throw usageError('audit_url_required', 'the settings of the collector need --audit-url');
  }
  const url = URL.canParse(auditUrl) ? new URL(auditUrl) : undefined;
  if (url === undefined || !isBareHttpUrl(url)) {
    throw usageError(
      'audit_url_invalid',
      '--audit-url must be https://HOST[:PORT]/PATH, without user, password or fragment',
    );
  }
  if (!mayCarrySecrets(url, allowPlainHttp)) {
    throw usageError('audit_url_not_https', '--audit-url must be https://, or --allow-plain-http be given');
  }
  // At startup a file without a token is a mistake; later a rotation may be in progress.
  if (auditTokenFile !== undefined) await readBearerTokenFile(auditTokenFile);
  return {
    url,
    readToken: auditTokenFile === undefined ? undefined : () => readBearerTokenFileIfUsable(auditTokenFile),
    certificateAuthorities: await readCaFile(auditCaFile),
    gzip: auditGzip,
  };
}
