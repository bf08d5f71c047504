/**
 * The four jobs of an operator, on a desk and on a telephone: approve an enrollment, revoke a key, see who has the
 * revocation, explain a denial. Each begins at Home and finds its way by what is visible, without an address. With
 * PROOFGATE_TEST_SCREENSHOTS it takes a picture of each step.
 */
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { ConsoleStage } from '../support/control/console-fixture.ts';
import { SITE_ID } from '../support/control/site-declaration.ts';
import { freePort } from '../support/harness/free-port.ts';
import { type Service, startProofgate } from '../support/harness/sidecar.ts';
import { scrollsSideways } from './every-page.ts';

const SCREENS = { desk: { width: 1440, height: 900 }, telephone: { width: 390, height: 844 } };
const TARGET = 'edge-1';
const pictures = process.env.PROOFGATE_TEST_SCREENSHOTS;

let stage: ConsoleStage;
let verifier: Service;

beforeAll(async () => {
  stage = await ConsoleStage.start({ targets: [TARGET] });
  verifier = await startVerifier();
});
afterAll(async () => {
  await verifier.stop();
  await stage.stop();
});

/** That follows Control as the target. */
async function startVerifier(): Promise<Service> {
  const { directory, controlUrl } = stage.control;
  const [pins, state] = [join(directory, 'pins'), join(directory, 'state')];
  await Promise.all([mkdir(pins), mkdir(state)]);
  await stage.control.ctl('signing-keys', '--site', SITE_ID, '--out-dir', pins);
  const keys = (await readdir(pins)).flatMap((file) => [
    file.startsWith('bundle') ? '--bundle-key' : '--freshness-key',
    join(pins, file),
  ]);
  const admin = `127.0.0.1:${await freePort()}`;
  return startProofgate(
    [
      ...['verifier', '--auth-site', SITE_ID, '--replay', 'memory', '--state-dir', state, ...keys],
      ...['--listen', `unix:${join(directory, 'verifier.sock')}`, '--admin-listen', admin],
      ...['--control-url', controlUrl, '--control-token-file', join(directory, `${TARGET}.token`)],
    ],
    { readyUrl: `http://${admin}/readyz` },
  );
}

