/** Enrollment policies in the console, and the commands that it makes for them. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import type { JsonObject } from '../../src/protocol/strict-json.ts';
import { ConsoleStage, confirm } from '../support/control/console-fixture.ts';
import { AUDIENCE, SITE_ID } from '../support/control/site-declaration.ts';

const SUBJECT = 'system:serviceaccount:prod:clicked';

let stage: ConsoleStage;
let page: Page;
let path = '';

beforeAll(async () => {
  stage = await ConsoleStage.start({ targets: [] });
  page = await stage.adminPage();
});
afterAll(() => stage.stop());

const button = (name: string) => page.getByRole('button', { name, exact: true });
const dialog = () => page.getByRole('dialog');

async function policy(): Promise<JsonObject> {
  return (await stage.api.get(path)).body;
}

describe('a policy', () => {
  test('is created against the active revision; its command enrolls', async () => {
    await page.goto(`${stage.url}/sites/${SITE_ID}/policies`);
    await button('Create policy').click();
    await dialog().getByLabel('Name').fill('clicked');
    const subject = dialog().getByLabel('Subject');
    await dialog().getByText('SPIRE: spiffe://').waitFor();
    for (const wrong of ['system:serviceaccount:prod', 'spiffe://shop.example', 'prod billing']) {
      await subject.fill(wrong);
      await dialog().getByText('must be').waitFor();
      expect(await subject.getAttribute('aria-invalid')).toBe('true');
    }
    await subject.fill(SUBJECT);
    expect(await dialog().getByText('must be').count()).toBe(0);
    await dialog().getByLabel('Client').fill('billing');
    await confirm(page, 'Create');
    const command = page.getByText('proofgate enroll');
    await command.waitFor();
    path = `/v1/enrollment-policies/${page.url().split('/').at(-1)}`;
    expect(await policy()).toMatchObject({ source_revision: 1, verified_subject: SUBJECT, state: 'active' });

    const shown = (await command.textContent()) ?? '';
    const tokenFile = await stage.control.tokenFor('billing', {
      claims: { sub: SUBJECT, 'kubernetes.io': {} },
    });
    const args = shown
      .split(' ')
      .slice(1)
      .map((arg) => arg.replace(/^--private-key-out=.*/, `--private-key-out=${stage.control.newKeyFile()}`))
      .map((arg) => arg.replace(/^--proof-file=.*/, `--proof-file=${tokenFile}`));
    const { exitCode, stderr } = await stage.control.run([...args, '--wait-for-activation=false']);
    expect([exitCode, stderr]).toEqual([0, expect.any(String)]);

    await page.getByRole('tab', { name: 'Native sidecar' }).click();
    await page.getByText(`audience: ${AUDIENCE}`).waitFor();
  });

  test('is edited; of two changes at once, neither is lost', async () => {
    await button('Edit').click();
    await dialog().getByLabel('Name').fill('renamed');
    const { etag } = await stage.api.get(path);
    await stage.api.patch(path, { body: { max_key_lifetime_seconds: 1234 }, etag });
    await confirm(page, 'Save');
    const conflict = dialog().getByText('Somebody else changed it');
    await conflict.waitFor();
    await dialog().getByRole('cell', { name: '1234' }).waitFor();
    expect(await policy()).toMatchObject({ display_name: 'clicked' });
    await confirm(page, 'Apply mine to the new version');
    await dialog().waitFor({ state: 'detached' });
    expect(await policy()).toMatchObject({ display_name: 'renamed', max_key_lifetime_seconds: 1234 });
  });

  test('is rebound to another source only with the issuer that the operator expects', async () => {
    const { issuer, jwksUri } = stage.control.issuer;
    const source = { kind: 'oidc_jwks', display_name: 'new cluster', issuer, jwks_uri: jwksUri };
    const { body } = await stage.api.create(`/v1/sites/${SITE_ID}/sources`, {
      body: {
        ...source,
        audience: 'another',
      },
    });
    const revision = `/v1/sources/${String(body.source_id)}/revisions/1`;
    await stage.api.act(`${revision}/validate`);
    await stage.api.act(`${revision}/activate`, { body: { expected_scope: issuer.replace('https://', '') } });
    await stage.control.awaitSource(String(body.source_id), 'active');
    await page.reload();
    await button('Rebind').click();
    await dialog().getByLabel('Issuer of the intended cluster').fill('https://other.example');
    await confirm(page, 'Rebind');
    await dialog().getByText('policy_issuer_mismatch').waitFor();
    await dialog().getByLabel('Issuer of the intended cluster').fill(issuer);
    await confirm(page, 'Rebind');
    await dialog().waitFor({ state: 'detached' });
    expect(await policy()).toMatchObject({ source_id: body.source_id });
  });

  test('says what a change admits, and whom, and takes a reason', async () => {
    await button('Edit').click();
    const more = dialog().getByRole('alert').filter({ hasText: 'This admits more' });
    await dialog().getByLabel('Maximum lifetime').fill('600');
    expect(await more.count()).toBe(0);
    await dialog().getByLabel('Maximum lifetime').fill('7200');
    await more.getByText('keys that live 2 hours, not 1234 seconds').waitFor();
    await dialog().getByLabel('Approval').selectOption('manual');
    await dialog().getByLabel('Reason').fill('long jobs');
    await confirm(page, 'Save');
    await dialog().waitFor({ state: 'detached' });
    await button('Edit').click();
    await dialog().getByLabel('Approval').selectOption('automatic');
    await more.getByText(`${SUBJECT} gets keys without an operator, of client billing`).waitFor();
    await dialog().getByLabel('Reason').fill('known by now');
    await confirm(page, 'Save');
    await dialog().waitFor({ state: 'detached' });
    expect(await policy()).toMatchObject({ approval: 'automatic', max_key_lifetime_seconds: 7200 });
    const [last, before] = await stage.reasonsOf('enrollment_policy');
    expect([last, before]).toEqual(['known by now', 'long jobs']);
  });

  test('is deactivated, reactivated, and deleted by its name', async () => {
    await button('Deactivate').click();
    await confirm(page, 'Deactivate');
    await page.getByText('The policy accepts no enrollments').waitFor();
    expect(await policy()).toMatchObject({ state: 'deactivated' });
    await button('Reactivate').click();
    await confirm(page, 'Reactivate');
    await button('Deactivate').waitFor();
    expect(await policy()).toMatchObject({ state: 'active' });
    await button('Delete').click();
    await dialog().getByLabel('Reason').fill('unused');
    await confirm(page, 'Delete');
    await page.getByRole('heading', { name: 'Policies' }).waitFor();
    expect(await policy()).toMatchObject({ state: 'deleted' });
  });
});
