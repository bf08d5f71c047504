/** OAuth issuers in the console, on a telephone: created, changed, ended and removed, with errors at the fields. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { ConsoleStage, chooseIn, confirm } from '../support/control/console-fixture.ts';
import { SITE_ID } from '../support/control/site-declaration.ts';
import { scrollsSideways } from './every-page.ts';

/** Its text must be quoted in the command and encoded in the path. */
const ISSUER = "https://login.shop.example/realms/it's";
let stage: ConsoleStage;
let page: Page;

beforeAll(async () => {
  stage = await ConsoleStage.start();
  page = await stage.adminPage({ viewport: { width: 390, height: 844 } });
});
afterAll(() => stage.stop());

const row = () => page.getByRole('row').filter({ hasText: ISSUER });
const view = () => stage.control.ctl('get', 'oauth-issuers', ISSUER, '--site', SITE_ID);
const dialog = () => page.getByRole('dialog');
const reasons = () => stage.reasonsOf('oauth_issuer');

/** Text of the error at a field. */
async function faultAt(label: string): Promise<string> {
  const field: Locator = dialog().getByLabel(label);
  const ids = (await field.getAttribute('aria-describedby'))?.split(' ') ?? [];
  const id = ids.find((each) => each.endsWith('-error'));
  return id === undefined ? '' : page.locator(`[id="${id}"]`).innerText();
}

async function submit(button: string): Promise<void> {
  await dialog().getByLabel('Reason').fill(`because ${button}`);
  expect([await stage.axeViolations(page), await scrollsSideways(page)]).toEqual([[], false]);
  await confirm(page, button);
}

async function saved(button: string): Promise<void> {
  await submit(button);
  await dialog().waitFor({ state: 'detached' });
  expect((await reasons())[0]).toBe(`because ${button}`);
}

const edit = () => chooseIn(row(), 'Edit');

test('one is created, with errors at the fields that have them', async () => {
  await page.goto(`${stage.url}/sites/${SITE_ID}/clients?view=oauth-issuers`);
  await page.getByRole('button', { name: 'Create OAuth issuer' }).click();
  const form = dialog();
  await form.getByLabel('Issuer').fill('http://login.shop.example');
  expect(await faultAt('Issuer')).toContain('https');
  await form.getByLabel('Issuer').fill('https://shop.example');
  await form.getByLabel('Trust domain').fill('shop.example');
  await form.getByLabel('Claim of the subject').fill('client_id');
  await form.getByText('client_id:VALUE').waitFor();
  // Without the service marker any user of a client would be the workload: the form does not send it.
  await submit('Create OAuth issuer');
  expect(await form.locator(':is(input, select):invalid').count()).toBe(1);
  await form.getByLabel('Service marker').fill('gty');
  expect(await faultAt('Service marker')).toContain('claim=value');
  await form.getByLabel('Service marker').fill('gty=client=credentials');
  await form.getByLabel('Context claims').fill('scope, team');
  await form.getByLabel('Longest lifetime').fill('9000');
  await submit('Create OAuth issuer');
  // What only Control knows.
  await form.getByRole('alert').waitFor();
  expect(await faultAt('Longest lifetime')).not.toBe('');
  expect(await faultAt('Trust domain')).toBe('');
  await form.getByLabel('Issuer').fill(ISSUER);
  await form.getByLabel('Longest lifetime').fill('600');
  await form.getByRole('button', { name: 'As site file' }).click();
  await form.getByText('"service_marker"').waitFor();
  await saved('Create OAuth issuer');
  expect((await view()).definition).toEqual({
    trust_domain: 'shop.example',
    subject_claim: 'client_id',
    service_marker: { claim: 'gty', value: 'client=credentials' },
    context_claims: ['scope', 'team'],
    max_token_ttl_seconds: 600,
  });
  for (const shown of ['client_id:VALUE', 'gty=client=credentials', 'at+jwt, at most 10 minutes']) {
    await row().getByText(shown, { exact: true }).waitFor();
  }
});

test('a change says what it admits, and leaves the other members', async () => {
  await edit();
  expect(await dialog().getByLabel('Context claims').inputValue()).toBe('scope, team');
  await dialog().getByLabel('Token types').selectOption('at+jwt and JWT');
  await dialog().getByText('This admits more').waitFor();
  await dialog().getByText('tokens of the type JWT').waitFor();
  await saved('Save');
  expect((await view()).definition).toMatchObject({
    token_types: ['at+jwt', 'JWT'],
    service_marker: { claim: 'gty', value: 'client=credentials' },
  });
  await edit();
  await dialog().getByLabel('Claim of the subject').fill('');
  await dialog().getByLabel('Service marker').fill('');
  await dialog().getByText('without the service marker').waitFor();
  await dialog().getByLabel('Token types').selectOption('at+jwt: access tokens alone');
  await saved('Save');
  const { definition } = await view();
  for (const gone of ['token_types', 'subject_claim', 'service_marker'])
    expect(definition).not.toHaveProperty(gone);
});

test('a change that somebody else was faster with is shown', async () => {
  await edit();
  await dialog().getByLabel('Trust domain').fill('mine.example');
  const api = await stage.control.api();
  const path = `/v1/sites/${SITE_ID}/oauth-issuers/${encodeURIComponent(ISSUER)}`;
  await api.put(path, {
    body: { definition: { trust_domain: 'theirs.example' } },
    etag: `"${(await view()).version}"`,
  });
  await api.close();
  await submit('Save');
  await dialog().getByText('theirs.example').waitFor();
  await saved('Apply mine to the new version');
  expect((await view()).definition).toEqual({ trust_domain: 'mine.example' });
});

test('its tokens end, those of before now by default', async () => {
  const before = Math.floor(Date.now() / 1000) * 1000;
  await chooseIn(row(), 'End tokens');
  expect(Date.parse(await dialog().getByLabel('Tokens count from').inputValue())).toBeGreaterThanOrEqual(
    before,
  );
  await dialog().getByLabel('Tokens count from').fill('now');
  expect(await faultAt('Tokens count from')).toContain('UTC');
  await dialog().getByLabel('Tokens count from').fill('2026-01-01T00:00:00Z');
  await saved('End all tokens issued before');
  expect((await view()).definition).toEqual({
    trust_domain: 'mine.example',
    not_before: '2026-01-01T00:00:00Z',
  });
  await row().getByText('issued since').waitFor();
});

test('those that were ended before stay so, unless somebody says otherwise', async () => {
  const end = () => row().getByRole('button', { name: 'End tokens' }).click();
  const time = () => dialog().getByLabel('Tokens count from');
  await end();
  await time().fill('2999-01-01T00:00:00Z');
  await saved('End all tokens issued before');
  await row().locator('time[datetime^="2999"]').waitFor();
  await end();
  expect(await time().inputValue()).toBe('2999-01-01T00:00:00Z');
  await time().fill('2026-01-01T00:00:00Z');
  await dialog().getByText('This admits more').waitFor();
  await dialog().getByText('tokens issued before 2999-01-01T00:00:00Z').waitFor();
  await dialog().getByRole('button', { name: 'Cancel' }).click();
  await dialog().waitFor({ state: 'detached' });
});

test('it is removed', async () => {
  await chooseIn(row(), 'Remove');
  await saved('Remove');
  await page.getByText('The site accepts access tokens of no OAuth authorization server.').waitFor();
  expect([await stage.axeViolations(page), await stage.control.list('oauth-issuers')]).toEqual([[], []]);
});
