/** The page of targets: a token that is shown once, a refused bundle with its reason, a target that is detached. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { ConsoleStage } from '../support/control/console-fixture.ts';
import { SITE_ID } from '../support/control/site-declaration.ts';

let stage: ConsoleStage;
let page: Page;

beforeAll(async () => {
  stage = await ConsoleStage.start();
  page = await stage.adminPage();
  await page.goto(`${stage.url}/sites/${SITE_ID}/targets`);
});
afterAll(() => stage.stop());

/** Of the verifier's interface. */
function asTarget(token: string, path: string, init: RequestInit = {}): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...init.headers };
  return fetch(`${stage.control.controlUrl}/v1/targets/self${path}`, { ...init, headers });
}

const row = (name: string) => page.getByRole('row').filter({ hasText: name });

let token = '';

test('a new target has a token that works, with the commands that start its verifier, once', async () => {
  await page.getByRole('button', { name: 'Create target' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('edge-1');
  await dialog.getByRole('button', { name: 'Create target' }).click();
  const shown = page.getByRole('dialog', { name: 'Token of target edge-1' });
  const commands = (await shown.getByText('proofgate verifier').textContent()) ?? '';
  token = (await shown.locator('pre').first().textContent()) ?? '';
  expect((await asTarget(token, '/bundle')).status).toBe(200);
  expect(commands).toContain(token);
  expect(commands).toContain(`--auth-site ${SITE_ID}`);
  await shown.getByRole('button', { name: 'I have saved it' }).click();
  await shown.waitFor({ state: 'detached' });
  expect(await page.content()).not.toContain(token);
});

test('a bundle that a target refused is shown with the reason', async () => {
  const { revision, head } = (await (await asTarget(token, '/bundle')).json()) as { [name: string]: unknown };
  const body = JSON.stringify({ revision, head, outcome: 'refused', code: 'signatures_insufficient' });
  const answer = await asTarget(token, '/acks', { method: 'POST', body });
  expect(answer.status).toBe(204);
  await row('edge-1').getByText('signatures_insufficient').waitFor();
  await row('edge-1').getByText('refusing', { exact: true }).waitFor();
});

test('verifiers that share the token are listed, and that they use two replay stores', async () => {
  const [one, other] = ['a', 'b'].map((letter) => letter.repeat(22));
  for (const id of [one, other]) {
    const headers = { 'proofgate-instance': `${id} version=0.4.0 replay_store=${id}` };
    expect((await asTarget(token, '/bundle', { headers })).status).toBe(200);
  }
  await page.getByText('2: a proof is accepted once in each').waitFor();
  const listed = row('edge-1').getByRole('list', { name: 'Instances' }).getByRole('listitem');
  expect(await listed.allInnerTexts()).toEqual([
    expect.stringContaining(String(one)),
    expect.stringContaining(String(other)),
  ]);
  expect(await stage.axeViolations(page)).toEqual([]);
});

test('a rotated token is shown once, and both work', async () => {
  await row('edge-1').getByRole('button', { name: 'Rotate token' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate token' }).click();
  const shown = page.getByRole('dialog', { name: 'Token of target edge-1' });
  const next = (await shown.locator('pre').first().textContent()) ?? '';
  expect(next).not.toBe(token);
  for (const each of [token, next]) expect((await asTarget(each, '/bundle')).status).toBe(200);
  await shown.getByRole('button', { name: 'I have saved it' }).click();
});

test('detaching names the target, and ends the token', async () => {
  await row('edge-1').getByRole('button', { name: 'Detach' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('Detach edge-1').waitFor();
  await dialog.getByRole('button', { name: 'Detach' }).click();
  await row('edge-1').waitFor({ state: 'detached' });
  expect((await asTarget(token, '/bundle')).status).toBe(401);
});
