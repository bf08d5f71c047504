/**
 * What each role is shown, on every page, against the table of permissions: a control that is shown does what Control accepts of
 * the role, and what is hidden from it Control refuses. A control that is not in the table here fails the test.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import type { JsonObject } from '../../src/protocol/strict-json.ts';
import { ConsoleStage } from '../support/control/console-fixture.ts';
import {
  BODIES,
  type Level,
  PERMISSION_TABLE,
  QUERIES,
  ROLE_PERMISSIONS,
} from '../support/control/permission-table.ts';
import { SITE_ID } from '../support/control/site-declaration.ts';
import { everyPage, visit } from './every-page.ts';

/** Controls that change something, by page and accessible name; what each calls. */
const CONTROLS: { readonly [page: string]: { readonly [control: string]: string } } = {
  '/': {
    'Create site': 'POST /v1/fleets/:fleet_id/sites',
    'Rename environment': 'PATCH /v1/environments/:environment_id',
    'Rename fleet': 'PATCH /v1/fleets/:fleet_id',
  },
  '/access': { 'Grant a role': 'POST /v1/role-grants', Remove: 'DELETE /v1/role-grants/:role_grant_id' },
  '/access?view=tokens': {
    'Create access token': 'POST /v1/access-tokens',
    Rotate: 'POST /v1/access-tokens/:access_token_id/rotate',
    Delete: 'DELETE /v1/access-tokens/:access_token_id',
  },
  '/access?view=session': { 'Disable the bootstrap token': 'DELETE /v1/bootstrap-token' },
  '/setup': {
    'Edit site': 'PATCH /v1/sites/:site_id',
    'Delete site': 'DELETE /v1/sites/:site_id',
    'Create target': 'POST /v1/sites/:site_id/targets',
  },
  '/sources': {
    'Create source': 'POST /v1/sites/:site_id/sources',
    'Change capacity': 'PATCH /v1/sites/:site_id',
  },
  '/sources/…': {
    Edit: 'PATCH /v1/sources/:source_id',
    'New revision': 'POST /v1/sources/:source_id/revisions',
    Retire: 'POST /v1/sources/:source_id/retire',
    Delete: 'DELETE /v1/sources/:source_id',
    'Edit draft': 'PATCH /v1/sources/:source_id/revisions/:revision',
    'Delete draft': 'DELETE /v1/sources/:source_id/revisions/:revision',
    Validate: 'POST /v1/sources/:source_id/revisions/:revision/validate',
    'Validate again': 'POST /v1/sources/:source_id/revisions/:revision/validate',
    Activate: 'POST /v1/sources/:source_id/revisions/:revision/activate',
    Suspend: 'POST /v1/sources/:source_id/revisions/:revision/suspend',
    Resume: 'POST /v1/sources/:source_id/revisions/:revision/resume',
  },
  '/policies': { 'Create policy': 'POST /v1/sites/:site_id/enrollment-policies' },
  '/policies/…': {
    Edit: 'PATCH /v1/enrollment-policies/:policy_id',
    Rebind: 'POST /v1/enrollment-policies/:policy_id/rebind',
    Deactivate: 'POST /v1/enrollment-policies/:policy_id/deactivate',
    Reactivate: 'POST /v1/enrollment-policies/:policy_id/reactivate',
    Delete: 'DELETE /v1/enrollment-policies/:policy_id',
  },
  '/approvals': {
    Approve: 'POST /v1/enrollments/:enrollment_id/approve',
    Deny: 'POST /v1/enrollments/:enrollment_id/deny',
  },
  '/approvals/…': {
    Approve: 'POST /v1/enrollments/:enrollment_id/approve',
    Deny: 'POST /v1/enrollments/:enrollment_id/deny',
  },
  '/keys': { Revoke: 'POST /v1/derived-keys/:key_id/revoke' },
  '/keys/…': { Revoke: 'POST /v1/derived-keys/:key_id/revoke' },
  '/blocked': {
    'Block a subject': 'POST /v1/sites/:site_id/blocked-subjects',
    Unblock: 'DELETE /v1/sites/:site_id/blocked-subjects',
  },
  '/blocked?view=callers': {
    'Block a caller': 'POST /v1/sites/:site_id/blocked-callers',
    Unblock: 'DELETE /v1/sites/:site_id/blocked-callers',
  },
  '/clients': {
    'Create client': 'POST /v1/sites/:site_id/clients',
    Edit: 'PATCH /v1/sites/:site_id/clients/:client_id',
    Delete: 'DELETE /v1/sites/:site_id/clients/:client_id',
    'Access of': 'PUT /v1/sites/:site_id/clients/:client_id/grants/:resource',
  },
  '/clients?view=routes': {
    'Create route': 'POST /v1/sites/:site_id/routes',
    Edit: 'PUT /v1/sites/:site_id/routes/:route_id',
    'Caller rules': 'PUT /v1/sites/:site_id/routes/:route_id/sources',
    Delete: 'DELETE /v1/sites/:site_id/routes/:route_id',
  },
  '/clients?view=oauth-issuers': {
    'Create OAuth issuer': 'PUT /v1/sites/:site_id/oauth-issuers/:issuer',
    Edit: 'PUT /v1/sites/:site_id/oauth-issuers/:issuer',
    'End tokens': 'PUT /v1/sites/:site_id/oauth-issuers/:issuer',
    Remove: 'DELETE /v1/sites/:site_id/oauth-issuers/:issuer',
  },
  '/explain': { Explain: 'POST /v1/sites/:site_id/explanations' },
  '/targets': {
    'Create target': 'POST /v1/sites/:site_id/targets',
    'Rotate token': 'POST /v1/targets/:target_id/rotate-token',
    Rename: 'PATCH /v1/targets/:target_id',
    Detach: 'POST /v1/targets/:target_id/detach',
    'Raise floor': 'POST /v1/sites/:site_id/raise-floor',
    Rotate: 'POST /v1/sites/:site_id/signing-keys/rotate',
    'Retire now': 'POST /v1/sites/:site_id/signing-keys/:signing_key_id/retire',
  },
};
/** Controls that change nothing at Control. */
const LOCAL =
  /^(?:As command|More|As site file|Copy.*|Show|Choose file|Export (?:CSV|JSON)|Last hour.*|Filters and order.*|Order|)$/;

