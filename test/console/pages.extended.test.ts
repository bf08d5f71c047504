/**
 * What holds for every page of the navigation, in light, dark and on a narrow screen: axe finds nothing, also in its
 * dialogues, the page does not scroll sideways, nothing is refused by the Content-Security-Policy. How many bytes the first page loads. `make screenshots` also takes pictures, by PROOFGATE_TEST_SCREENSHOTS.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { BrowserContextOptions } from 'playwright-core';
import { ConsoleStage } from '../support/control/console-fixture.ts';
import { checkoutPath } from '../support/harness/checkout.ts';
import { everyPage, openDialogues, scrollsSideways, visit } from './every-page.ts';

const LOOKS: { readonly [name: string]: BrowserContextOptions } = {
  light: { colorScheme: 'light', viewport: { width: 1280, height: 800 } },
  dark: { colorScheme: 'dark', viewport: { width: 1280, height: 800 } },
  narrow: { colorScheme: 'light', viewport: { width: 360, height: 740 } },
};
const MAX_FIRST_LOAD_BYTES = 300 * 1024;
const pictures = process.env.PROOFGATE_TEST_SCREENSHOTS;

let stage: ConsoleStage;
let pages: ReadonlyMap<string, string>;

beforeAll(async () => {
  stage = await ConsoleStage.start();
  await stage.control.enroll('billing');
  await stage.control.tryEnroll('reviewed', { flags: ['--wait-for-activation=false'] });
  const page = await stage.adminPage();
  pages = await everyPage(stage, page);
  await page.context().close();
});
afterAll(() => stage.stop());

describe.each(Object.keys(LOOKS))('every page, %s', (look) => {
  test('is accessible and fits the screen', async () => {
    const page = await stage.operatorPage({ name: `ada-${look}`, role: 'admin', browser: LOOKS[look] ?? {} });
    const faults: string[] = [];
    for (const [path, name] of pages) {
      await visit(page, `${stage.url}${path}`);
      const check = async (what: string) => {
        const violations = await stage.axeViolations(page);
        faults.push(...violations.map((violation) => `${what}: ${violation}`));
      };
      await check(name);
      if (await scrollsSideways(page)) faults.push(`${name}: scrolls sideways`);
      if (pictures !== undefined) {
        const suffix = look === 'light' ? '' : `-${look}`;
        await page.screenshot({ path: join(pictures, `${name}${suffix}.png`), fullPage: true });
      }
      for await (const button of openDialogues(page, name)) await check(`${name}, ${button}`);
    }
    await page.context().close();
    expect(faults).toEqual([]);
  });
});

/** `make bench-control` measures how long it takes. */
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
  await page.context().close();
  expect(files.size).toBeGreaterThan(2);
  expect(total).toBeLessThan(MAX_FIRST_LOAD_BYTES);
});
