/** Keys in the console: found by Control, last used, revoked with a receipt, and workloads and callers that are blocked. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { INSTANCE_HEADER } from '../../src/bundle/format/bundle-limits.ts';
import { LAST_USED_PATH } from '../../src/bundle/format/key-use.ts';
import { Instance } from '../../src/verifier/loading/refresh/instance.ts';
import { runInProcess } from '../support/cli/in-process.ts';
import { ConsoleStage, confirm } from '../support/control/console-fixture.ts';
import { SITE_ID } from '../support/control/site-declaration.ts';
import { errorCode } from '../support/harness/proofgate-command.ts';

let stage: ConsoleStage;
let page: Page;
let billing = '';
let reporting = '';

beforeAll(async () => {
  stage = await ConsoleStage.start({ targets: ['edge'] });
  page = await stage.adminPage();
  const flags = ['--wait-for-activation=false'];
  billing = (await stage.control.enroll('billing', { flags })).keyId;
  reporting = (await stage.control.enroll('reporting', { flags })).keyId;
});
afterAll(() => stage.stop());

const site = `/v1/sites/${SITE_ID}`;
const dialog = () => page.getByRole('dialog');
const section = (name: string) =>
  page.locator('section').filter({ has: page.getByRole('heading', { name }) });

/** A request of a verifier with the target's token. */
async function asTarget(path: string, init: RequestInit = {}): Promise<number> {
  const token = (await readFile(join(stage.control.directory, 'edge.token'), 'utf8')).trim();
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...init.headers };
  return (await fetch(`${stage.control.controlUrl}${path}`, { ...init, headers })).status;
}

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

  test('show when they were last used, and which target says so', async () => {
    await page.goto(`${stage.url}/sites/${SITE_ID}/keys`);
    const used = page.getByRole('row').filter({ hasText: billing });
    await used.getByText('not reported').waitFor();
    await used.getByRole('link', { name: billing }).click();
    await page.getByText('no target has reported a use').waitFor();
    const body = JSON.stringify({ keys: [{ key_id: billing, used_at: new Date().toISOString() }] });
    expect(await asTarget(LAST_USED_PATH, { method: 'POST', body })).toBe(204);
    await page.reload();
    await page.getByText('reported by target edge').waitFor();
    await page.goBack();
    await page.reload();
    await used.waitFor();
    expect(await used.getByText('not reported').count()).toBe(0);
    await used.getByRole('link', { name: billing }).click();
  });

  test('have a page with a title, also before it is read', async () => {
    const path = `**/v1/derived-keys/${reporting}`;
    await page.route(path, () => undefined);
    await page.goto(`${stage.url}/sites/${SITE_ID}/keys/${reporting}`);
    await page.getByRole('heading', { level: 1, name: reporting }).waitFor();
    await page.getByLabel('Loading').waitFor();
    await page.unroute(path);
    await page.goto(`${stage.url}/sites/${SITE_ID}/keys/${billing}`);
    await page.getByRole('button', { name: 'Revoke' }).waitFor();
  });

  test('are revoked with a reason, with their subject', async () => {
    await page.getByRole('button', { name: 'Revoke' }).click();
    await dialog().getByLabel('Reason').fill('lost');
    await dialog().getByLabel('Also refuse new enrollments').check();
    await confirm(page, 'Revoke');
    await page.getByText('Revoked by').waitFor();
    await page.getByText('Would have expired').waitFor();
    expect(await stage.control.key(billing)).toMatchObject({
      status: 'revoked',
      revoked_reason: 'lost',
    });
    expect(errorCode(await stage.control.tryEnroll('billing'))).toBe('subject_blocked');
  });
});

