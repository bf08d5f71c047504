/** Signing in to the console; a session that ends, and a Control that is away for a while. */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ConsoleStage } from '../support/control/console-fixture.ts';
import { SITE_ID } from '../support/control/site-declaration.ts';

let stage: ConsoleStage;

beforeAll(async () => {
  stage = await ConsoleStage.start();
});
afterAll(() => stage.stop());

describe('signing in', () => {
  test('at the identity provider leads back to the page that was asked for, with its filters', async () => {
    const page = await stage.operatorPage({
      name: 'ada',
      role: 'viewer',
      path: `/sites/${SITE_ID}/keys?status=revoked`,
    });
    await page.getByRole('heading', { name: 'Keys' }).waitFor();
    expect(page.url()).toBe(`${stage.url}/sites/${SITE_ID}/keys?status=revoked`);
    await page.context().close();
  });

  test('someone without a role is told so', async () => {
    const page = await stage.operatorPage({ name: 'eve', path: `/sites/${SITE_ID}/keys` });
    await page.getByText('not_found').waitFor();
    await page.context().close();
  });

  test('with the bootstrap token leaves it neither in the address nor in storage', async () => {
    const token = (await readFile(stage.control.tokenFile, 'utf8')).trim();
    const page = await stage.newPage();
    const urls: string[] = [];
    page.on('request', (request) => urls.push(request.url()));
    await page.goto(`${stage.url}/`);
    await page.getByLabel('Bootstrap token').fill(`${token.slice(0, -1)}x`);
    await page.getByRole('button', { name: 'Sign in with the token' }).click();
    await page.getByText('authentication_required').waitFor();
    await page.getByLabel('Bootstrap token').fill(token);
    await page.getByRole('button', { name: 'Sign in with the token' }).click();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
    const stored = await page.evaluate(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])',
    );
    expect(stored).not.toContain(token);
    expect(stored).not.toContain('pgs_');
    expect(urls.filter((url) => url.includes(token))).toEqual([]);
    await page.context().close();
  });
});

describe('while a page is open', () => {
  test('a session that ends shows the sign-in, and the same page after it', async () => {
    const page = await stage.adminPage();
    await page.getByRole('link', { name: SITE_ID }).first().click();
    const other = await page.context().newPage();
    await other.goto(`${stage.url}/`);
    await other.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Bootstrap token').waitFor();
    await stage.enterToken(page);
    expect(page.url()).toContain(`/sites/${SITE_ID}/`);
    await page.context().close();
  });

  test('a Control that is away is named, and what the page shows is read again when it is back', async () => {
    const page = await stage.adminPage();
    await page.goto(`${stage.url}/sites/${SITE_ID}/keys`);
    await page.getByRole('heading', { name: 'Keys' }).waitFor();
    await stage.control.stopControl('SIGKILL');
    await page.getByText('No connection to Control').waitFor();
    await stage.control.startControl();
    const { keyId } = await stage.control.enroll('billing');
    await page.getByText(keyId).waitFor();
    await page.getByText('No connection to Control').waitFor({ state: 'detached' });
    await page.context().close();
  });
});
