/** An empty Control: home leads to the first site, and its set-up says what is missing. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { ConsoleStage } from '../support/control/console-fixture.ts';

let stage: ConsoleStage;
let page: Page;

beforeAll(async () => {
  stage = await ConsoleStage.start({ isEmpty: true });
  page = await stage.adminPage();
});
afterAll(() => stage.stop());

const step = (title: string) => page.getByRole('listitem').filter({ hasText: title });

test('home of an empty Control begins with the site', async () => {
  await page.goto(`${stage.url}/`);
  await step('Site').getByText('next', { exact: true }).waitFor();
  await step('Site').getByRole('button', { name: 'Create site' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Site ID').fill('shop');
  await form.getByLabel('Trust domain').fill('shop.example');
  await form.getByLabel('Origins').fill('http://api.shop.example');
  await form.getByRole('button', { name: 'Create site' }).click();
  await page.getByRole('heading', { name: 'Set-up' }).waitFor();
  expect(await stage.control.ctl('get', 'site', 'shop')).toMatchObject({
    issuer_url: 'https://shop.example/sites/shop',
    origins: ['http://api.shop.example'],
  });
});

test('a step is done where it is shown', async () => {
  await step('1. Source').first().getByText('next', { exact: true }).waitFor();
  await step('Client').getByRole('button', { name: 'Create client' }).click();
  await page.getByRole('dialog').getByLabel('Client ID').fill('billing');
  await page.getByRole('dialog').getByRole('button', { name: 'Create client' }).click();
  await step('4. Client').getByText('done').waitFor();
  await step('7. Target').getByRole('button', { name: 'Create target' }).click();
  await page.getByRole('dialog').getByLabel('Name').fill('gateway');
  await page.getByRole('dialog').getByRole('button', { name: 'Create target' }).click();
  await page.getByRole('dialog').getByText('proofgate verifier --auth-site shop').waitFor();
  await page.getByRole('button', { name: 'I have saved it' }).click();
  await step('7. Target').getByText('done').waitFor();
  // What is done is folded.
  const more = step('7. Target').getByText('There is gateway');
  expect(await more.isVisible()).toBe(false);
  await step('7. Target').locator('summary').click();
  await more.waitFor();
  await step('7. Target').getByRole('button', { name: 'Create target' }).waitFor();
  expect(await stage.axeViolations(page)).toEqual([]);
});

test('home shows a target that does not poll, and leads to it', async () => {
  await page.goto(`${stage.url}/`);
  await page.getByRole('status').getByText('One thing needs attention.').waitFor();
  await page.getByRole('status').getByRole('link', { name: '1 of 1 do not poll' }).click();
  await page.getByRole('heading', { name: 'Targets' }).waitFor();
});
