/** Explaining captured requests in the console. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { ConsoleStage } from '../support/control/console-fixture.ts';
import { SITE_ID } from '../support/control/site-declaration.ts';
import { signRequest } from '../support/fixtures/signed-request.ts';
import { newSiteKeys } from '../support/fixtures/snapshot.ts';

const ISSUER = 'https://control.shop.example/sites/shop-control';
const XSS = '<img src=x onerror="document.title=1">\u202e';

let stage: ConsoleStage;
let page: Page;

beforeAll(async () => {
  stage = await ConsoleStage.start({ origin: 'https://api.shop.example' });
  page = await stage.operatorPage({ name: 'ada', role: 'viewer' });
});
afterAll(() => stage.stop());

/** A request that was changed under way. Its key is none of the site's. */
function capture(ageSeconds: number) {
  const nowSeconds = Math.floor(Date.now() / 1000) - ageSeconds;
  const plan = { caller: 'billing', route: 'orders-read', nowSeconds } as const;
  const { wire } = signRequest(newSiteKeys(), plan, {
    claims: (claims) => Object.assign(claims, { iss: ISSUER }),
    transcript: (transcript) => Object.assign(transcript, { issuer: ISSUER, authSite: SITE_ID }),
    received: (sent) => ({ ...sent, target: '/v1/orders/18' }),
  });
  const { authority, headers, method, scheme, target: path } = wire;
  return { method, scheme, authority, path, headers: headers.map(({ name, value }) => `${name}: ${value}`) };
}

const event = {
  event: 'proofgate.decision',
  time: '2026-11-21T04:00:00Z',
  outcome: 'denied',
  reason: 'bundle_route_missing',
  detail: 'no_match',
};

const input = () => page.getByLabel('Audit line, decision ID, signed headers or captured request');

async function explain(request: object): Promise<void> {
  await page.goto(`${stage.url}/sites/${SITE_ID}/explain`);
  await input().fill(JSON.stringify(request));
  await page.getByRole('button', { name: 'Explain' }).click();
}

/** Texts of a table's rows. */
function rowsOf(label: string): Promise<readonly string[]> {
  return page.getByRole('region', { name: label }).locator('tbody tr').allInnerTexts();
}

describe('explain a request', () => {
  test('shows the steps, the line that differs, the rule that matches and what to do', async () => {
    await explain(capture(3600));
    await page.getByRole('heading', { name: 'Result' }).waitFor();
    const steps = await rowsOf('Steps');
    expect(
      steps.map((step) => /passed|failed|not reached|would pass/i.exec(step)?.[0].toLowerCase()),
    ).toEqual([...Array(4).fill('passed'), 'failed', ...Array(2).fill('not reached')]);
    expect(steps[4]).toContain('key_unknown');
    const [line, ...others] = await rowsOf('Lines that differ');
    expect(others).toEqual([]);
    expect(line).toContain('target');
    expect(line).toContain('path segment 3');
    expect(await rowsOf('Caller rules')).toEqual([expect.stringMatching(/matches/i)]);
    const todo = page.getByRole('alert').filter({ hasText: 'What to do' });
    expect(await todo.innerText()).toMatch(/^What to do\s+\p{Lu}/u);
    expect(await stage.axeViolations(page)).toEqual([]);
    // A result beside another request would be taken for that one's.
    await input().fill('{}');
    expect(await page.getByRole('heading', { name: 'Result' }).count()).toBe(0);
  });

  test('says why a proof that could still be used is rejected', async () => {
    await explain(capture(0));
    const alert = page.getByRole('alert');
    await alert.getByText('proof_not_expired').waitFor();
    expect(await page.getByRole('heading', { name: 'Result' }).count()).toBe(0);
  });

  test('takes a file, and shows the texts of others as text', async () => {
    await explain(event);
    await page.getByRole('heading', { name: 'Result' }).waitFor();
    const answer = page.waitForResponse(/\/explanations$/);
    await page.getByRole('button', { name: 'Explain' }).click();
    const { report } = (await (await answer).json()) as { report: object };
    const decision = { outcome: 'denied', reason: XSS, detail: XSS, status: 403 };
    const denial = {
      event,
      explanation: { ...report, decision, hint: XSS },
      text: [XSS],
      header_lengths: [],
    };
    await page.locator('input[type=file]').setInputFiles({
      name: 'denial.json',
      mimeType: 'application/json',
      buffer: Buffer.from(JSON.stringify(denial)),
    });
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByText('As the verifier explained it').waitFor();
    expect(await page.locator('main img').count()).toBe(0);
    expect(await page.getByText('⟨U+202E⟩').count()).toBeGreaterThan(2);
  });

  test('takes what sign printed, and what the gateway received in its place', async () => {
    const { method, scheme, authority, headers } = capture(3600);
    const printed = headers.filter((line) => /^(?:authorization|x-proofgate-[a-z]+):/i.test(line));
    await page.goto(`${stage.url}/sites/${SITE_ID}/explain`);
    await input().fill(printed.join('\n'));
    const url = page.getByLabel('URL that the gateway received');
    const signed = await url.inputValue();
    expect(signed).toMatch(new RegExp(`^${scheme}://${authority}/v1/orders/17\\?`));
    expect(await page.getByLabel('Method').inputValue()).toBe(method);
    expect(Date.parse(await page.getByLabel('Time in UTC').inputValue())).toBeLessThan(
      Date.now() - 3_000_000,
    );
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByRole('heading', { name: 'Result' }).waitFor();
    expect(await rowsOf('Lines that differ')).toEqual([]);
    await url.fill('/v1/orders/18');
    expect(await page.getByRole('button', { name: 'Explain' }).isDisabled()).toBe(true);
    await url.fill(signed.replace('/17', '/18'));
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByRole('region', { name: 'Lines that differ' }).waitFor();
    expect(await rowsOf('Lines that differ')).toEqual([expect.stringContaining('path segment 3')]);
    expect(await stage.axeViolations(page)).toEqual([]);
  });

  test('completes an audit line with its request', async () => {
    const { method, scheme, authority, headers, path } = capture(3600);
    await explain(event);
    await page.getByText('To see more').waitFor();
    await page.getByLabel('Method').fill(method);
    await page.getByLabel('URL that the gateway received').fill(`${scheme}://${authority}${path}`);
    await page.getByLabel('Headers that the gateway received').fill(headers.join('\n'));
    const sent = page.waitForRequest(/\/explanations$/);
    await page.getByRole('button', { name: 'Explain' }).click();
    const { request } = (await sent).postDataJSON() as { request: string };
    expect(JSON.parse(request)).toEqual({ event, method, scheme, authority, path, headers });
    await page.getByText('The recorded decision is').waitFor();
  });

  test('says what a decision ID alone cannot', async () => {
    await page.goto(`${stage.url}/sites/${SITE_ID}/explain`);
    await input().fill('5D9279F4-3c12-4ca5-8bc3-42ef88789323');
    const command = 'proofgate explain --decision-id 5d9279f4-3c12-4ca5-8bc3-42ef88789323';
    await page.getByText(command).waitFor();
    expect(await page.getByRole('button', { name: 'Explain' }).isDisabled()).toBe(true);
  });
});
