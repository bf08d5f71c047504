/** Lists and tables on a telephone: cards, folded filters, and a hint where a table goes on. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { ConsoleStage } from '../support/control/console-fixture.ts';
import { SITE_ID } from '../support/control/site-declaration.ts';

const WIDTH = 390;

let stage: ConsoleStage;
let page: Page;

beforeAll(async () => {
  stage = await ConsoleStage.start();
  page = await stage.operatorPage({
    name: 'ada',
    role: 'admin',
    browser: { viewport: { width: WIDTH, height: 844 } },
  });
});
afterAll(() => stage.stop());

test('a row is a card that shows each value, and can be ordered', async () => {
  await page.goto(`${stage.url}/sites/${SITE_ID}/clients?view=routes`);
  const row = page.getByRole('row').filter({ hasText: 'orders-read' });
  await row.waitFor();
  for (const cell of await row.getByRole('cell').all()) {
    const { x = -1, width = 0 } = (await cell.boundingBox()) ?? {};
    expect(x).toBeGreaterThan(0);
    expect(x + width).toBeLessThan(WIDTH);
  }
  await page.getByRole('button', { name: 'Order' }).click();
  await page.getByLabel('Order').selectOption('Route, descending');
  await page.waitForURL(/order=down/);
  expect(await page.getByRole('row').locator('a').allInnerTexts()).toEqual([
    'payouts-read',
    'orders-write',
    'orders-read',
  ]);
  expect(await stage.axeViolations(page)).toEqual([]);
});

test('filters fold, and the button says that one is set', async () => {
  await page.goto(`${stage.url}/audit`);
  const kind = page.getByLabel('Kind');
  const fold = page.getByRole('button', { name: 'Filters and order' });
  await fold.waitFor();
  expect(await kind.isVisible()).toBe(false);
  await fold.click();
  await kind.fill('route.create');
  await page.getByRole('button', { name: 'Filters and order: filtered' }).click();
  await kind.waitFor({ state: 'hidden' });
  await page.getByText('3 shown').waitFor();
});

test('a table that is cut says that it scrolls', async () => {
  const hint = page.getByText('Scroll the table sideways');
  await page.goto(`${stage.url}/sites/${SITE_ID}/targets`);
  await hint.waitFor();
  await page.setViewportSize({ width: 1440, height: 844 });
  await hint.waitFor({ state: 'detached' });
});
