/**
 * Measures what open consoles cost Control: 5 enrollments a second, with no console and with 20 in the system's Chromium, each
 * showing the keys. Rounds alternate, so that other load on the machine affects both alike.
 */
import { type Browser, chromium, type Page } from 'playwright-core';
import { SITE_ID } from '../../test/support/control/site-declaration.ts';
import { SteadyEnrollments } from './enroll-steadily.ts';
import { MeasuredSite } from './measured-site.ts';

export const CONSOLES = 20;
export const ENROLLED_PER_SECOND = 5;
export const CONSOLE_ROUNDS = 4;
const ROUND_SECONDS = 15;
const KEYS = 1000;

export interface ConsoleFigures {
  /** Shares of one core that Control used, by round. */
  readonly without: readonly number[];
  readonly withConsoles: readonly number[];
}

export async function measureOpenConsoles(): Promise<ConsoleFigures> {
  const site = await MeasuredSite.open({ keys: KEYS, targets: 1 });
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium-headless-shell',
    args: ['--no-sandbox'],
  });
  try {
    await runRound(site);
    const without: number[] = [];
    const withConsoles: number[] = [];
    for (let round = 0; round < CONSOLE_ROUNDS; round++) {
      without.push(await runRound(site));
      const pages = await openConsoles(browser, site);
      withConsoles.push(await runRound(site));
      await Promise.all(pages.map((page) => page.context().close()));
    }
    return { without, withConsoles };
  } finally {
    await browser.close();
    await site.close();
  }
}

/** Each with cookies of its own, as on a computer of its own. */
async function openConsoles(
  browser: Browser,
  { stage, bootstrapToken }: MeasuredSite,
): Promise<readonly Page[]> {
  const pages: Page[] = [];
  for (let opened = 0; opened < CONSOLES; opened++) {
    const page = await (await browser.newContext()).newPage();
    await page.goto(`${stage.controlUrl}/console/sites/${SITE_ID}/keys`);
    await page.getByLabel('Bootstrap token').fill(bootstrapToken);
    await page.getByRole('button', { name: 'Sign in with the token' }).click();
    await page.getByRole('heading', { name: 'Keys' }).waitFor();
    pages.push(page);
  }
  return pages;
}

/** @returns the share of one core that Control used */
async function runRound(site: MeasuredSite): Promise<number> {
  const enrollments = new SteadyEnrollments(site, ENROLLED_PER_SECOND * ROUND_SECONDS);
  const [startedMs, startedCpuMs] = [performance.now(), site.cpuMs];
  await enrollments.run(ENROLLED_PER_SECOND);
  return (site.cpuMs - startedCpuMs) / (performance.now() - startedMs);
}
