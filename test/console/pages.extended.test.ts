/**
 * What holds for every page of the navigation, in light, dark and on a narrow screen: axe finds nothing, also in its
 * dialogues, the page does not scroll sideways, nothing is refused by the Content-Security-Policy. `make screenshots` also takes pictures, by PROOFGATE_TEST_SCREENSHOTS.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { BrowserContextOptions } from 'playwright-core';
import { ConsoleStage } from '../support/control/console-fixture.ts';
import { everyPage, openDialogues, scrollsSideways, settled } from './every-page.ts';

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
});
afterAll(() => stage.stop());

describe.each(Object.keys(LOOKS))('every page, %s', (look) => {
  test('is accessible and fits the screen', async () => {
    const page = await stage.operatorPage({ name: `ada-${look}`, role: 'admin', browser: LOOKS[look] ?? {} });
    const faults: string[] = [];
    for (const [path, name] of await everyPage(stage, page)) {
      await page.goto(`${stage.url}${path}`);
      await settled(page);
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
