/** Sources in the console: a cluster's way from a draft to its retirement, by clicks. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { jsonObjects } from '../../src/protocol/strict-json.ts';
import { ConsoleStage, confirm } from '../support/control/console-fixture.ts';
import { SITE_ID } from '../support/control/site-declaration.ts';
import { waitUntil } from '../support/wait.ts';

let stage: ConsoleStage;
let page: Page;
let sourceId = '';

beforeAll(async () => {
  stage = await ConsoleStage.start({ targets: [] });
  page = await stage.adminPage();
});
afterAll(() => stage.stop());

const button = (name: string) => page.getByRole('button', { name, exact: true });
const dialog = () => page.getByRole('dialog');

/** States of the source's revisions, oldest first. */
async function states(): Promise<readonly string[]> {
  const { revisions } = (await stage.api.get(`/v1/sources/${sourceId}`)).body;
  return jsonObjects(revisions).map(({ state }) => String(state));
}

describe('a source', () => {
  test('is created as a draft', async () => {
    const { issuer, jwksUri } = stage.control.issuer;
    await page.goto(`${stage.url}/sites/${SITE_ID}/sources`);
    await page.getByText('1 of 16 slots are used').waitFor();
    await button('Create source').click();
    await dialog().getByLabel('Name').fill('another cluster');
    await dialog().getByLabel('Issuer').fill(issuer);
    await dialog().getByLabel('URL of its key set').fill(`${jwksUri}-wrong`);
    await dialog().getByLabel('Audience').fill('proofgate-other');
    await confirm(page, 'Create draft');
    await page.getByRole('heading', { name: 'Revision 1' }).waitFor();
    await page.getByText('Control holds no keys').waitFor();
    sourceId = page.url().split('/').at(-1) ?? '';
    expect(await states()).toEqual(['draft']);
  });

  test('shows why it is not valid, and is corrected', async () => {
    await button('Validate').click();
    await page.getByText('The last check failed').waitFor();
    expect(await states()).toEqual(['failed_draft']);
    await button('Edit draft').click();
    await dialog().getByLabel('URL of its key set').fill(stage.control.issuer.jwksUri);
    await confirm(page, 'Save');
    await button('Validate').click();
    await page.getByText('Detected scope').waitFor();
    expect(await states()).toEqual(['validated']);
  });

  test('shows the keys of the issuer, and whether Control can still fetch them', async () => {
    const { kid } = stage.control.issuer.signer;
    await page.getByRole('region', { name: 'Keys of the issuer' }).getByText(kid).waitFor();
    await page.getByText('Last refresh').waitFor();
    expect(await page.getByText('The last refresh failed').count()).toBe(0);
  });

  test('is activated only for the scope that the operator expects', async () => {
    await button('Activate').click();
    await dialog().getByLabel('Scope of the intended cluster').fill('oidc.example/id/other');
    await confirm(page, 'Activate');
    await dialog().getByText('source_scope_mismatch').waitFor();
    const scope = stage.control.issuer.issuer.replace('https://', '');
    await dialog().getByLabel('Scope of the intended cluster').fill(scope);
    await confirm(page, 'Activate');
    await button('Suspend').waitFor();
    await waitUntil(async () => (await states()).join() === 'active');
  });

  test('is suspended and resumed', async () => {
    await button('Suspend').click();
    await confirm(page, 'Suspend');
    await button('Resume').waitFor();
    expect(await states()).toEqual(['suspended']);
    await button('Resume').click();
    await confirm(page, 'Resume');
    // It can be suspended again while it is publishing.
    await waitUntil(async () => (await states()).join() === 'active');
  });

  test('has a draft beside the active revision, which is deleted again', async () => {
    await button('New revision').click();
    await confirm(page, 'Create draft');
    await page.getByRole('heading', { name: 'Revision 2' }).waitFor();
    expect(await states()).toEqual(['active', 'draft']);
    await button('Delete draft').click();
    await confirm(page, 'Delete draft');
    await page.getByRole('heading', { name: 'Revision 2' }).waitFor({ state: 'detached' });
    expect(await states()).toEqual(['active']);
  });

  test('is retired with a reason', async () => {
    await button('Retire').click();
    const before = await states();
    await dialog().getByRole('button', { name: 'Retire' }).click();
    expect(await states()).toEqual(before);
    await dialog().getByLabel('Reason').fill('another cluster replaced it');
    await confirm(page, 'Retire');
    await page.getByText('retired', { exact: true }).waitFor();
    expect(await states()).toEqual(['retired']);
  });

  test('its site gets more slots', async () => {
    await page.goto(`${stage.url}/sites/${SITE_ID}/sources`);
    await button('Change capacity').click();
    await dialog().getByLabel('Slots').fill('20');
    await confirm(page, 'Save');
    await page.getByText('1 of 20 slots are used').waitFor();
    expect((await stage.api.get(`/v1/sites/${SITE_ID}`)).body.source_capacity).toBe(20);
  });
});
