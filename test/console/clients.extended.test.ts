/** The page of clients and routes: grants by a click, and an edit that somebody else was faster with. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { parse, stringify } from 'yaml';
import type { JsonObject } from '../../src/protocol/strict-json.ts';
import { ConsoleStage } from '../support/control/console-fixture.ts';
import { SITE_ID } from '../support/control/site-declaration.ts';
import { waitFor } from '../support/wait.ts';

let stage: ConsoleStage;
let page: Page;

beforeAll(async () => {
  stage = await ConsoleStage.start();
  page = await stage.adminPage();
});
afterAll(() => stage.stop());

async function grantsOf(client: string): Promise<unknown> {
  const { items } = await stage.control.ctl('get', 'grants', client, '--site', SITE_ID);
  return (
    Array.isArray(items) &&
    items.map((item: { resource: string; access: string }) => [item.resource, item.access])
  );
}

test('access is granted, reduced and removed after a question that takes a reason', async () => {
  await page.goto(`${stage.url}/sites/${SITE_ID}/clients`);
  const payouts = page.getByLabel('Access of reporting to payouts');
  const grants = await grantsOf('reporting');
  await payouts.selectOption('write');
  await page.getByRole('dialog').getByText('every key of it may call').waitFor();
  expect(await grantsOf('reporting')).toEqual(grants);
  await page.getByRole('dialog').getByLabel('Reason').fill('refunds');
  await page.getByRole('dialog').getByRole('button', { name: 'Grant write' }).click();
  await expectSoon(
    () => grantsOf('reporting'),
    [
      ['orders', 'read'],
      ['payouts', 'write'],
    ],
  );
  await waitFor('the page to show it', async () => (await payouts.inputValue()) === 'write');
  await payouts.selectOption('none');
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  expect(await grantsOf('reporting')).toHaveLength(2);
  const events = await stage.reasonsOf('grant');
  await payouts.selectOption('read');
  await page.getByRole('dialog').getByRole('button', { name: 'Reduce to read' }).click();
  await waitFor('the page to show it', async () => (await payouts.inputValue()) === 'read');
  await payouts.selectOption('none');
  // What the dialogue of another change said is not said of this one.
  await page.getByRole('dialog').getByLabel('Reason').fill('refunds moved');
  await page.getByRole('dialog').getByRole('button', { name: 'Remove access' }).click();
  await expectSoon(() => grantsOf('reporting'), [['orders', 'read']]);
  expect(events[0]).toBe('refunds');
  expect(await stage.reasonsOf('grant')).toEqual(['refunds moved', undefined, ...events]);
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

test('of two who set the first caller rules of a route, the second sees those of the first', async () => {
  const openRules = async (of: Page) => {
    await of
      .getByRole('row')
      .filter({ hasText: 'stock-read' })
      .getByRole('button', { name: 'Caller rules' })
      .click();
    const dialog = of.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Add rule' }).waitFor();
    return dialog;
  };
  const emptied = await openRules(page);
  await emptied.getByRole('button', { name: 'Remove rule 1' }).click();
  await emptied.getByRole('button', { name: 'Save' }).click();
  await emptied.waitFor({ state: 'detached' });
  const mine = await openRules(page);
  await mine.getByRole('button', { name: 'Add rule' }).click();
  await mine.getByRole('textbox', { name: 'Subject', exact: true }).fill('client:mine:');
  const other = await stage.adminPage();
  await other.goto(page.url());
  const first = await openRules(other);
  await first.getByRole('button', { name: 'Add rule' }).click();
  await first.getByRole('button', { name: 'Save' }).click();
  await first.waitFor({ state: 'detached' });
  await other.context().close();
  await mine.getByRole('button', { name: 'Save' }).click();
  await mine.getByText('Somebody else changed it meanwhile').waitFor();
  expect(await mine.innerText()).not.toContain('U+');
  await mine.getByRole('button', { name: 'Apply mine to the new version' }).click();
  await mine.waitFor({ state: 'detached' });
  const path = `/v1/sites/${SITE_ID}/routes/stock-read/sources`;
  expect((await stage.api.get(path)).body.allowed_sources).toMatchObject([
    { subject_prefix: 'client:mine:' },
  ]);
});

test('caller rules that admit more say whom, and why goes to the trail', async () => {
  const path = `/v1/sites/${SITE_ID}/routes/stock-read/sources`;
  const rules = page.getByRole('row').filter({ hasText: 'stock-read' });
  await rules.getByRole('button', { name: 'Caller rules' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Add rule' }).waitFor();
  const more = dialog.getByRole('alert').filter({ hasText: 'This admits more' });
  expect(await more.count()).toBe(0);
  await dialog.getByRole('textbox', { name: 'Subject', exact: true }).fill('client:');
  await more.getByText('callers whose subject begins with client:').waitFor();
  await dialog.getByLabel('Reason').fill('all teams');
  await dialog.getByRole('button', { name: 'As site file' }).click();
  await dialog.getByText("# proofgate ctl apply -f site.yaml --reason 'all teams'").waitFor();
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
  expect((await stage.api.get(path)).body.allowed_sources).toMatchObject([{ subject_prefix: 'client:' }]);
  expect((await stage.reasonsOf('route_sources'))[0]).toBe('all teams');
});

test('the callers of a route are those that were granted its resource', async () => {
  await page.goto(`${stage.url}/sites/${SITE_ID}/clients?view=callers&route=orders-write`);
  await page.getByRole('cell', { name: 'billing' }).waitFor();
  expect(await page.getByRole('cell', { name: 'shipping' }).count()).toBe(0);
});

describe('the site file that a change shows does the same with `ctl apply`', () => {
  test('less access', async () => {
    await page.goto(`${stage.url}/sites/${SITE_ID}/clients`);
    await page.getByLabel('Access of billing to orders').selectOption('read');
    await applyShown('clients', 'client_id');
    expect(await grantsOf('billing')).toEqual([['orders', 'read']]);
  });

  test('another context', async () => {
    await page.getByRole('row').filter({ hasText: 'billing' }).getByRole('button', { name: 'Edit' }).click();
    await page.getByRole('dialog').getByLabel('Context').fill('team=money');
    await applyShown('clients', 'client_id');
    const client = await stage.control.ctl('get', 'client', 'billing', '--site', SITE_ID);
    expect(client).toMatchObject({ context: { team: 'money' } });
    expect(await grantsOf('billing')).toEqual([['orders', 'read']]);
  });

  test('another definition of a route, with the caller rules that it has', async () => {
    await page.getByRole('tab', { name: 'Routes' }).click();
    const payouts = page.getByRole('row').filter({ hasText: 'payouts-read' });
    await payouts.getByRole('button', { name: 'Edit' }).click();
    await page.getByRole('dialog').getByLabel('Audience').fill('https://payouts.shop.example');
    await applyShown('routes', 'route_id');
    expect(await definitionOf('payouts-read')).toMatchObject({ audience: 'https://payouts.shop.example' });
    await payouts.getByRole('button', { name: 'Caller rules' }).click();
    await page
      .getByRole('dialog')
      .getByRole('textbox', { name: 'Subject', exact: true })
      .fill('client:reporting:');
    await applyShown('routes', 'route_id');
    const rules = await stage.control.ctl('get', 'route-sources', 'payouts-read', '--site', SITE_ID);
    expect(rules).toMatchObject({ allowed_sources: [{ subject_prefix: 'client:reporting:' }] });
  });
});

/** Puts what the dialogue shows into the site file that is declared, and applies it. */
async function applyShown(member: string, id: string): Promise<void> {
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'As site file' }).click();
  const shown = parse((await dialog.getByText('# in the site file').textContent()) ?? '')[member];
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await dialog.waitFor({ state: 'detached' });
  const file = join(stage.control.directory, 'site.yaml');
  const site = parse(await readFile(file, 'utf8'));
  const merged = site[member].map(
    (item: JsonObject) => shown.find((each: JsonObject) => each[id] === item[id]) ?? item,
  );
  await writeFile(file, stringify({ ...site, [member]: merged }));
  await stage.control.ctl('apply', '-f', file);
}

async function definitionOf(route: string): Promise<unknown> {
  return (await stage.control.ctl('get', 'route', route, '--site', SITE_ID)).definition;
}

async function expectSoon(read: () => Promise<unknown>, wanted: unknown): Promise<void> {
  const text = JSON.stringify(wanted);
  await waitFor(`${text}`, async () => (JSON.stringify(await read()) === text ? true : undefined));
}
