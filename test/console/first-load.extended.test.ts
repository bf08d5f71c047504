/** How many bytes the first page loads. `make bench-control` measures how long it takes. */
import { stat } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ConsoleStage } from '../support/control/console-fixture.ts';
import { checkoutPath } from '../support/harness/checkout.ts';

const MAX_FIRST_LOAD_BYTES = 300 * 1024;

let stage: ConsoleStage;

beforeAll(async () => {
  stage = await ConsoleStage.start();
});
afterAll(() => stage.stop());

test('the first page loads at most 300 KiB, compressed', async () => {
  const page = await stage.adminPage();
  const files = new Set<string>();
  page.on('response', (response) => {
    const { pathname } = new URL(response.url());
    if (pathname.includes('/assets/')) files.add(pathname.split('/').at(-1) ?? '');
  });
  await page.goto(`${stage.url}/`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  const sizes = [...files].map(
    async (file) => (await stat(checkoutPath('dist', 'console', 'assets', `${file}.gz`))).size,
  );
  const total = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  expect(files.size).toBeGreaterThan(2);
  expect(total).toBeLessThan(MAX_FIRST_LOAD_BYTES);
});
