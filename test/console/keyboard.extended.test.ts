/** The console without a mouse, and at the width where the navigation folds. */
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

const focused = (target: Page) => target.evaluate('document.activeElement?.textContent');

test.each([
  ['/', 'Create site'],
  [`/sites/${SITE_ID}/setup`, 'Edit site'],
  [`/sites/${SITE_ID}/setup`, 'Delete site'],
])('a dialogue of %s gives the focus back: %s', async (path, name) => {
  await page.goto(`${stage.url}${path}`);
  for (let time = 0; time < 2; time += 1) {
    await page.getByRole('button', { name, exact: true }).focus();
    await page.keyboard.press('Enter');
    const dialogue = page.getByRole('dialog');
    await dialogue.getByRole('button', { name: 'Cancel' }).waitFor();
    await page.keyboard.press('Escape');
    await dialogue.waitFor({ state: 'detached' });
    expect(await focused(page)).toBe(name);
  }
});

test('a token that is shown once keeps the focus', async () => {
  await page.goto(`${stage.url}/sites/${SITE_ID}/setup`);
  await page.getByRole('button', { name: 'Create target' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').getByLabel('Name').fill('gateway');
  const reread = page.waitForResponse((response) => response.url().includes('/targets'));
  await page.keyboard.press('Enter');
  const shown = page.getByRole('dialog', { name: 'gateway' });
  await shown.getByRole('button', { name: 'I have saved it' }).waitFor();
  await reread;
  await page.getByRole('dialog', { name: 'Create target' }).waitFor({ state: 'detached' });
  expect(await page.evaluate(`document.activeElement?.closest('[role=dialog]') !== null`)).toBe(true);
});

test.each([
  [768, false],
  [767, true],
])('at %d px the navigation is there, or folded: %s', async (width, isFolded) => {
  const tablet = await stage.adminPage({ viewport: { width, height: 1024 } });
  const audit = tablet.getByRole('link', { name: 'Audit' });
  const burger = tablet.getByRole('button', { name: 'Navigation' });
  await tablet.getByRole('heading', { name: 'Home' }).waitFor();
  expect([await audit.isVisible(), await burger.isVisible()]).toEqual([!isFolded, isFolded]);
  if (isFolded) {
    await burger.focus();
    await tablet.keyboard.press('Enter');
    await audit.waitFor();
    expect(await burger.getAttribute('aria-expanded')).toBe('true');
    await tablet.keyboard.press('Escape');
    await audit.waitFor({ state: 'hidden' });
    expect(await tablet.evaluate(`document.activeElement?.getAttribute('aria-label')`)).toBe('Navigation');
  }
  await tablet.context().close();
});