const ROLES = Object.keys(ROLE_PERMISSIONS);
const SCOPES = ['installation', `site:${SITE_ID}`];
const COVERED: { readonly [scope: string]: readonly Level[] } = {
  installation: ['installation', 'environment', 'fleet', 'site'],
  [`site:${SITE_ID}`]: ['site'],
};

let stage: ConsoleStage;
/** One browser, which one operator after the other signs in with: what it has loaded and compiled stays. */
let page: Page;
/** Addresses of what Control refused to the page. */
const refused: string[] = [];
/** Values of path parameters. */
let names: { readonly [parameter: string]: string };
let paths: readonly string[];
/** What an admin of the installation is shown. */
let everything: ReadonlyMap<string, ReadonlySet<string>>;

beforeAll(async () => {
  stage = await ConsoleStage.start();
  const { control } = stage;
  const { keyId } = await control.enroll('billing');
  await control.tryEnroll('reviewed', { flags: ['--wait-for-activation=false'] });
  await control.ctl(
    'create',
    'access-token',
    'ci',
    '--role',
    'viewer',
    ...['--scope', `site:${SITE_ID}`],
    '--out',
    control.newKeyFile(),
  );
  await control.ctl('rotate-signing-key', SITE_ID, '--purpose', 'bundle');
  const api = await control.api();
  const [source] = await api.list(`/v1/sites/${SITE_ID}/sources`);
  const site = `/v1/sites/${SITE_ID}`;
  const { issuer_url } = (await api.get(site)).body;
  await api.act(`${site}/blocked-subjects`, { body: { issuer: 'https://x.example', subject: 'x' } });
  await api.act(`${site}/blocked-callers`, { body: { issuer: issuer_url, subject: 'x' } });
  await api.create(`/v1/sources/${String(source?.source_id)}/revisions`, { body: {} });
  const issuer = 'https://login.example';
  const definition = { trust_domain: 'x' };
  await api.put(`${site}/oauth-issuers/${encodeURIComponent(issuer)}`, { body: { definition } });
  await api.create(`${site}/targets`, { body: { name: 'gateway' } });
  page = await stage.operatorPage({ name: 'root', role: 'admin' });
  page.on('response', (response) => {
    if (response.status() === 403) refused.push(response.url());
  });
  const idIn = (items: readonly JsonObject[], member: string) => ({ [member]: String(items[0]?.[member]) });
  names = {
    ...{ site_id: SITE_ID, key_id: keyId, client_id: 'billing', resource: 'orders', revision: '2', issuer },
    ...idIn([(await api.get(site)).body], 'fleet_id'),
    ...idIn([(await api.get(site)).body], 'environment_id'),
    ...idIn(await api.list('/v1/role-grants'), 'role_grant_id'),
    ...idIn(await api.list('/v1/access-tokens'), 'access_token_id'),
    ...idIn(await api.list(`${site}/sources`), 'source_id'),
    ...idIn(await api.list(`${site}/routes`), 'route_id'),
    ...idIn(await api.list(`${site}/targets`), 'target_id'),
    ...idIn(await api.list(`${site}/enrollment-policies`), 'policy_id'),
    ...idIn(await api.list(`${site}/enrollments?state=pending_approval`), 'enrollment_id'),
    ...idIn(await api.page(`${site}/signing-keys`), 'signing_key_id'),
  };
  await api.close();
  paths = [
    ...(await everyPage(stage, page)).keys(),
    ...['/access?view=tokens', '/access?view=session', `/sites/${SITE_ID}/blocked?view=callers`],
    `/sites/${SITE_ID}/clients?view=routes`,
    `/sites/${SITE_ID}/clients?view=oauth-issuers`,
  ];
  everything = await controlsOf();
});
afterAll(() => stage.stop());

