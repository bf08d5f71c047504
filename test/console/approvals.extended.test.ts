/** Approvals in the console: what an operator sees of a proof, decides, and what a second operator learns. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import type { JsonObject } from '../../src/protocol/strict-json.ts';
import { ConsoleStage, confirm } from '../support/control/console-fixture.ts';
import { SITE_ID } from '../support/control/site-declaration.ts';

let stage: ConsoleStage;
let page: Page;

beforeAll(async () => {
  stage = await ConsoleStage.start();
  page = await stage.adminPage();
});
afterAll(() => stage.stop());

/** A workload that waits. @returns its enrollment's ID */
async function waiting(claims: { readonly [name: string]: unknown } = {}): Promise<string> {
  const tokenFile = await stage.control.tokenFor('reviewed', { claims });
  const flags = ['--wait-for-activation=false'];
  const { stderr } = await stage.control.tryEnroll('reviewed', { tokenFile, flags });
  const id = /enr_[a-z0-9]+/.exec(stderr)?.[0];
  if (id === undefined) throw new Error(`no enrollment waits: ${stderr}`);
  return id;
}

async function enrollment(id: string): Promise<JsonObject> {
  return (await stage.api.get(`/v1/enrollments/${id}`)).body;
}

async function openList(operator: Page, rows: number): Promise<void> {
  await operator.goto(`${stage.url}/sites/${SITE_ID}/approvals`);
  await operator.getByText(`${rows} shown`).waitFor();
}

describe('approvals', () => {
  test('many are approved at once, for a reason', async () => {
    const ids = [await waiting(), await waiting()];
    await openList(page, 2);
    await page.getByLabel('Select all').check();
    await page.getByRole('button', { name: 'Approve 2' }).click();
    await page.getByRole('dialog').getByText('What keys of client billing may call').waitFor();
    expect(await stage.axeViolations(page)).toEqual([]);
    await page.getByLabel('Reason').fill('known since May');
    await confirm(page, 'Approve 2');
    await page.getByText('No workload waits').waitFor();
    for (const id of ids) {
      expect(await enrollment(id)).toMatchObject({ state: 'issued' });
      const query = `resource_id=${id}&kind=proofgate.control.enrollment.approve`;
      expect(await stage.api.page(`/v1/audit-events?${query}`)).toMatchObject([
        { reason: 'known since May', after: { reason: 'known since May' } },
      ]);
    }
  });

  test('of two operators, the second learns what the first decided', async () => {
    const id = await waiting();
    const second = await stage.operatorPage({ name: 'grace', role: 'approver' });
    await openList(second, 1);
    await second.getByLabel('Select all').check();
    await openList(page, 1);
    await page.getByLabel('Select all').check();
    await page.getByRole('button', { name: 'Deny' }).click();
    await confirm(page, 'Deny');
    await page.getByText('No workload waits').waitFor();
    const sent = second.waitForRequest((request) => request.url().endsWith('/approve'));
    await second.getByRole('button', { name: 'Approve' }).click();
    await confirm(second, 'Approve');
    expect((await sent).headers()['if-match']).toBe('"1"');
    const alert = second.getByRole('alert');
    await alert.getByText('it changed since').waitFor();
    expect(await alert.textContent()).toContain('denied');
    expect(await enrollment(id)).toMatchObject({ state: 'denied' });
    await page.goto(`${stage.url}/sites/${SITE_ID}/approvals/${id}`);
    await page.getByRole('status').getByText('Denied', { exact: true }).waitFor();
    await page.getByText('Who asked for this key?').waitFor();
    await second.context().close();
  });

  test("an enrollment's page shows the proof as text, whatever it says", async () => {
    const script = '<img/src=x/onerror=window.ran=1>';
    const id = await waiting({ 'kubernetes.io': { namespace: 'prod', pod: { name: script } } });
    await page.goto(`${stage.url}/sites/${SITE_ID}/approvals/${id}`);
    await page.getByText(script).waitFor();
    await page.getByText(String((await enrollment(id)).fingerprint)).waitFor();
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByRole('dialog').getByText(script).waitFor();
    expect(await page.evaluate('window.ran')).toBeUndefined();
    await confirm(page, 'Approve');
    await page.getByText('Decided by').waitFor();
    expect(await enrollment(id)).toMatchObject({ state: 'issued' });
  });
});
