/** Finds every page as an operator does: by the navigation, and by the rows of lists. */
import type { Page } from 'playwright-core';
import type { ConsoleStage } from '../support/control/console-fixture.ts';
import { SITE_ID } from '../support/control/site-declaration.ts';

/** The global that a hostile text sets when a part of it runs. */
export const RAN = 'ran';

/** Names by address below `/console`: of each page in the navigation, and of the first row's page of each list. */
export async function everyPage(stage: ConsoleStage, page: Page): Promise<ReadonlyMap<string, string>> {
  await page.goto(`${stage.url}/sites/${encodeURIComponent(SITE_ID)}/keys`);
  await settled(page);
  const found = new Map<string, string>();
  for (const link of await linksOf(page, 'nav')) found.set(link, nameOf(link));
  for (const link of [...found.keys()]) {
    await visit(page, `${stage.url}${link}`);
    const [first] = await linksOf(page, 'tbody tr:first-child');
    if (first !== undefined && !found.has(first)) found.set(first, `${nameOf(link)}-one`);
  }
  return found;
}

/** Below `/console`. */
export async function linksOf(page: Page, within: string): Promise<readonly string[]> {
  const links: unknown = await page.evaluate(
    `[...document.querySelectorAll(${JSON.stringify(`${within} a[href]`)})].map(({ href }) => new URL(href).pathname)`,
  );
  return (Array.isArray(links) ? links.map(String) : []).map((path) => path.replace(/^\/console/, ''));
}

function nameOf(path: string): string {
  return path.split('/').at(-1) || 'home';
}

/** Buttons that open no dialogue. */
const WITHOUT =
  /^(?:Copy.*|More|Less|Choose file|Download .*|Export .*|Validate.*|Next page|First page|Filters and order.*|Order|)$/;

/** Those of the page itself, by name; of several with one name the last. */
async function buttonsOf(page: Page): Promise<ReadonlyMap<string, number>> {
  const names: unknown = await page.evaluate(
    `[...document.querySelectorAll('main button')].map((button) => button.disabled || !button.checkVisibility() || button.matches('th button, [role=tab]') ? '' : button.getAttribute('aria-label') ?? button.textContent)`,
  );
  const all = Array.isArray(names) ? names.map(String) : [];
  return new Map(all.map((name, at) => [name, at] as const).filter(([name]) => !WITHOUT.test(name)));
}

/** Presses each button, and gives its name while what it opens is open. */
export async function* openDialogues(page: Page, what: string): AsyncGenerator<string> {
  for (const name of (await buttonsOf(page)).keys()) {
    const at = (await buttonsOf(page)).get(name);
    if (at === undefined) continue;
    await page.locator('main button').nth(at).click();
    const dialogue = page.getByRole('dialog');
    if (!/^As /.test(name)) {
      await dialogue.waitFor().catch(() => {
        throw new Error(`${what}: ${name} opens no dialogue`);
      });
      for (const more of await dialogue.getByRole('button', { name: /^As / }).all()) await more.click();
    }
    yield name;
    if (/^As /.test(name)) continue;
    await page.keyboard.press('Escape');
    await dialogue.waitFor({ state: 'detached' });
  }
}

/** Opens a page of the console from another one, as its links do: far quicker than to load the console again. */
export async function visit(page: Page, url: string): Promise<void> {
  await follow(page, url);
  await settled(page);
}

/** The same, whatever the page then shows. */
export async function follow(page: Page, url: string): Promise<void> {
  const { hash, pathname, search } = new URL(url);
  await page.evaluate(
    `new Promise((resolve) => {
      const router = globalThis.__TSR_ROUTER__;
      const stop = router.subscribe('onRendered', () => { stop(); resolve(); });
      router.history.push(${JSON.stringify(`${pathname}${search}${hash}`)});
    })`,
  );
}

/** Everything that the page asked for is shown. */
export async function settled(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.locator('[aria-label=Loading], [aria-busy=true]').first().waitFor({ state: 'detached' });
}

export function scrollsSideways(page: Page): Promise<unknown> {
  return page.evaluate('document.documentElement.scrollWidth > window.innerWidth');
}

/** What no page may do or hold, whatever text it shows. */
export async function foreignFaults(page: Page, what: string): Promise<readonly string[]> {
  const faults: string[] = [];
  if (await page.evaluate(`'${RAN}' in globalThis`)) faults.push(`${what}: ran`);
  const made: unknown = await page.evaluate(
    `document.querySelectorAll('img, iframe, object, embed, body script:not([src]), [onerror], [href^="javascript" i], [src^="javascript" i]').length`,
  );
  if (made !== 0) faults.push(`${what}: became an element`);
  if (await scrollsSideways(page)) faults.push(`${what}: scrolls sideways`);
  const hidden: unknown = await page.evaluate(`/[\\u202e\\u2066\\u200b]/.test(document.body.innerText)`);
  if (hidden) faults.push(`${what}: shows characters that are not seen`);
  return faults;
}