/** Names of controls by page. */
async function controlsOf(): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const found = new Map<string, ReadonlySet<string>>();
  for (const path of paths) {
    await visit(page, `${stage.url}${path}`);
    const shown: unknown = await page.evaluate(
      `[...document.querySelectorAll('main button:not([role=tab]):not(th button), main select')].map((control) => control.getAttribute('aria-label') ?? control.textContent)`,
    );
    const all = (Array.isArray(shown) ? shown.map(String) : []).map((name) =>
      name.replace(/^(Access of) .*/, '$1'),
    );
    found.set(entryOf(path), new Set(all.filter((name) => !LOCAL.test(name))));
  }
  return found;
}

/** The entry of the table for an address. */
function entryOf(path: string): string {
  const page = path.replace(`/sites/${SITE_ID}`, '');
  return page.replace(/^(\/[a-z]+)\/[^/?]+$/, '$1/…');
}

function operationOf(page: string, control: string): string {
  return CONTROLS[page]?.[control] ?? `${page}: ${control} is not in the table`;
}

function isPermitted(operation: string, role: string, scope: string): boolean {
  const expected = PERMISSION_TABLE[operation];
  if (expected?.kind !== 'operator') throw new Error(operation);
  return (
    ROLE_PERMISSIONS[role]?.includes(expected.permission) === true &&
    COVERED[scope]?.includes(expected.level) === true
  );
}

/** The status that Control answers the page's own session. */
async function statusOf(operation: string): Promise<number> {
  const [method, pattern = ''] = operation.split(' ');
  const path = pattern.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(names[name] ?? name));
  const body = JSON.stringify(BODIES[operation])?.replace('"inside"', JSON.stringify(SITE_ID));
  const request = {
    method,
    ...(body === undefined ? {} : { body, headers: { 'content-type': 'application/json' } }),
  };
  const url = `${stage.control.controlUrl}${path}${QUERIES[operation] ?? ''}`;
  const status: unknown = await page.evaluate(
    `fetch(${JSON.stringify(url)}, ${JSON.stringify(request)}).then(({ status }) => status)`,
  );
  return Number(status);
}

test('the pages show every control of the table', () => {
  const shown = [...everything].flatMap(([page, controls]) =>
    [...controls].map((name) => operationOf(page, name)),
  );
  expect(shown.filter((operation) => PERMISSION_TABLE[operation]?.kind !== 'operator')).toEqual([]);
  // Those of other states of a source and a policy.
  const hidden = ['validate', 'activate', 'resume', 'reactivate', 'revisions'].map(
    (verb) => new RegExp(`/${verb}$`),
  );
  const operations = Object.values(CONTROLS).flatMap((controls) => Object.values(controls));
  const missing = operations.filter((operation) => !shown.includes(operation));
  expect(missing.filter((operation) => !hidden.some((verb) => verb.test(operation)))).toEqual([
    'DELETE /v1/sources/:source_id',
  ]);
});

describe.each(SCOPES)('at %s', (scope) => {
  test.each(ROLES)('%s', async (role) => {
    await page.context().clearCookies();
    await stage.signIn(page, { name: `${role}-${scope.length}`, role, scope });
    refused.length = 0;
    const faults: string[] = [];
    const hidden = new Set<string>();
    const shown = await controlsOf();
    // No page reads what the role may not read.
    expect(refused).toEqual([]);
    for (const [entry, controls] of everything) {
      for (const control of controls) {
        const operation = operationOf(entry, control);
        const isShown = shown.get(entry)?.has(control) === true;
        if (isShown !== isPermitted(operation, role, scope)) {
          faults.push(`${entry} ${isShown ? 'shows' : 'hides'} ${control}`);
        }
        if (!isShown) hidden.add(operation);
      }
      const own = [...(shown.get(entry) ?? [])].filter((control) => !controls.has(control));
      faults.push(...own.map((control) => `${entry} shows only this role ${control}`));
    }
    for (const operation of hidden) {
      const status = await statusOf(operation);
      if (status !== 403 && status !== 404) faults.push(`${operation}: ${status}`);
    }
    expect(faults).toEqual([]);
  });
});
