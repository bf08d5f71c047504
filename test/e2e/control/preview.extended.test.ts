/**
 * `ctl preview` over decisions of a real verifier that follows a real Control: what it judged is what the verifier then does.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse, stringify } from 'yaml';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import type { PreviewReport } from '../../../src/verifier/preview/preview.ts';
import { ALLOWED, FollowedSite, type FollowingVerifier } from '../../support/control/followed-site.ts';
import { SITE_ID } from '../../support/control/site-declaration.ts';
import { waitFor } from '../../support/wait.ts';

let site: FollowedSite;
let verifier: FollowingVerifier;
let keys: { readonly billing: string; readonly reporting: string };

beforeAll(async () => {
  site = await FollowedSite.start({ targets: ['gateway'] });
  verifier = await site.startVerifier({ program: undefined, target: 'gateway', replay: 'memory' });
  keys = {
    billing: (await site.stage.enroll('billing')).keyFile,
    reporting: (await site.stage.enroll('reporting')).keyFile,
  };
  for (const key of Object.values(keys)) await site.awaitOutcome(verifier, key, ALLOWED);
  await settled();
});
afterAll(() => site?.stop());

/** Until the verifier has what Control published last. */
async function settled(): Promise<void> {
  await waitFor('the verifier has the newest revision', async () => {
    const { targets, unpublished_since: unpublished } = await site.stage.get(`/v1/sites/${SITE_ID}/overview`);
    return unpublished === undefined && (targets as { readonly current: number }).current === 1
      ? true
      : undefined;
  });
}

type Declared = {
  sources: object[];
  enrollment_policies: object[];
  clients: { client_id: string; grants: { resource: string; access: string }[] }[];
  routes: {
    route_id: string;
    audience: string;
    required_provenance?: object;
    allowed_sources: { required_key_binding: string; subject_prefix: string }[];
  }[];
};

async function siteFile(change: (declared: Declared) => void): Promise<string> {
  const declared: Declared = parse(await readFile(join(site.stage.directory, 'site.yaml'), 'utf8'));
  change(declared);
  const file = join(site.stage.directory, 'changed.yaml');
  await writeFile(file, stringify(declared));
  return file;
}

/** The events of one request of each caller. */
async function decisions(): Promise<{ readonly file: string; readonly events: number }> {
  const since = new Date().toISOString();
  await verifier.present(await site.sign(keys.billing));
  await verifier.present(await site.sign(keys.reporting));
  const lines = await waitFor('both events', () => {
    const found = verifier.auditLines.filter((line) => JSON.parse(line).time >= since);
    return found.length === 2 ? found : undefined;
  });
  const file = join(site.stage.directory, 'audit.jsonl');
  await writeFile(file, `${lines.join('\n')}\n`);
  return { file, events: lines.length };
}

const route = ({ routes }: Declared) =>
  routes.find(({ route_id }) => route_id === 'orders-read') as Declared['routes'][number];

const CHANGES: readonly {
  readonly kind: string;
  readonly change: (declared: Declared) => void;
  readonly flags?: readonly string[];
  readonly denies: readonly ('billing' | 'reporting')[];
}[] = [
  { kind: 'nothing', change: () => {}, denies: [] },
  {
    kind: 'a route is observed, which no flag allows here',
    change: (declared) =>
      void Object.assign(route(declared), {
        enforcement: 'observe',
        observe_until: formatTime(Math.floor(Date.now() / 1000) + 3600),
      }),
    denies: [],
  },
  {
    kind: 'a grant goes',
    change: ({ clients }) => void clients.find(({ client_id }) => client_id === 'reporting')?.grants.pop(),
    denies: ['reporting'],
  },
  {
    kind: 'a source is narrower',
    change: (declared) =>
      void Object.assign(route(declared).allowed_sources[0] ?? {}, { subject_prefix: 'client:billing:' }),
    denies: ['billing', 'reporting'],
  },
  {
    kind: 'a binding is stronger',
    change: (declared) =>
      void Object.assign(route(declared).allowed_sources[0] ?? {}, {
        required_key_binding: 'attested_workload',
      }),
    denies: ['billing', 'reporting'],
  },
  {
    kind: 'an attribute is required',
    change: (declared) =>
      void Object.assign(route(declared), {
        required_provenance: { verified_subject: ['system:serviceaccount:prod:billing'] },
      }),
    denies: ['reporting'],
  },
  {
    kind: 'a route goes',
    change: (declared) => void declared.routes.splice(declared.routes.indexOf(route(declared)), 1),
    flags: ['--prune'],
    denies: ['billing', 'reporting'],
  },
];

