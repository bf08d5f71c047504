/**
 * What holds for every page of the navigation, in light, dark and on a narrow screen: axe finds nothing, the page does not
 * scroll sideways, nothing is refused by the Content-Security-Policy. `make screenshots` also takes pictures, by PROOFGATE_TEST_SCREENSHOTS.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { SITE_ID } from '../e2e/control/site-declaration.ts';
import { ConsoleStage } from './console-fixture.ts';

const LOOKS: { readonly [name: string]: BrowserContextOptions } = {
  light: { colorScheme: 'light', viewport: { width: 1280, height: 800 } },
  dark: { colorScheme: 'dark', viewport: { width: 1280, height: 800 } },
  narrow: { colorScheme: 'light', viewport: { width: 360, height: 740 } },
};
const pictures = process.env.PROOFGATE_TEST_SCREENSHOTS;

let stage: ConsoleStage;

beforeAll(async () => {
  stage = await ConsoleStage.start();
  await stage.control.enroll('billing');
  await stage.control.tryEnroll('reviewed', { flags: ['--wait-for-activation=false'] });
}, 60_000);
afterAll(() => stage.stop());

describe.each(Object.keys(LOOKS))('every page, %s', (look) => {
  test('is accessible and fits the screen', async () => {
    const page = await stage.operatorPage(`ada-${look}`, 'admin', LOOKS[look]);
    const faults: string[] = [];
    for (const [path, name] of await addresses(page)) {
      await page.goto(`${stage.url}${path}`);
      await settled(page);
      const violations = await stage.axeViolations(page);
      faults.push(...violations.map((violation) => `${name}: ${violation}`));
      if (await page.evaluate('document.documentElement.scrollWidth > window.innerWidth')) {
        faults.push(`${name}: scrolls sideways`);
      }
      if (pictures !== undefined) {
        const suffix = look === 'light' ? '' : `-${look}`;
        await page.screenshot({ path: join(pictures, `${name}${suffix}.png`), fullPage: true });
      }
    }
    await page.context().close();
    expect(faults).toEqual([]);
  }, 120_000);
});

/** Of each page in the navigation, and of the first row's page of each list. */
async function addresses(page: Page): Promise<ReadonlyMap<string, string>> {
  await page.goto(`${stage.url}/sites/${SITE_ID}/keys`);
  await settled(page);
  const found = new Map<string, string>();
  for (const link of await linksOf(page, 'nav')) found.set(link, nameOf(link));
  for (const link of [...found.keys()]) {
    await page.goto(`${stage.url}${link}`);
    await settled(page);
    const [first] = await linksOf(page, 'tbody tr:first-child');
    if (first !== undefined && !found.has(first)) found.set(first, `${nameOf(link)}-one`);
  }
  return found;
}

/** Below `/console`. */
async function linksOf(page: Page, within: string): Promise<readonly string[]> {
  const links: unknown = await page.evaluate(
    `[...document.querySelectorAll(${JSON.stringify(`${within} a[href]`)})].map(({ href }) => new URL(href).pathname)`,
  );
  return (Array.isArray(links) ? links.map(String) : []).map((path) => path.replace(/^\/console/, ''));
}

function nameOf(path: string): string {
  return path.split('/').at(-1) || 'home';
}

/** Everything that the page asked for is shown. */
async function settled(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.locator('[aria-label=Loading]').first().waitFor({ state: 'detached' });
}
