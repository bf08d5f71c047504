/** The audit trail, found and exported; access tokens that are shown once and that work until they are deleted. */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { ConsoleStage } from '../support/control/console-fixture.ts';
import { SITE_ID } from '../support/control/site-declaration.ts';

let stage: ConsoleStage;
let page: Page;

beforeAll(async () => {
  stage = await ConsoleStage.start();
  page = await stage.adminPage();
});
afterAll(() => stage.stop());

async function exported(format: 'CSV' | 'JSON'): Promise<string> {
  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: `Export ${format}` }).click();
  return readFile(await (await saved).path(), 'utf8');
}

test('filters are in the address, and hold for the export; no cell is a formula', async () => {
  const body = JSON.stringify({ client_id: '=HYPERLINK(1)', subject: 'client:x' });
  const created = await page.request.post(`${stage.control.controlUrl}/v1/sites/${SITE_ID}/clients`, {
    data: body,
    headers: {
      'content-type': 'application/json',
      origin: stage.control.controlUrl,
      'sec-fetch-site': 'same-origin',
    },
  });
  expect(created.status()).toBe(201);
  await page.goto(`${stage.url}/audit`);
  await page.getByLabel('Kind').fill('proofgate.control.client.create');
  await page.waitForURL(/kind=proofgate.control.client.create/);
  await page.getByText('3 shown').waitFor();
  const csv = await exported('CSV');
  expect(csv.trimEnd().split('\r\n')).toHaveLength(4);
  expect(csv).toContain(`,"client","'=HYPERLINK(1)",`);
  expect(JSON.parse(await exported('JSON'))).toHaveLength(3);
});

test('what is typed into a filter stays when the list arrives', async () => {
  let answer: () => void = () => undefined;
  const typed = new Promise<void>((resolve) => {
    answer = resolve;
  });
  await page.route(/\/v1\/audit-events/, async (route) => {
    await typed;
    await route.continue();
  });
  await page.goto(`${stage.url}/audit`);
  await page.getByLabel('Kind').pressSequentially('proofgate.control.client.create');
  answer();
  await page.waitForURL(/kind=proofgate.control.client.create/);
  await page.unroute(/\/v1\/audit-events/);
  await page.getByText('3 shown').waitFor();
});

