/** Observed routes in the console: the form, the badge, the banner on the site's pages, and targets that enforce them. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { formatTime } from '../../src/protocol/rfc3339.ts';
import { ConsoleStage, confirm } from '../support/control/console-fixture.ts';
import { SITE_ID } from '../support/control/site-declaration.ts';

const MEMBERS = 'blocked,enforcement,passport_header';
const until = formatTime(Math.floor(Date.now() / 1000) + 10 * 86_400);
let stage: ConsoleStage;
let page: Page;

beforeAll(async () => {
  stage = await ConsoleStage.start();
  page = await stage.adminPage();
});
afterAll(() => stage.stop());

const pageOf = (path: string) => page.goto(`${stage.url}/sites/${SITE_ID}${path}`);
const row = (name: string) => page.getByRole('row').filter({ hasText: name });
const banner = () => page.getByRole('status').filter({ hasText: 'Observing 1 route, 10 days left' });

test('the form of a route observes it until an end, with a reason', async () => {
  await pageOf('/clients');
  await page.getByRole('tab', { name: 'Routes' }).click();
  await row('orders-read').getByRole('button', { name: 'Edit', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Enforcement').selectOption('observe');
  await dialog.getByLabel('Observe until').fill('2020-01-01T00:00:00Z');
  await dialog.getByLabel('Reason').fill('roll-out');
  await confirm(page, 'Save');
  await dialog.getByText('not in the future').waitFor();
  await dialog.getByLabel('Observe until').fill(until);
  expect(await stage.axeViolations(page)).toEqual([]);
  await confirm(page, 'Save');
  await dialog.waitFor({ state: 'detached' });
  await row('orders-read').getByText('observed', { exact: true }).waitFor();
  expect(await row('orders-write').getByText('observed').count()).toBe(0);
  expect((await stage.reasonsOf('route'))[0]).toBe('roll-out');
  const { definition } = await stage.control.ctl('get', 'route', 'orders-read', '--site', SITE_ID);
  expect(definition).toMatchObject({ enforcement: 'observe', observe_until: until });
});

test('every page of the site says so, and no other page', async () => {
  for (const path of ['/setup', '/keys', '/targets']) {
    await pageOf(path);
    await banner().waitFor();
    expect(await stage.axeViolations(page)).toEqual([]);
  }
  await page.goto(`${stage.url}/audit`);
  await page.getByRole('heading', { name: 'Audit' }).waitFor();
  expect(await banner().count()).toBe(0);
});

test('the form of the site observes what no route matches until an end, and denies it again', async () => {
  const edit = async (choice: string) => {
    await pageOf('/setup');
    await page.getByRole('button', { name: 'Edit site' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Requests that no route matches').selectOption(choice);
    if (choice === 'observe') await dialog.getByLabel('Observe until').fill(until);
    expect(await stage.axeViolations(page)).toEqual([]);
    await confirm(page, 'Save');
    await dialog.waitFor({ state: 'detached' });
    return stage.control.ctl('get', 'site', SITE_ID);
  };
  expect(await edit('observe')).toMatchObject({ unmatched: 'observe', unmatched_until: until });
  await page.getByRole('status').filter({ hasText: 'requests that no route matches' }).waitFor();
  const enforced = await edit('enforce');
  expect(enforced).toMatchObject({ unmatched: 'deny' });
  expect(enforced).not.toHaveProperty('unmatched_until');
});

test('a target that enforces the route says so, and one that is too old withholds the observation', async () => {
  const body = { name: 'edge-1' };
  const created = await stage.api.create(`/v1/sites/${SITE_ID}/targets`, { body });
  const headers = { authorization: `Bearer ${String(created.body.token)}` };
  const poll = (more: Record<string, string>) =>
    fetch(`${stage.control.controlUrl}/v1/targets/self/bundle`, { headers: { ...headers, ...more } });
  const enforced = { 'proofgate-enforced-observations': '1 route=orders-read' };
  const answer = await poll({ 'proofgate-bundle-members': MEMBERS, ...enforced });
  expect(answer.status).toBe(200);
  await pageOf('/targets');
  await row('edge-1').getByText('Enforces although observed: orders-read').waitFor();
  expect(await stage.axeViolations(page)).toEqual([]);

  expect((await poll({})).status).toBe(304);
  await pageOf('/targets');
  await page.getByRole('status').filter({ hasText: 'withheld' }).getByText('edge-1').waitFor();
  expect(await stage.axeViolations(page)).toEqual([]);
});

test('the form enforces the route again', async () => {
  await pageOf('/clients');
  await page.getByRole('tab', { name: 'Routes' }).click();
  await row('orders-read').getByRole('button', { name: 'Edit', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Enforcement').selectOption('enforce');
  await confirm(page, 'Save');
  await dialog.waitFor({ state: 'detached' });
  await row('orders-read').getByText('observed').waitFor({ state: 'detached' });
  await page.getByRole('status').filter({ hasText: 'withheld' }).waitFor({ state: 'detached' });
  const { definition } = await stage.control.ctl('get', 'route', 'orders-read', '--site', SITE_ID);
  expect(definition).not.toHaveProperty('enforcement');
});