describe('a preview', () => {
  it.each(CHANGES)('says what the verifier then does: $kind', async ({ change, denies, flags = [] }) => {
    const { events, file } = await decisions();
    const changed = await siteFile(change);
    const previewed = await site.stage.tryCtl('preview', '-f', changed, '--decisions', file, ...flags);
    expect([previewed.exitCode, previewed.stderr]).toEqual([denies.length === 0 ? 0 : 6, '']);
    const report = JSON.parse(previewed.stdout) as PreviewReport;
    expect(report).toMatchObject({
      judged: events,
      not_judged: {},
      newly_denied: { requests: denies.length },
    });
    const callers = report.newly_denied.callers.map(({ subject }) => subject).sort();
    expect(callers).toEqual(denies.map((name) => `client:${name}`));

    await site.stage.ctl('apply', '-f', changed, ...flags);
    await settled();
    for (const name of ['billing', 'reporting'] as const) {
      const reason = report.newly_denied.callers.find(({ subject }) => subject === `client:${name}`)?.reason;
      const outcome = await verifier.present(await site.sign(keys[name]));
      expect([name, outcome.split(/[ /]/)[0]]).toEqual([name, reason ?? ALLOWED]);
    }
    await site.stage.applySite({ targets: ['gateway'] });
    await settled();
    await site.awaitOutcome(verifier, keys.billing, ALLOWED);
  });

  it('needs no more than to read, and sees keys that go with their source', async () => {
    const { file } = await decisions();
    await site.stage.ctl(
      'apply',
      '-f',
      await siteFile(({ sources }) => void Object.assign(sources[0] ?? {}, { on_retire: 'revoke' })),
    );
    await settled();
    const token = join(site.stage.directory, 'viewer.token');
    await site.stage.ctl(
      'create',
      'access-token',
      'viewer',
      '--role',
      'viewer',
      '--scope',
      `site:${SITE_ID}`,
      '--out',
      token,
    );
    const without = await siteFile((declared) => {
      declared.sources = [];
      declared.enrollment_policies = [];
    });
    const result = await site.stage.run([
      ...['ctl', 'preview', '-f', without, '--decisions', file, '--prune', '--output', 'json'],
      ...['--control-url', site.stage.controlUrl, '--token-file', token],
    ]);
    expect([result.exitCode, result.stderr]).toEqual([6, '']);
    const { newly_denied: denied } = JSON.parse(result.stdout) as PreviewReport;
    expect(denied.callers.map(({ detail, subject }) => `${subject} ${detail}`).sort()).toEqual([
      'client:billing key_revoked',
      'client:reporting key_revoked',
    ]);
  });

  it.each([
    ['decisions_missing', 'no line of the site', '{"event":"proofgate.audit_gap"}\nnot json\n'],
    ['decisions_missing', 'nothing', ''],
  ])('ends with %s for %s', async (code, _, text) => {
    const file = join(site.stage.directory, 'other.jsonl');
    await writeFile(file, text);
    const result = await site.stage.tryCtl('preview', '-f', await siteFile(() => {}), '--decisions', file);
    expect([result.exitCode, JSON.parse(result.stderr).error]).toEqual([2, code]);
  });
});