test('an event shows what was before and after', async () => {
  await page.getByRole('row').filter({ hasText: 'reporting' }).getByRole('button', { name: 'Show' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('Before: nothing').waitFor();
  await dialog.getByRole('insertion').filter({ hasText: '+ client_id: "reporting"' }).waitFor();
  expect(await dialog.getByRole('deletion').count()).toBe(0);
  await page.keyboard.press('Escape');
});

test('an event shows what it changed, by sign, and links to what it names', async () => {
  await stage.control.applySite({ maxStalenessSeconds: 20 });
  await page.goto(`${stage.url}/audit?kind=route.change&resource=orders-read`);
  await page.getByRole('row').getByRole('button', { name: 'Show' }).first().click();
  const dialog = page.getByRole('dialog');
  const changed = await dialog.getByRole('insertion').filter({ hasText: 'staleness' }).innerText();
  expect(changed).toBe('+ definition.max_staleness_seconds: 20');
  expect(await dialog.getByRole('deletion').first().innerText()).toMatch(/^− /);
  await dialog.getByText('unchanged').waitFor();
  expect(await stage.axeViolations(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  await page.getByRole('row').getByRole('link', { name: 'orders-read' }).first().click();
  await page.getByRole('heading', { level: 1, name: 'orders-read' }).waitFor();
  expect(new URL(page.url()).pathname).toMatch(new RegExp(`/sites/${SITE_ID}/routes/orders-read$`));
});

test('an access token is shown once, and works until it is deleted', async () => {
  await page.goto(`${stage.url}/access?view=tokens`);
  await page.getByRole('button', { name: 'Create access token' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Name').fill('ci');
  await form.getByRole('button', { name: 'Create access token' }).click();
  const shown = page.getByRole('dialog', { name: 'Access token ci' });
  const token = (await shown.locator('pre').first().textContent()) ?? '';
  await shown.getByRole('button', { name: 'I have saved it' }).click();
  await shown.waitFor({ state: 'detached' });
  expect(await page.content()).not.toContain(token);
  expect((await sessionOf(token)).roles).toEqual([{ role: 'viewer', scope: { kind: 'installation' } }]);
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByLabel('Reason').fill('unused');
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByText('There is no access token').waitFor();
  expect((await sessionOf(token)).code).toBe('authentication_required');
});

test('a role is granted and taken away, and the trail shows why', async () => {
  await page.getByRole('tab', { name: 'Role grants' }).click();
  await page.getByRole('button', { name: 'Grant a role' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Principal').fill('group:platform');
  await dialog.getByText('group:platform gets the role viewer at installation').waitFor();
  await dialog.getByLabel('Reason').fill('on call, from Monday');
  await dialog.getByRole('button', { name: 'As command' }).click();
  await dialog.getByText("--scope installation --reason 'on call, from Monday'").waitFor();
  await dialog.getByRole('button', { name: 'Grant a role' }).click();
  await page.getByRole('cell', { name: 'group:platform' }).waitFor();
  const { items } = await stage.control.ctl('get', 'role-grants');
  expect(items).toMatchObject([{ principal: 'group:platform', role: 'viewer' }]);
  await page.getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('dialog').getByLabel('Reason').fill('left');
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await page.getByText('No role was granted yet').waitFor();
  expect(await stage.reasonsOf('role_grant')).toEqual(['left', 'on call, from Monday']);
  await page.goto(`${stage.url}/audit?kind=role_grant.create`);
  await page.getByRole('cell', { name: 'on call, from Monday' }).waitFor();
  await page.goto(`${stage.url}/access`);
});

test('an ended session is signed out', async () => {
  const other = await stage.operatorPage({ name: 'ada', role: 'viewer' });
  await page.goto(`${stage.url}/access?view=sessions`);
  const row = page.getByRole('row').filter({ hasText: 'ada' });
  await row.getByRole('button', { name: 'End', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'End' }).click();
  await row.waitFor({ state: 'detached' });
  await other.reload();
  await other.getByRole('heading', { name: 'Sign in to Proofgate' }).waitFor();
});

test('all sessions of one operator are ended at once', async () => {
  const other = await stage.operatorPage({ name: 'grace', role: 'viewer' });
  await page.goto(`${stage.url}/access?view=sessions`);
  const row = page.getByRole('row').filter({ hasText: 'grace' });
  await row.getByRole('button', { name: 'End all' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'End all' }).click();
  await row.waitFor({ state: 'detached' });
  await other.reload();
  await other.getByRole('heading', { name: 'Sign in to Proofgate' }).waitFor();
});

test('the audit trail is filtered by who and when', async () => {
  await page.goto(`${stage.url}/audit`);
  await page.getByLabel('Who').fill('bootstrap');
  await page.waitForURL(/actor=bootstrap/);
  await page.getByLabel('From').fill('2019-06-01T12:30');
  const from = new Date('2019-06-01T12:30').toISOString().replace('.000', '');
  await page.waitForURL((url) => url.searchParams.get('since') === from);
  await page.getByRole('row').filter({ hasText: 'bootstrap' }).first().waitFor();
  await page.getByLabel('Before').fill('2020-01-01T12:00');
  await page.waitForURL(/until=20/);
  await page.getByRole('row').filter({ hasText: 'bootstrap' }).first().waitFor({ state: 'detached' });
});

test('a site shows its brokers, with their pinned keys', async () => {
  const issuer = 'https://broker.example';
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' };
  const api = await stage.control.api();
  const path = `/v1/sites/${SITE_ID}/brokers/${encodeURIComponent(issuer)}/mesh.example`;
  const definition = {
    ...{ trust_domain: 'mesh.example', subject_prefixes: ['spiffe://mesh.example/'] },
    ...{ key_binding: 'attested_workload', keys: [{ kid: 'bk-7', alg: 'Ed25519', jwk }] },
  };
  await api.put(path, { body: { definition } });
  await api.close();
  await page.goto(`${stage.url}/sites/${SITE_ID}/clients?view=brokers`);
  const row = page.getByRole('row').filter({ hasText: issuer });
  for (const shown of ['mesh.example', 'bk-7', 'attested_workload']) {
    await row.getByText(shown, { exact: true }).waitFor();
  }
});

test('an audit link with a time that has no local one shows the page', async () => {
  const east = await stage.adminPage({ timezoneId: 'Asia/Tokyo' });
  for (const time of ['+275760-09-13T00:00:00Z', '9999-12-31T23:59:59Z']) {
    await east.goto(`${stage.url}/audit?until=${encodeURIComponent(time)}`);
    await east.getByRole('heading', { level: 1, name: 'Audit' }).waitFor();
    expect(await east.getByLabel('Before, local time').inputValue()).toBe('');
  }
  await east.context().close();
});

test('a site shows its OAuth issuers, also before their keys are fetched', async () => {
  const issuer = 'https://login.example';
  const api = await stage.control.api();
  const path = `/v1/sites/${SITE_ID}/oauth-issuers/${encodeURIComponent(issuer)}`;
  await api.put(path, { body: { definition: { trust_domain: 'people.example' } } });
  await api.close();
  await page.goto(`${stage.url}/sites/${SITE_ID}/clients?view=oauth-issuers`);
  const row = page.getByRole('row').filter({ hasText: issuer });
  for (const shown of ['people.example', 'no keys: tokens rejected']) {
    await row.getByText(shown, { exact: true }).waitFor();
  }
});

async function sessionOf(token: string): Promise<{ readonly roles?: unknown; readonly code?: unknown }> {
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(`${stage.control.controlUrl}/v1/session`, { headers });
  return (await answer.json()) as { readonly roles?: unknown; readonly code?: unknown };
}
