/** Tests which settings of the audit trail fit together. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { planAudit } from '../../../src/verifier/assembly/audit-settings.ts';

type Settings = Parameters<typeof planAudit>[0];

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'proofgate-audit-settings-'));
});
afterAll(() => rm(directory, { recursive: true }));

const NONE: Settings = {
  auditFile: undefined,
  auditUrl: undefined,
  auditTokenFile: undefined,
  auditCaFile: undefined,
  auditGzip: false,
  auditQueueBytes: 70_000,
  audit: 'best-effort',
  allowPlainHttp: false,
};
const URL_ = 'https://collector.example/ingest';

it.each<[what: string, settings: Partial<Settings>, plan: object]>([
  ['nothing', {}, { mode: 'best_effort', file: '-', collector: undefined, maxQueueBytes: 70_000 }],
  ['required', { audit: 'required', auditFile: '/a' }, { mode: 'required', file: '/a' }],
  [
    'a collector alone',
    { auditUrl: URL_ },
    { file: undefined, collector: { url: new URL(URL_), gzip: false } },
  ],
  ['both', { auditFile: '-', auditUrl: URL_, auditGzip: true }, { file: '-', collector: { gzip: true } }],
  [
    'plain HTTP when allowed',
    { auditUrl: 'http://c/', allowPlainHttp: true },
    { collector: { url: new URL('http://c/') } },
  ],
])('%s', async (_what, settings, plan) => {
  expect(await planAudit({ ...NONE, ...settings })).toMatchObject(plan);
});

describe('is refused', () => {
  it.each<[code: string, settings: Partial<Settings>]>([
    ['audit_required_needs_file', { audit: 'required', auditUrl: URL_ }],
    ['audit_url_required', { auditTokenFile: '/t' }],
    ['audit_url_required', { auditCaFile: '/t' }],
    ['audit_url_required', { auditGzip: true }],
    ['audit_url_invalid', { auditUrl: 'collector' }],
    ['audit_url_invalid', { auditUrl: 'ftp://collector.example/' }],
    ['audit_url_invalid', { auditUrl: 'https://user@collector.example/' }],
    ['audit_url_not_https', { auditUrl: 'http://collector.example/' }],
  ])('%s: %j', async (code, settings) => {
    await expect(planAudit({ ...NONE, ...settings })).rejects.toMatchObject({ code, exitCode: 2 });
  });

  it('a token file that cannot be read, at the start only', async () => {
    const auditTokenFile = join(directory, 'token');
    const settings = { ...NONE, auditUrl: URL_, auditTokenFile };
    await expect(planAudit(settings)).rejects.toMatchObject({ exitCode: expect.any(Number) });
    await writeFile(auditTokenFile, 'secret-token-of-the-collector\n', { mode: 0o600 });
    const { collector } = await planAudit(settings);
    expect(await collector?.readToken?.()).toBe('secret-token-of-the-collector');
    await rm(auditTokenFile);
    expect(await collector?.readToken?.()).toBeUndefined();
  });
});
