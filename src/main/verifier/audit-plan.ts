/** Validates the audit settings: the file, the collector and the mode. */
import { readBearerTokenFile, readBearerTokenFileIfUsable } from '../../program/bearer-token-file.ts';
import { readCaFile } from '../../program/ca-file.ts';
import { usageError } from '../../program/errors.ts';
import { isLoopback } from '../../protocol/loopback.ts';
import type { AuditMode } from '../../verifier/audit/sink.ts';
import type { VerifierSettings } from './verifier-settings.ts';

export interface AuditPlan {
  readonly mode: AuditMode;
  /** `-` is standard output; undefined when events go to the collector only. */
  readonly file: string | undefined;
  readonly collector: CollectorPlan | undefined;
  readonly maxQueueBytes: number;
}

export interface CollectorPlan {
  readonly url: URL;
  /** Undefined when no token is sent. */
  readonly readToken: (() => Promise<string | undefined>) | undefined;
  /** PEM */
  readonly certificateAuthorities: string | undefined;
  readonly gzip: boolean;
}

/**
 * @throws CliError `audit_url_required`, `audit_url_invalid`, `audit_url_not_https`, `audit_required_needs_file`,
 *   `token_file_invalid`, or an error of a file
 */
export async function planAudit(settings: VerifierSettings): Promise<AuditPlan> {
  const mode: AuditMode = settings.audit === 'required' ? 'required' : 'best_effort';
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

async function planCollector(settings: VerifierSettings): Promise<CollectorPlan | undefined> {
  const { allowPlainHttp, auditCaFile, auditGzip, auditTokenFile, auditUrl } = settings;
  if (auditUrl === undefined) {
    if (auditCaFile === undefined && auditTokenFile === undefined && !auditGzip) return undefined;
    throw usageError('audit_url_required', 'what is said of the collector needs --audit-url');
  }
  const url = parseCollectorUrl(auditUrl, allowPlainHttp);
  // At startup a file without a token is a mistake; later a rotation may be in progress.
  if (auditTokenFile !== undefined) await readBearerTokenFile(auditTokenFile);
  return {
    url,
    readToken: auditTokenFile === undefined ? undefined : () => readBearerTokenFileIfUsable(auditTokenFile),
    certificateAuthorities: await readCaFile(auditCaFile),
    gzip: auditGzip,
  };
}

/** Requires HTTPS beyond loopback: audit events and the collector's token are confidential. */
function parseCollectorUrl(text: string, allowPlainHttp: boolean): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url?.username === '' && url.password === '' && url.hash === '';
  if (url === undefined || !isPlain || !/^https?:$/.test(url.protocol)) {
    throw usageError(
      'audit_url_invalid',
      '--audit-url must be https://HOST[:PORT]/PATH, without user, password or fragment',
    );
  }
  if (url.protocol === 'http:' && !isLoopback(url.hostname) && !allowPlainHttp) {
    throw usageError('audit_url_not_https', '--audit-url must be https://, or --allow-plain-http be given');
  }
  return url;
}
