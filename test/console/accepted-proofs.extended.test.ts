/** Routes that accept further proofs in the console: the form, the list, the page of a route, and the banner for old verifiers. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { ConsoleStage, chooseIn, confirm } from '../support/control/console-fixture.ts';
import { SITE_ID } from '../support/control/site-declaration.ts';
import { scrollsSideways } from './every-page.ts';

const MEMBERS = 'accepted_proofs,blocked,enforcement,passport_header';
const FORMAT = 'http-message-signatures';
let stage: ConsoleStage;
let page: Page;

beforeAll(async () => {
  stage = await ConsoleStage.start();
  page = await stage.adminPage({ viewport: { width: 390, height: 844 } });
});
afterAll(() => stage.stop());

const pageOf = (path: string) => page.goto(`${stage.url}/sites/${SITE_ID}${path}`);
const row = (name: string) => page.getByRole('row').filter({ hasText: name });
const banner = () => page.getByRole('status').filter({ hasText: 'Accepted proofs withheld' });
const definition = async () =>
  (await stage.control.ctl('get', 'route', 'orders-read', '--site', SITE_ID)).definition;

/** Toggles formats in the form of the route, and saves. */
async function toggle(...formats: readonly string[]): Promise<void> {
  await pageOf('/clients');
  await page.getByRole('tab', { name: 'Routes' }).click();
  await chooseIn(row('orders-read'), 'Edit');
  const dialog = page.getByRole('dialog');
  for (const format of formats) {
    const box = dialog.getByRole('group', { name: 'Accepted proofs' }).getByLabel(format);
    await box.setChecked(!(await box.isChecked()));
  }
  expect([await stage.axeViolations(page), await scrollsSideways(page)]).toEqual([[], false]);
  await confirm(page, 'Save');
  await dialog.waitFor({ state: 'detached' });
}

test('the form of a route sets the formats, which the list and the route’s page show', async () => {
  expect(await definition()).not.toHaveProperty('accepted_proofs');
  // In another order than the member has them.
  await toggle(FORMAT, 'transcript-v1');
  expect(await definition()).toMatchObject({ accepted_proofs: ['transcript-v1', FORMAT] });
  await row('orders-read').getByText(`transcript-v1, ${FORMAT}`).waitFor();
  await row('orders-write').getByText('transcript-v1', { exact: true }).waitFor();
  await pageOf('/routes/orders-read');
  await page.getByText(`transcript-v1, ${FORMAT}`).waitFor();
  expect([await stage.axeViolations(page), await scrollsSideways(page)]).toEqual([[], false]);
  await toggle('transcript-v1');
  expect(await definition()).toMatchObject({ accepted_proofs: [FORMAT] });
});

test('signed headers, body and what DPoP leaves unbound are fields', async () => {
  const opened = async () => {
    await pageOf('/clients?view=routes');
    await chooseIn(row('orders-read'), 'Edit');
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Signed headers').waitFor();
    return dialog;
  };
  const form = await opened();
  const unbound = form.getByRole('group', { name: 'Unbound by DPoP' });
  expect(await unbound.count()).toBe(0);
  await form.getByLabel('Signed headers').fill('Content-Type');
  await form.getByText('in lower case').waitFor();
  await form.getByLabel('Signed headers').fill('content-type, idempotency-key');
  await form.getByRole('combobox', { name: 'Body' }).click();
  await page.getByRole('option', { name: 'unbound' }).click();
  const proofs = form.getByRole('group', { name: 'Accepted proofs' });
  await proofs.getByLabel(FORMAT).uncheck();
  await proofs.getByLabel('transcript-v1').check();
  await proofs.getByLabel('dpop').check();
  await unbound.getByLabel('query').check();
  await form.getByText('DPoP signs no headers').waitFor();
  await unbound.getByLabel('headers').check();
  expect([await stage.axeViolations(page), await scrollsSideways(page)]).toEqual([[], false]);
  await confirm(page, 'Save');
  await form.waitFor({ state: 'detached' });
  expect(await definition()).toMatchObject({
    signed_headers: ['content-type', 'idempotency-key'],
    body: 'unbound',
    accepted_proofs: ['transcript-v1', 'dpop'],
    unbound: ['route', 'site', 'query', 'headers'],
  });
  const again = await opened();
  expect(await again.getByLabel('Signed headers').inputValue()).toBe('content-type, idempotency-key');
  expect(await again.getByLabel('Other members').inputValue()).toBe('{}');
  await again.getByRole('group', { name: 'Accepted proofs' }).getByLabel('dpop').uncheck();
  await again.getByRole('group', { name: 'Accepted proofs' }).getByLabel('transcript-v1').uncheck();
  await again.getByRole('group', { name: 'Accepted proofs' }).getByLabel(FORMAT).check();
  await again.getByLabel('Signed headers').fill('');
  await confirm(page, 'Save');
  await again.waitFor({ state: 'detached' });
  const now = await definition();
  expect(now).not.toHaveProperty('unbound');
  expect(now).not.toHaveProperty('signed_headers');
  expect(now).toHaveProperty('body', 'unbound');
});

test('a verifier that does not know them is named on the site’s pages', async () => {
  const created = await stage.api.create(`/v1/sites/${SITE_ID}/targets`, { body: { name: 'edge-1' } });
  const authorization = `Bearer ${String(created.body.token)}`;
  const poll = (more: Record<string, string>) =>
    fetch(`${stage.control.controlUrl}/v1/targets/self/bundle`, { headers: { authorization, ...more } });
  expect((await poll({ 'proofgate-bundle-members': MEMBERS })).status).toBe(200);
  await pageOf('/targets');
  await page.getByText('edge-1').first().waitFor();
  expect(await banner().count()).toBe(0);
  expect((await poll({})).status).toBe(304);
  await pageOf('/targets');
  await banner().getByText('edge-1').waitFor();
  expect([await stage.axeViolations(page), await scrollsSideways(page)]).toEqual([[], false]);
});

test('the form takes the formats away', async () => {
  await toggle(FORMAT);
  expect(await definition()).not.toHaveProperty('accepted_proofs');
  await banner().waitFor({ state: 'detached' });
});
