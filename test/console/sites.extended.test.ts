/** Changing and deleting a site, and the names of what it belongs to. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { ConsoleStage, confirm } from '../support/control/console-fixture.ts';

const SITE = '/v1/sites/shop';

let stage: ConsoleStage;
let page: Page;

beforeAll(async () => {
  stage = await ConsoleStage.start({ isEmpty: true });
  const site = {
    ...{ site_id: 'shop', trust_domain: 'shop.example', issuer_url: 'https://shop.example/sites/shop' },
    origins: ['https://api.shop.example'],
  };
  const declaration = { format: 'proofgate.site/v1', environment: 'production', fleet: 'main', site };
  await stage.api.put(`${SITE}/declaration`, { body: declaration });
  page = await stage.adminPage();
});
afterAll(() => stage.stop());

const dialog = () => page.getByRole('dialog');

test('an environment and a fleet are renamed where sites are listed', async () => {
  const places = page.getByRole('region', { name: 'Environments and fleets' });
  for (const [kind, name] of [
    ['environment', 'live'],
    ['fleet', 'europe'],
  ]) {
    await page.getByRole('button', { name: `Rename ${kind}` }).click();
    await dialog().getByLabel('Name').fill(String(name));
    await confirm(page, 'Save');
    await dialog().waitFor({ state: 'detached' });
    await places.getByText(String(name), { exact: true }).first().waitFor();
  }
  expect(await stage.api.list('/v1/environments')).toMatchObject([{ name: 'live' }]);
  const { environment_id, fleet_id } = (await stage.api.get(SITE)).body;
  expect((await stage.api.get(`/v1/fleets/${String(fleet_id)}`)).body).toMatchObject({
    environment_id,
    name: 'europe',
  });
});

test('a site is changed under Set-up; only what was changed is sent', async () => {
  await page.getByRole('link', { name: 'shop' }).click();
  await page.getByRole('button', { name: 'Edit site' }).click();
  await dialog().getByLabel('Origins').fill('https://api.shop.example\nhttps://shop.example\n');
  await dialog().getByLabel('Clock skew').fill('7');
  await dialog().getByLabel('several replay stores').check();
  const { etag } = await stage.api.get(SITE);
  await stage.api.patch(SITE, { body: { display_name: 'Shop' }, etag });
  await confirm(page, 'Save');
  await dialog().getByRole('row', { name: 'display name Shop not changed' }).waitFor();
  await confirm(page, 'Apply mine to the new version');
  await dialog().waitFor({ state: 'detached' });
  expect((await stage.api.get(SITE)).body).toMatchObject({
    ...{ display_name: 'Shop', skew_seconds: 7, replay_stores: 'per_region' },
    origins: ['https://api.shop.example', 'https://shop.example'],
  });
});

test('a site is deleted once nothing belongs to it', async () => {
  await stage.api.create(`${SITE}/clients`, { body: { client_id: 'billing', subject: 'client:billing' } });
  await page.getByRole('button', { name: 'Delete site' }).click();
  await confirm(page, 'Delete site');
  await dialog().getByText('still_in_use').waitFor();
  await stage.api.remove(`${SITE}/clients/billing`, {
    etag: (await stage.api.get(`${SITE}/clients/billing`)).etag,
  });
  await dialog().getByRole('button', { name: 'Cancel' }).click();
  await page.reload();
  await page.getByRole('button', { name: 'Delete site' }).click();
  await confirm(page, 'Delete site');
  await page.getByText('Control is empty').waitFor();
  expect(await stage.api.list('/v1/sites')).toEqual([]);
});