describe.each(Object.entries(SCREENS))('on a %s', (screen, viewport) => {
  let page: Page;
  let shots = 0;

  beforeAll(async () => {
    page = await stage.operatorPage({ name: `ada-${screen}`, role: 'admin', browser: { viewport } });
    await stage.control.enroll('billing');
    await stage.control.tryEnroll('reviewed', { flags: ['--wait-for-activation=false'] });
  });
  afterAll(() => page.context().close());

  /** Presses what a sighted operator sees. */
  async function press(what: Locator): Promise<void> {
    await what.click();
    await page.locator('[aria-label=Loading], [aria-busy=true]').first().waitFor({ state: 'detached' });
    await fits();
  }

  async function fits(): Promise<void> {
    expect(await scrollsSideways(page)).toBe(false);
    shots += 1;
    if (pictures === undefined) return;
    await page.screenshot({ path: join(pictures, `job-${screen}-${String(shots).padStart(2, '0')}.png`) });
  }

  const link = (name: string | RegExp) => page.getByRole('main').getByRole('link', { name }).first();
  const dialogue = () => page.getByRole('dialog');
  /** Of the page; those of a dialogue come last. */
  const button = (name: string) => page.getByRole('button', { name, exact: true }).last();

  /** A page of the site, by the navigation. */
  async function go(name: string): Promise<void> {
    await press(link(SITE_ID));
    if (screen === 'telephone') await press(page.getByRole('button', { name: 'Navigation' }));
    await press(page.getByRole('navigation').getByRole('link', { name }));
  }

  async function home(): Promise<void> {
    await page.getByRole('banner').getByRole('link', { name: 'Proofgate' }).click();
    await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor();
    await page.getByRole('status').first().waitFor();
    await fits();
  }

  test('approve: Home names what waits, and leads to it', async () => {
    await home();
    await press(page.getByRole('status').getByRole('link', { name: /waiting/ }));
    await press(link('system:serviceaccount:prod:reviewed'));
    for (const given of ['write orders', 'POST http://api.shop.example/v1/orders'])
      await page.getByText(given).first().waitFor();
    // Opaque identifiers are folded on a telephone.
    const uid = page.locator('details').getByText('Pod uid');
    await uid.waitFor({ state: screen === 'telephone' ? 'hidden' : 'visible' });
    await press(button('Approve'));
    await dialogue().getByText('POST http://api.shop.example/v1/orders').waitFor();
    await press(dialogue().getByRole('button', { name: 'Approve' }));
    const decided = page
      .getByRole('status')
      .filter({ hasText: 'Approved. Key issued; 1 of 1 targets have it' });
    await decided.getByRole('link', { name: 'See the key' }).waitFor();
    await page.getByText('Who got this key?').waitFor();
    await fits();
  });

  test('revoke several keys, and see who has it', async () => {
    await home();
    await go('Keys');
    await page.getByLabel('Select all').check();
    await press(page.getByRole('button', { name: /^Revoke/ }));
    await dialogue().getByLabel('Reason').fill('stolen laptop');
    await press(dialogue().getByRole('button', { name: /^Revoke/ }));
    const revoked = page.getByRole('status').filter({ hasText: /^Revoked/ });
    await revoked.getByText(/Every target reported it at \d\d:\d\d:\d\d UTC/).waitFor();
    expect(await revoked.getAttribute('style')).toContain('green');
    await fits();
    await press(revoked.getByRole('link', { name: /^revocation receipt/ }).first());
    const receipt = page.getByRole('heading', { name: 'Revocation receipt' });
    await receipt.waitFor();
    const { y = viewport.height } = (await receipt.boundingBox()) ?? {};
    expect(y).toBeLessThan(viewport.height / 2);
    await fits();
    await press(link(/^See which targets/));
    await page.getByRole('row').filter({ hasText: TARGET }).getByText('current', { exact: true }).waitFor();
    await page.getByText('1 of 1').waitFor();
  });

  test('who may call a route: from its page', async () => {
    await home();
    await go('Clients and routes');
    const tabs = page.getByRole('tab');
    await tabs.first().waitFor();
    expect(await tabs.allTextContents()).toMatchObject({ 1: 'Who may call?' });
    await press(page.getByRole('tab', { name: 'Routes' }));
    await press(link('orders-write'));
    const callers = page.locator('section').filter({ hasText: 'Who may call it?' });
    await callers.getByRole('row').filter({ hasText: 'billing' }).getByText('active').waitFor();
  });

  test('which requests are denied: the navigation has the denials by reason', async () => {
    await home();
    await go('Denials');
    await page.getByRole('heading', { level: 1, name: 'Denials' }).waitFor();
  });

  test('why a request was denied: Explain takes its audit line', async () => {
    await home();
    await go('Explain a request');
    const line = {
      ...{ event: 'proofgate.decision', time: '2026-11-21T04:00:00Z', outcome: 'denied' },
      ...{ reason: 'jti_replay', decision_id: 'AAAAAAAAAAAAAAAAAAAAAA' },
    };
    await page.getByLabel('Audit line, decision ID').fill(JSON.stringify(line));
    await press(button('Explain'));
    const result = page.getByRole('heading', { name: 'Result' });
    await result.waitFor();
    const { y = viewport.height } = (await result.boundingBox()) ?? {};
    expect(y).toBeLessThan(viewport.height);
    await page.getByRole('main').getByText('jti_replay').last().waitFor();
    await fits();
  });
});

test.each([
  ['not while it is behind for less than a minute', 10_000, 'Nothing is wrong.', false],
  ['once it is behind for longer', 120_000, 'One thing needs attention.', true],
])('Home asks for attention to a target: %s', async (_, behindMs, verdict, isAmber) => {
  const page = await stage.operatorPage({ name: `ada-${behindMs}`, role: 'viewer' });
  const json = {
    ...{ site_id: SITE_ID, revision: 2, pending_enrollments: 0, policies_not_renewed: 0 },
    publishing_sources: [],
    targets: {
      ...{ attached: 1, current: 0, behind: 1, silent: 0 },
      behind_since: new Date(Date.now() - behindMs).toISOString(),
    },
  };
  await page.route('**/overview', (route) => route.fulfill({ json }));
  await page.reload();
  await page.getByRole('status').getByText(verdict).waitFor();
  const row = page.getByRole('row').getByRole('link', { name: '1 of 1 behind' });
  expect((await row.getAttribute('style'))?.includes('yellow') ?? false).toBe(isAmber);
  await page.context().close();
});

test('a bookmark of the former address of Explain leads there', async () => {
  const page = await stage.operatorPage({ name: 'ada-bookmark', role: 'viewer' });
  await page.goto(`${stage.url}/sites/${SITE_ID}/try-request?site=x`);
  await page.getByRole('heading', { level: 1, name: 'Explain a request' }).waitFor();
  expect(new URL(page.url()).pathname).toMatch(/\/explain$/);
  await page.context().close();
});
