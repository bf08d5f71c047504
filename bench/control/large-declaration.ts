/**
 * Measures a declaration of 100,000 clients, as `proofgate ctl apply` sends it: a dry run of all, then the clients in parts of as
 * many as one apply may add, each with the ETag of its own dry run.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import { parse } from 'yaml';
import { ControlStage, type ControlStageOptions } from '../../test/support/control/control-fixture.ts';
import { SITE_ID } from '../../test/support/control/site-declaration.ts';
import { TestPostgresServer } from '../../test/support/harness/postgres-server.ts';

export const DECLARED_CLIENTS = 100_000;
/** Fewer clients than one apply may have steps. */
const PART = 9000;
const TIMEOUT_MS = 300_000;

export interface DeclarationFigures {
  readonly database: 'SQLite' | 'PostgreSQL';
  readonly fileMiB: number;
  readonly comparedMs: number;
  readonly appliedMs: number;
  /** Peak of Control's process. */
  readonly rssMiB: number;
}

export async function measureLargeDeclaration(): Promise<readonly DeclarationFigures[]> {
  const server = await TestPostgresServer.start();
  try {
    const databaseUrl = await server.createDatabase();
    return [await measure('SQLite', {}), await measure('PostgreSQL', { databaseUrl })];
  } finally {
    await server.stop();
  }
}

async function measure(
  database: DeclarationFigures['database'],
  options: ControlStageOptions,
): Promise<DeclarationFigures> {
  const stage = await ControlStage.start(options);
  try {
    const site = await largeSite(stage);
    const body = JSON.stringify(site);
    const token = (await readFile(stage.tokenFile, 'utf8')).trim();
    const put = async (sent: string, query: string, headers: Readonly<Record<string, string>>) => {
      const startedMs = performance.now();
      const answer = await request(`${stage.controlUrl}/v1/sites/${SITE_ID}/declaration${query}`, {
        ...{ method: 'PUT', body: sent, headersTimeout: TIMEOUT_MS },
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
      });
      const text = await answer.body.text();
      if (answer.statusCode !== 200) throw new Error(text);
      return { ms: performance.now() - startedMs, etag: String(answer.headers.etag) };
    };
    const compared = await put(body, '?dry_run=true', {});
    let appliedMs = 0;
    for (let count = PART; count < DECLARED_CLIENTS + PART; count += PART) {
      const part = JSON.stringify({ ...site, clients: site.clients.slice(0, count) });
      const { etag } = await put(part, '?dry_run=true', {});
      appliedMs += (await put(part, '', { 'if-match': etag })).ms;
    }
    const fileMiB = Buffer.byteLength(body) / 1024 ** 2;
    const rssMiB = await peakRssMiB(stage.control.pid);
    return { database, fileMiB, comparedMs: compared.ms, appliedMs, rssMiB };
  } finally {
    await stage.stop();
  }
}

async function largeSite(stage: ControlStage) {
  const site = parse(await readFile(join(stage.directory, 'site.yaml'), 'utf8'));
  const clients = Array.from({ length: DECLARED_CLIENTS - site.clients.length }, (_, index) => ({
    client_id: `client-${index}`,
    subject: `client:${index}`,
  }));
  return { ...site, clients: [...site.clients, ...clients] };
}

async function peakRssMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}
