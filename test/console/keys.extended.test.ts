/** Keys in the console: found by Control, revoked, and workloads and callers that are blocked. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { ConsoleStage, confirm } from '../support/control/console-fixture.ts';
import { SITE_ID } from '../support/control/site-declaration.ts';
import { errorCode } from '../support/harness/proofgate-command.ts';

let stage: ConsoleStage;
let page: Page;
let billing = '';
let reporting = '';

beforeAll(async () => {
  stage = await ConsoleStage.start({ targets: [] });
  page = await stage.adminPage();
  const flags = ['--wait-for-activation=false'];
  billing = (await stage.control.enroll('billing', { flags })).keyId;
  reporting = (await stage.control.enroll('reporting', { flags })).keyId;
});
afterAll(() => stage.stop());

const site = `/v1/sites/${SITE_ID}`;
const dialog = () => page.getByRole('dialog');

describe('keys', () => {
  test('are found by a part of the subject, or by the fingerprint; the address keeps it', async () => {
    await page.goto(`${stage.url}/sites/${SITE_ID}/keys`);
    await page.getByText('2 shown').waitFor();
    await page.getByLabel('Subject contains').fill('prod:report');
    await page.getByText('1 shown').waitFor();
    await page.getByRole('link', { name: reporting }).waitFor();
    await page.reload();
    await page.getByText('1 shown').waitFor();
    const { fingerprint } = await stage.control.key(billing);
    await page.goto(`${stage.url}/sites/${SITE_ID}/keys?fingerprint=${String(fingerprint)}`);
    await page.getByText('1 shown').waitFor();
    await page.getByRole('link', { name: billing }).click();
    await page.getByRole('heading', { name: 'Is it ready?' }).waitFor();
  });

  test('are revoked by their ID, with their subject', async () => {
    await page.getByRole('button', { name: 'Revoke' }).click();
    await dialog().getByLabel('Reason').fill('lost');
    await dialog().getByLabel('Also refuse new enrollments').check();
    await dialog().getByLabel('to confirm').fill(billing);
    await confirm(page, 'Revoke');
    await page.getByText('Revoked by').waitFor();
    expect(await stage.control.key(billing)).toMatchObject({
      status: 'revoked',
      revoked_reason: 'lost',
    });
    expect(errorCode(await stage.control.tryEnroll('billing'))).toBe('subject_blocked');
  });
});

describe('who is blocked', () => {
  test('a subject that may enroll again', async () => {
    await page.goto(`${stage.url}/sites/${SITE_ID}/blocked`);
    await page.getByRole('button', { name: 'Unblock' }).click();
    await confirm(page, 'Unblock');
    await page.getByText('No workload is blocked').waitFor();
    expect(await stage.api.list(`${site}/blocked-subjects`)).toEqual([]);
    await page.getByRole('button', { name: 'Block a subject' }).click();
    await dialog().getByLabel('Issuer').fill('https://oidc.example');
    await dialog().getByLabel('Subject').fill('spiffe://it/<script>window.ran=1</script>');
    await confirm(page, 'Block');
    await page.locator('tbody').getByText('spiffe://it/<script>').waitFor();
    expect(await stage.api.list(`${site}/blocked-subjects`)).toMatchObject([
      { issuer: 'https://oidc.example' },
    ]);
    expect(await page.evaluate('window.ran')).toBeUndefined();
  });

  test('a caller, by its subject', async () => {
    await page.getByRole('tab', { name: 'Callers' }).click();
    await page.getByRole('button', { name: 'Block a caller' }).click();
    await dialog().getByLabel('Issuer').fill('https://control.shop.example/sites/shop-control');
    await dialog().getByLabel('Subject, exactly').fill('client:billing');
    await confirm(page, 'Block');
    await page.getByRole('button', { name: 'Unblock' }).waitFor();
    expect(await stage.api.list(`${site}/blocked-callers`)).toMatchObject([{ subject: 'client:billing' }]);
    await page.getByRole('button', { name: 'Unblock' }).click();
    await confirm(page, 'Unblock');
    await page.getByText('No caller is blocked').waitFor();
    expect(await stage.api.list(`${site}/blocked-callers`)).toEqual([]);
  });
});
