/** The page of clients and routes: grants by a click, and an edit that somebody else was faster with. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { SITE_ID } from '../e2e/control/site-declaration.ts';
import { waitFor } from '../e2e/harness/wait.ts';
import { ConsoleStage } from './console-fixture.ts';

let stage: ConsoleStage;
let page: Page;

beforeAll(async () => {
  stage = await ConsoleStage.start();
  page = await stage.adminPage();
}, 60_000);
afterAll(() => stage.stop());

async function grantsOf(client: string): Promise<unknown> {
  const { items } = await stage.control.ctl('get', 'grants', client, '--site', SITE_ID);
  return (
    Array.isArray(items) &&
    items.map((item: { resource: string; access: string }) => [item.resource, item.access])
  );
}

test('more access is granted at once, less only after a question', async () => {
  await page.goto(`${stage.url}/sites/${SITE_ID}/clients`);
  const payouts = page.getByLabel('Access of reporting to payouts');
  await payouts.selectOption('write');
  await expectSoon(
    () => grantsOf('reporting'),
    [
      ['orders', 'read'],
      ['payouts', 'write'],
    ],
  );
  await payouts.selectOption('none');
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  expect(await grantsOf('reporting')).toHaveLength(2);
  await payouts.selectOption('none');
  await page.getByRole('dialog').getByRole('button', { name: 'Remove access' }).click();
  await expectSoon(() => grantsOf('reporting'), [['orders', 'read']]);
});

test('a client and a route are created, and the route is published', async () => {
  await page.getByRole('button', { name: 'Create client' }).click();
  const client = page.getByRole('dialog');
  await client.getByLabel('Client ID').fill('shipping');
  await client.getByLabel('Context').fill('team=logistics');
  await client.getByRole('button', { name: 'Create client' }).click();
  await page.getByLabel('Access of shipping to orders').waitFor();
  expect(await stage.control.ctl('get', 'client', 'shipping', '--site', SITE_ID)).toMatchObject({
    subject: 'client:shipping',
    context: { team: 'logistics' },
  });
  await page.getByRole('tab', { name: 'Routes' }).click();
  await page.getByRole('button', { name: 'Create route' }).click();
  const route = page.getByRole('dialog');
  await route.getByLabel('Route ID').fill('stock-read');
  await route.getByLabel('Path template').fill('/v1/stock/{id}');
  await route.getByLabel('Audience').fill('https://api.shop.example');
  await route.getByRole('button', { name: 'Create route' }).click();
  await page.getByRole('row').filter({ hasText: 'stock-read' }).getByText('published').waitFor();
});

test('who changes a route that was changed meanwhile sees both versions, and keeps both changes', async () => {
  const orders = page.getByRole('row').filter({ hasText: 'orders-write' });
  await orders.getByRole('button', { name: 'Edit' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Audience').fill('https://orders.shop.example');
  await stage.control.applySite({ maxStalenessSeconds: 20 });
  await dialog.getByRole('button', { name: 'Save' }).click();
  const conflict = dialog.getByRole('alert');
  await conflict
    .getByRole('row', { name: 'audience https://api.shop.example https://orders.shop.example' })
    .waitFor();
  await conflict.getByRole('row', { name: 'max staleness seconds 20 not changed' }).waitFor();
  expect(await definitionOf('orders-write')).toMatchObject({ audience: 'https://api.shop.example' });
  await dialog.getByRole('button', { name: 'Apply mine to the new version' }).click();
  await dialog.waitFor({ state: 'detached' });
  expect(await definitionOf('orders-write')).toMatchObject({
    audience: 'https://orders.shop.example',
    max_staleness_seconds: 20,
  });
});

test('the callers of a route are those that were granted its resource', async () => {
  await page.goto(`${stage.url}/sites/${SITE_ID}/clients?view=callers&route=orders-write`);
  await page.getByRole('cell', { name: 'billing' }).waitFor();
  expect(await page.getByRole('cell', { name: 'shipping' }).count()).toBe(0);
});

async function definitionOf(route: string): Promise<unknown> {
  return (await stage.control.ctl('get', 'route', route, '--site', SITE_ID)).definition;
}

async function expectSoon(read: () => Promise<unknown>, wanted: unknown): Promise<void> {
  const text = JSON.stringify(wanted);
  await waitFor(`${text}`, 10_000, async () => (JSON.stringify(await read()) === text ? true : undefined));
}