describe('the receipt of a revoked key', () => {
  const receipt = () => section('Revocation receipt');

  test('waits for the verifiers that have not acknowledged, and says how long at most', async () => {
    const settings = { authSite: SITE_ID, realtimeStalenessSeconds: 10, hasBreakGlass: false };
    const instance = new Instance({ version: '0.4.0', readStoreId: undefined, ...settings });
    const headers = { [INSTANCE_HEADER]: instance.text() };
    expect(await asTarget('/v1/targets/self/bundle', { headers })).toBe(200);
    await receipt().getByText('pending', { exact: true }).waitFor();
    await receipt()
      .getByText(/may still allow requests of this key\. This ends, at the latest, in /)
      .waitFor();
    const waiting = receipt().getByRole('list', { name: 'Not acknowledged yet' });
    await waiting.getByText('edge, revision none').waitFor();
  });

  test('is downloaded, and verified offline by the commands that the page shows', async () => {
    await receipt().getByRole('button', { name: 'As command' }).click();
    const lines = (await receipt().locator('pre').innerText()).split('\n');
    const url = stage.control.controlUrl;
    expect(lines).toEqual([
      `proofgate ctl get revocation-receipt ${billing} --output json --control-url ${url} > receipt.json`,
      `proofgate ctl get receipt-keys ${SITE_ID} --output json --control-url ${url} > receipt-keys.json`,
      'proofgate bundle verify-receipt receipt.json --receipt-key receipt-keys.json',
    ]);
    expect(await stage.axeViolations(page)).toEqual([]);
    const saved = page.waitForEvent('download');
    await receipt().getByRole('button', { name: 'Download receipt' }).click();
    expect((await saved).suggestedFilename()).toBe(`revocation-receipt-${billing}.jws`);
    const keys = join(stage.control.directory, 'receipt-keys.json');
    await writeFile(keys, JSON.stringify(await stage.control.ctl('get', 'receipt-keys', SITE_ID)));
    const verified = await runInProcess([
      ...['bundle', 'verify-receipt', await (await saved).path(), '--receipt-key', keys],
    ]);
    expect([verified.exitCode, verified.stderr]).toEqual([0, '']);
    expect(verified.stdout).toContain(billing);
  });

  test.each([
    ['effective', { state: 'effective', no_use_from: '2026-11-21T04:00:00Z' }, 'The last possible use ended'],
    ['of an unknown end', { state: 'pending' }, 'When this ends is not known yet'],
  ])('is shown when it is %s', async (_, members, shown) => {
    const path = '**/revocation-receipt';
    const json = { key_id: billing, waiting_for: [], receipt: 'a.b.c', ...members };
    await page.route(path, (route) => route.fulfill({ json }));
    await page.reload();
    await receipt().getByText(members.state, { exact: true }).waitFor();
    await receipt().getByText(shown).waitFor();
    await page.unroute(path);
  });

  test('is not shown of a key that is not revoked', async () => {
    await page.goto(`${stage.url}/sites/${SITE_ID}/keys/${reporting}`);
    await section('Is it ready?').waitFor();
    expect(await receipt().count()).toBe(0);
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

test('several keys are revoked at once', async () => {
  const more = (await stage.control.enroll('reporting', { flags: ['--wait-for-activation=false'] })).keyId;
  await page.goto(`${stage.url}/sites/${SITE_ID}/keys?status=active`);
  expect(await page.getByRole('button', { name: 'Revoke' }).isDisabled()).toBe(true);
  await page.getByLabel(`Select ${reporting}`).check();
  await page.getByLabel(`Select ${more}`).check();
  await page.getByRole('button', { name: 'Revoke 2' }).click();
  for (const id of [reporting, more])
    await dialog()
      .getByRole('listitem')
      .filter({ hasText: id })
      .getByText(/no use reported/)
      .waitFor();
  await dialog().getByLabel('Reason').fill('the cluster is gone');
  await confirm(page, 'Revoke 2');
  await page.getByText('No keys match').waitFor();
  const revoked = page.getByRole('status').filter({ hasText: 'not yet everywhere: 0 of 1 targets have it' });
  expect(await revoked.getAttribute('style')).toContain('yellow');
  expect(await stage.axeViolations(page)).toEqual([]);
  for (const id of [reporting, more])
    expect(await stage.control.key(id)).toMatchObject({
      ...{ status: 'revoked', revoked_reason: 'the cluster is gone' },
    });
});
