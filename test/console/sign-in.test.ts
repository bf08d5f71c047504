/** Signing in to the console, out of it, and what happens when the session ends meanwhile. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { SITE_ID } from '../e2e/control/site-declaration.ts';
import { ConsoleStage } from './console-fixture.ts';

let stage: ConsoleStage;

beforeAll(async () => {
  stage = await ConsoleStage.start();
}, 60_000);
afterAll(() => stage.stop());

describe('signing in', () => {
  test('at the identity provider leads back to the page that was asked for', async () => {
    const page = await stage.operatorPage('ada', 'viewer');
    expect(new URL(page.url()).pathname).toBe('/console/');
    await page.getByRole('link', { name: SITE_ID }).click();
    await page.getByRole('heading', { name: 'Set-up' }).waitFor();
  });
});
