/**
 * Tests `proofgate ctl` as an operator uses it, against a running Control: declaring, inspecting, deciding, and making
 * mistakes.
 */
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse, stringify } from 'yaml';
import { isJsonObject, type JsonObject } from '../../../src/protocol/strict-json.ts';
import { ControlStage } from '../../support/control/control-fixture.ts';
import { POLICIES, SITE_ID } from '../../support/control/site-declaration.ts';
import { errorCode } from '../../support/harness/proofgate-command.ts';

let stage: ControlStage;
let siteFile: string;
beforeAll(async () => {
  stage = await ControlStage.start();
  siteFile = join(stage.directory, 'site.yaml');
});
afterAll(async () => stage?.stop());

/** The declared site, changed, in a file of its own. */
async function changedSite(change: (site: JsonObject) => void): Promise<string> {
  const site = parse(await readFile(siteFile, 'utf8'));
  change(site);
  const file = join(stage.directory, 'changed.yaml');
  await writeFile(file, stringify(site));
  return file;
}

function stepsOf({ steps }: JsonObject): readonly string[] {
  return (Array.isArray(steps) ? steps.filter(isJsonObject) : []).map(
    ({ verb, kind, name }) => `${String(verb)} ${String(kind)} ${String(name)}`,
  );
}

describe('apply', () => {
  it('has nothing to do the second time', async () => {
    expect(stepsOf(await stage.applySite())).toEqual([]);
  });

  it('with --dry-run shows the difference and does nothing', async () => {
    const file = await changedSite(({ site, clients }) => {
      Object.assign(site as object, { display_name: 'Renamed' });
      (clients as JsonObject[]).push({ client_id: 'new', subject: 'client:new' });
    });
    const expected = [`change site ${SITE_ID}`, 'create client new'];
    expect(stepsOf(await stage.ctl('apply', '-f', file, '--dry-run'))).toEqual(expected);
    const exitCode = async (...flags: readonly string[]) =>
      (await stage.tryCtl('apply', '-f', file, '--detailed-exitcode', ...flags)).exitCode;
    expect(await exitCode('--dry-run')).toBe(6);
    expect(await stage.ctl('get', 'sites', SITE_ID)).not.toMatchObject({ display_name: 'Renamed' });
    expect(stepsOf(await stage.ctl('apply', '-f', file))).toEqual(expected);
    expect(await stage.ctl('get', 'sites', SITE_ID)).toMatchObject({ display_name: 'Renamed' });
    expect(await exitCode()).toBe(0);
    // The first declaration does not name it.
    expect(await stage.applySite()).toMatchObject({ stays: [{ kind: 'client', name: 'new' }] });
    await stage.ctl('apply', '-f', file);
  });

  it('names the member that a misspelled one was meant to be', async () => {
    const file = await changedSite(({ clients }) => {
      const [client] = clients as JsonObject[];
      Object.assign(client ?? {}, { grants: [{ resource: 'orders', acess: 'read' }] });
    });
    const refused = await stage.tryCtl('apply', '-f', file);
    expect([refused.exitCode, errorCode(refused)]).toEqual([2, 'site_file_invalid']);
    expect(refused.stderr).toContain('/clients/0/grants/0/acess: unknown member; did you mean access?');
  });

  it('warns before it raises the skew: for how long verifiers will deny everything', async () => {
    const withSkew = (skew_seconds: number) =>
      changedSite(({ site }) => Object.assign(site as object, { skew_seconds }));
    const raised = await withSkew(60);
    const expected = [{ code: 'skew_raised', denied_seconds: 121 }];
    for (const dryRun of [['--dry-run'], []]) {
      const { exitCode, stderr, stdout } = await stage.tryCtl('apply', '-f', raised, ...dryRun);
      expect(exitCode).toBe(0);
      expect(JSON.parse(stderr)).toMatchObject({ note: 'skew_raised' });
      expect(JSON.parse(stdout)).toMatchObject({ warnings: expected });
    }
    for (const calm of [raised, await withSkew(1)]) {
      expect(await stage.ctl('apply', '-f', calm)).toMatchObject({ warnings: [] });
    }
  });

  it('changes routes, grants, brokers and policies, and takes out what --prune may', async () => {
    const file = await changedSite((site) => {
      const [first, ...routes] = site.routes as JsonObject[];
      const [billing, reporting] = site.clients as JsonObject[];
      Object.assign(site, {
        routes: [{ ...first, signed_headers: ['x-tenant'] }, ...routes.slice(0, -1)],
        clients: [
          { ...billing, grants: [{ resource: 'orders', access: 'read' }] },
          { ...reporting, grants: [] },
        ],
        brokers: [
          {
            issuer: 'https://broker.shop.example',
            trust_domain: 'shop.example',
            subject_prefixes: ['spiffe://shop.example/'],
            key_binding: 'attested_workload',
            keys: [
              {
                kid: 'b1',
                alg: 'Ed25519',
                jwk: { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' },
              },
            ],
          },
        ],
        enrollment_policies: (site.enrollment_policies as JsonObject[]).map((policy) => ({
          ...policy,
          max_key_lifetime_seconds: 900,
        })),
      });
    });
    const steps = stepsOf(await stage.ctl('apply', '-f', file, '--prune'));
    expect(steps).toEqual([
      'remove route payouts-read',
      'remove client new',
      'create broker https://broker.shop.example shop.example',
      'change grant billing orders',
      'remove grant reporting orders',
      'change route orders-read',
      ...Object.keys(POLICIES).map((name) => `change enrollment_policy ${name}`),
    ]);
    expect(stepsOf(await stage.ctl('apply', '-f', file, '--prune'))).toEqual([]);
    // Back to the first declaration.
    await stage.applySite();
    expect(stepsOf(await stage.applySite())).toEqual([]);
  });

  it('does nothing before it knows where a new target’s token goes, then writes it for its owner alone', async () => {
    const file = await changedSite((site) => Object.assign(site, { targets: ['gateway-9'] }));
    const refused = await stage.tryCtl('apply', '-f', file);
    expect([refused.exitCode, errorCode(refused)]).toEqual([2, 'token_dir_required']);
    const nowhere = await stage.tryCtl('apply', '-f', file, '--token-dir', join(stage.directory, 'nowhere'));
    expect([nowhere.exitCode, errorCode(nowhere)]).toEqual([2, 'token_dir_unusable']);
    expect(await stage.list('targets')).toEqual([]);
    const tokens = join(stage.directory, 'tokens');
    await mkdir(tokens);
    await stage.ctl('apply', '-f', file, '--token-dir', tokens);
    const tokenFile = join(tokens, 'gateway-9.token');
    expect((await stat(tokenFile)).mode & 0o777).toBe(0o600);
    const before = await readFile(tokenFile, 'utf8');
    expect(before).toMatch(/^pgt_[A-Za-z0-9_-]{43}\n$/);
    const [target] = await stage.list('targets');
    await stage.ctl('rotate-target-token', String(target?.target_id), '--out', tokenFile);
    expect(await readFile(tokenFile, 'utf8')).not.toBe(before);
    // This target never connects: sources would wait for it.
    expect(await stage.ctl('detach', String(target?.target_id))).toMatchObject({ state: 'detached' });
    const again = await stage.tryCtl('detach', String(target?.target_id));
    expect([again.exitCode, errorCode(again)]).toEqual([3, 'target_state_conflict']);
  });

  it('applies nothing for a source that is not the expected one', async () => {
    const [declared] = parse(await readFile(siteFile, 'utf8')).sources;
    const twoSources = (scope: string) =>
      changedSite((site) =>
        Object.assign(site, {
          sources: [
            declared,
            { ...declared, name: 'second', audience: 'second-audience', expected_scope: scope },
          ],
        }),
      );
    const refused = await stage.tryCtl('apply', '-f', await twoSources('elsewhere.example'));
    expect([refused.exitCode, errorCode(refused)]).toEqual([3, 'source_scope_mismatch']);
    const file = await twoSources(declared.expected_scope);
    expect(stepsOf(await stage.ctl('apply', '-f', file))).toEqual([
      'create source second',
      'activate source second',
    ]);
    expect(stepsOf(await stage.ctl('apply', '-f', file))).toEqual([]);
  });

  it('is not silent about what cannot change, nor about a site that is elsewhere', async () => {
    const policies = (site: JsonObject) => site.enrollment_policies as JsonObject[];
    const narrowed = await changedSite((site) =>
      Object.assign(policies(site)[0] ?? {}, { verified_subject: 'system:serviceaccount:prod:other' }),
    );
    const refused = await stage.tryCtl('apply', '-f', narrowed, '--dry-run');
    expect([refused.exitCode, errorCode(refused)]).toEqual([2, 'member_fixed']);
    const moved = await changedSite((site) => Object.assign(site, { environment: 'tset' }));
    const elsewhere = await stage.tryCtl('apply', '-f', moved);
    expect([elsewhere.exitCode, errorCode(elsewhere)]).toEqual([2, 'member_fixed']);
    const { items } = await stage.ctl('get', 'environments');
    expect(items).toHaveLength(1);
  });

  it('refuses a definition that no verifier would take, and says where', async () => {
    const file = await changedSite((site) => {
      const [first, ...rest] = site.routes as JsonObject[];
      Object.assign(site, { routes: [{ ...first, path_template: '/v1/../etc' }, ...rest] });
    });
    const refused = await stage.tryCtl('apply', '-f', file);
    expect([refused.exitCode, errorCode(refused)]).toEqual([3, 'definition_invalid']);
    expect(refused.stderr).toContain('route orders-read');
  });

  it('renames a route: the path is free before another takes it', async () => {
    const file = await changedSite((site) => {
      const [first, ...rest] = site.routes as JsonObject[];
      Object.assign(site, { routes: [{ ...first, route_id: 'orders-look' }, ...rest] });
    });
    expect(stepsOf(await stage.ctl('apply', '-f', file, '--prune'))).toContain('create route orders-look');
    await stage.ctl('apply', '-f', siteFile, '--prune');
    expect(stepsOf(await stage.applySite())).toEqual([]);
  });
});

describe('the capacity of a site', () => {
  it('refuses a source more than there are slots, and takes it when one is retired', async () => {
    const [declared] = parse(await readFile(siteFile, 'utf8')).sources;
    const other = (name: string) => ({ ...declared, name, audience: `${name}-audience` });
    const sources = [declared, other('second'), other('third')];
    const file = await changedSite((site) => {
      Object.assign(site.site as object, { source_capacity: 2 });
      Object.assign(site, { sources });
    });
    const refused = await stage.tryCtl('apply', '-f', file);
    expect([refused.exitCode, errorCode(refused)]).toEqual([3, 'source_capacity_exhausted']);
    const two = await changedSite((site) => {
      Object.assign(site.site as object, { source_capacity: 2 });
      Object.assign(site, { sources: sources.slice(0, 2) });
    });
    expect(stepsOf(await stage.ctl('apply', '-f', two))).toEqual([
      `change site ${SITE_ID}`,
      'create source second',
      'activate source second',
    ]);
    const second = (await stage.list('sources')).findLast(({ display_name: name }) => name === 'second');
    await stage.ctl('retire', String(second?.source_id));
    const withoutSecond = await changedSite((site) => {
      Object.assign(site.site as object, { source_capacity: 2 });
      Object.assign(site, { sources: [declared, other('third')] });
    });
    expect(stepsOf(await stage.ctl('apply', '-f', withoutSecond))).toEqual([
      'create source third',
      'activate source third',
    ]);
  });
});

describe('get', () => {
  const LISTS = [
    'targets',
    'clients',
    'routes',
    'brokers',
    'sources',
    'policies',
    'enrollments',
    'keys',
  ] as const;
  it.each(LISTS)('lists %s', async (kind) => {
    const { items } = await stage.ctl('get', kind, '--site', SITE_ID);
    expect(Array.isArray(items)).toBe(true);
    const text = await stage.run([
      ...['ctl', 'get', kind, '--site', SITE_ID, '--control-url', stage.controlUrl],
      ...['--token-file', stage.tokenFile],
    ]);
    expect(text.exitCode).toBe(0);
    expect(text.stdout.split('\n').length).toBe(
      Array.isArray(items) && items.length > 0 ? items.length + 1 : 1,
    );
  });

  it.each(['environments', 'sites', 'audit'])('lists %s without a site', async (kind) => {
    const { items } = await stage.ctl('get', kind);
    expect(items).not.toEqual([]);
  });

  it('lists the audit trail of one site', async () => {
    const { items } = await stage.ctl('get', 'audit', '--site', SITE_ID);
    const sites = (Array.isArray(items) ? items : []).map(({ site_id }: JsonObject) => site_id);
    expect(new Set(sites)).toEqual(new Set([SITE_ID]));
  });

  it('gives the enroll command of a policy, and it is one', async () => {
    const policy = await stage.policy('billing');
    const { command, init_container } = await stage.ctl('get', 'command', String(policy.policy_id));
    expect(String(command)).toContain(String(policy.reference));
    expect(String(command)).toContain(stage.controlUrl);
    expect(parse(String(init_container))).toBeInstanceOf(Object);
  });

  it('shows propagation and signing profiles', async () => {
    expect(await stage.ctl('get', 'propagation', SITE_ID)).toMatchObject({ site_id: SITE_ID });
    const { items } = await stage.ctl('get', 'profiles', '--site', SITE_ID);
    expect(items).not.toEqual([]);
  });
});

describe('retire-signing-key', () => {
  it('ends a retiring key now, or sooner, and warns of who refuses what comes', async () => {
    const keys = async () => {
      const { keys: listed } = await stage.ctl('signing-keys', '--site', SITE_ID);
      const ofBundles = (Array.isArray(listed) ? listed : []).filter(({ purpose }) => purpose === 'bundle');
      return ofBundles.map(({ signing_key_id }) => String(signing_key_id));
    };
    const [old = ''] = await keys();
    const refused = await stage.tryCtl('retire-signing-key', SITE_ID, old);
    expect([refused.exitCode, errorCode(refused)]).toEqual([3, 'signing_key_state_conflict']);
    const api = await stage.api();
    await api.act(`/v1/sites/${SITE_ID}/signing-keys/rotate`, { body: { purpose: 'bundle' } });
    await api.close();
    for (const [flags, state] of [
      [['--in', '10m'], 'retiring'],
      [[], 'retired'],
    ] as const) {
      const { exitCode, stderr, stdout } = await stage.tryCtl('retire-signing-key', SITE_ID, old, ...flags);
      expect(exitCode).toBe(0);
      expect(JSON.parse(stderr)).toMatchObject({ note: 'signing_key_ends' });
      const warnings = [{ code: 'signing_key_ends' }];
      expect(JSON.parse(stdout)).toMatchObject({ signing_key_id: old, state, warnings });
    }
    expect(await keys()).not.toContain(old);
  });
});

describe('block', () => {
  const ROGUE = ['--issuer', 'https://oidc.example', '--subject', 'system:serviceaccount:prod:rogue'];

  it('refuses a subject that has no key, until unblock', async () => {
    const named = { issuer: ROGUE[1], subject: ROGUE[3] };
    expect(await stage.ctl('block', '--site', SITE_ID, ...ROGUE)).toMatchObject(named);
    const again = await stage.tryCtl('block', '--site', SITE_ID, ...ROGUE);
    expect([again.exitCode, errorCode(again)]).toEqual([3, 'already_exists']);
    expect(await stage.list('blocked-subjects')).toMatchObject([named]);
    expect(await stage.ctl('unblock', '--site', SITE_ID, ...ROGUE)).toMatchObject(named);
    const over = await stage.tryCtl('unblock', '--site', SITE_ID, ...ROGUE);
    expect([over.exitCode, errorCode(over)]).toEqual([3, 'not_found']);
  });
});

describe('what an operator does wrong', () => {
  const WRONG: readonly (readonly [string, readonly string[], number, string])[] = [
    ['a kind that is not there', ['get', 'pods'], 2, 'kind_unknown'],
    ['a list without its site', ['get', 'keys'], 2, 'site_required'],
    ['a list of a site that is not there', ['get', 'keys', '--site', 'elsewhere'], 3, 'not_found'],
    ['a key that is not there', ['revoke', 'dk_nobody'], 3, 'not_found'],
    [
      'a caller without subject or key',
      ['block-caller', '--site', 's', '--issuer', 'i'],
      2,
      'caller_selector',
    ],
    ['an enrollment that is not there', ['approve', 'enr_nobody'], 3, 'not_found'],
    ['a source that is not there', ['suspend', 'tas_nobody'], 3, 'not_found'],
    ['a file that is not there', ['apply', '-f', '/nowhere.yaml'], 2, 'file_not_found'],
    ['a file that is none', ['apply', '-f', 'WORDS'], 2, 'site_file_invalid'],
    ['no file', ['apply'], 2, 'flag_required'],
  ];
  it.each(WRONG)('%s', async (_what, args, exitCode, code) => {
    const words = join(stage.directory, 'words');
    await writeFile(words, 'shop-eu-1\n');
    const result = await stage.tryCtl(...args.map((arg) => (arg === 'WORDS' ? words : arg)));
    expect([result.exitCode, errorCode(result), result.stderr.trim().split('\n').length]).toEqual([
      exitCode,
      code,
      1,
    ]);
  });

  it('a token that is not good, or that others may read; a Control that is not there', async () => {
    const file = join(stage.directory, 'wrong.token');
    await writeFile(file, `pga_${'A'.repeat(43)}\n`, { mode: 0o600 });
    const call = async (url: string, token: string) => {
      const result = await stage.run(['ctl', 'get', 'sites', '--control-url', url, '--token-file', token]);
      return [result.exitCode, errorCode(result)];
    };
    expect(await call(stage.controlUrl, file)).toEqual([3, 'authentication_required']);
    expect(await call('http://127.0.0.1:9', stage.tokenFile)).toEqual([5, 'control_unreachable']);
    expect(await call('http://control.example', stage.tokenFile)).toEqual([2, 'control_url_not_https']);
    await writeFile(file, 'x', { mode: 0o644 });
    const open = join(stage.directory, 'open.token');
    await writeFile(open, 'x', { mode: 0o644 });
    expect(await call(stage.controlUrl, open)).toEqual([2, 'file_permissions']);
  });
});

// The last test: the source stays.
it('apply prints what it has done also where a source is not activated then', async () => {
  const file = await changedSite(({ site, sources }) => {
    Object.assign(site as object, { source_capacity: 16 });
    const all = sources as JsonObject[];
    all.push({ ...all[0], name: 'unreachable', audience: 'another', jwks_uri: 'https://127.0.0.1:9/jwks' });
  });
  const { exitCode, stderr, stdout } = await stage.tryCtl('apply', '-f', file);
  expect([exitCode, errorCode({ stderr })]).toEqual([3, 'source_not_activated']);
  expect(stepsOf(JSON.parse(stdout))).toEqual(expect.arrayContaining(['create source unreachable']));
});
