/** Lists and tables on a telephone: cards, folded filters, and a hint where a table goes on. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { ConsoleStage } from '../support/control/console-fixture.ts';
import { SITE_ID } from '../support/control/site-declaration.ts';
import { everyPage, visit } from './every-page.ts';

const WIDTH = 390;

let stage: ConsoleStage;
let page: Page;

beforeAll(async () => {
  stage = await ConsoleStage.start();
  await stage.control.enroll('billing');
  page = await stage.operatorPage({
    name: 'ada',
    role: 'admin',
    browser: { viewport: { width: WIDTH, height: 844 } },
  });
});
afterAll(() => stage.stop());

const TELLING = 4;

test('a row is a card with its most telling values, the others after More, and can be ordered', async () => {
  await page.goto(`${stage.url}/sites/${SITE_ID}/clients?view=routes`);
  const row = page.getByRole('row').filter({ hasText: 'orders-read' });
  await row.waitFor();
  const proofs = row.getByText('transcript-v1');
  expect(await proofs.isVisible()).toBe(true);
  const resource = row.locator('[data-title=Resource]');
  expect(await resource.isVisible()).toBe(false);
  await row.getByRole('button', { name: 'More' }).click();
  expect(await resource.isVisible()).toBe(true);
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

test('no list or table has more than four values on a card, or scrolls', async () => {
  for (const path of await everyPage(stage, page).then((pages) => [...pages.keys()])) {
    await visit(page, `${stage.url}${path}`);
    const faults: unknown = await page.evaluate(`
      [...document.querySelectorAll('.table-frame')].flatMap((frame) => [
        ...(frame.scrollWidth > frame.clientWidth ? [frame.ariaLabel + ' scrolls'] : []),
        ...[...frame.querySelectorAll('tbody tr')]
          .map((row) => [...row.querySelectorAll('[data-title]')].filter((cell) => cell.checkVisibility()).length)
          .filter((count) => count > ${TELLING})
          .map((count) => frame.ariaLabel + ' shows ' + count),
      ])`);
    expect([path, faults]).toEqual([path, []]);
  }
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
  await page.setViewportSize({ width: 640, height: 844 });
  await page.goto(`${stage.url}/sites/${SITE_ID}/targets`);
  await hint.waitFor();
  await page.setViewportSize({ width: 1440, height: 844 });
  await hint.waitFor({ state: 'detached' });
});
