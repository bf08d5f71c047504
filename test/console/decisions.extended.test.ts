/**
 * Charts of decisions: Home, a route's denials by reason with what each means, targets, and the last step of Set-up. Also in dark
 * and on a narrow screen. With PROOFGATE_TEST_SCREENSHOTS it takes pictures.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import LibsqlDatabase from 'libsql';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { DecisionCounts, type OutcomeCounts } from '../../src/bundle/format/decision-summary.ts';
import { summaryRow } from '../../src/control/decisions/collected-summaries.ts';
import { DATABASE_FILE } from '../../src/control/store/sqlite.ts';
import { jsonObjects } from '../../src/protocol/strict-json.ts';
import { ConsoleStage } from '../support/control/console-fixture.ts';
import { SITE_ID } from '../support/control/site-declaration.ts';
import { scrollsSideways } from './every-page.ts';

const DAY_MINUTES = 24 * 60;
const KEY_UNKNOWN = 'invalid_request_proof/key_unknown';
const LOOKS: { readonly [name: string]: BrowserContextOptions } = {
  light: { colorScheme: 'light', viewport: { width: 1440, height: 900 } },
  dark: { colorScheme: 'dark', viewport: { width: 1440, height: 900 } },
  narrow: { colorScheme: 'light', viewport: { width: 390, height: 844 } },
  'narrow-dark': { colorScheme: 'dark', viewport: { width: 390, height: 844 } },
};
const pictures = process.env.PROOFGATE_TEST_SCREENSHOTS;

let stage: ConsoleStage;
let page: Page;

beforeAll(async () => {
  stage = await ConsoleStage.start({ targets: ['edge-1', 'edge-2'] });
  page = await stage.adminPage();
});
afterAll(() => stage.stop());

const visit = (path: string) => page.goto(`${stage.url}${path}`);
const ofSite = (path: string) => `/sites/${SITE_ID}${path}`;
const figure = (title: string) => page.getByRole('figure', { name: title });
const step = () => page.getByRole('listitem').filter({ hasText: 'First allowed request' });

test('before any report, Home says that nothing is known, and Set-up is open', async () => {
  await visit('/');
  await page.getByText(`${SITE_ID}: no target has reported in this period.`).waitFor();
  await visit(ofSite('/setup'));
  await step().getByText('reports it within two minutes').waitFor();
});

test('Home shows allowed and denied requests of an hour and of a day, also as a table', async () => {
  await fill();
  await visit('/');
  await figure(SITE_ID).getByRole('listitem').filter({ hasText: 'allowed' }).waitFor();
  const hour = await legend(SITE_ID);
  expect(Object.keys(hour)).toEqual(['allowed', 'denied', 'observed']);
  await figure(SITE_ID).getByRole('link', { name: 'denied' }).click();
  expect(Object.keys(await legend('Last hour, by reason'))).toContain('jti_replay');
  await page.goBack();
  await page.getByLabel('Period').selectOption('day');
  await figure(SITE_ID).getByText('As a table').click();
  const table = figure(SITE_ID).getByRole('table');
  await table.waitFor();
  expect(await table.getByRole('row').count()).toBe(25);
  expect((await legend(SITE_ID)).allowed).toBeGreaterThan(Number(hour.allowed) * 10);
});

test("a route's denials lead to what the reason means, and to Explain", async () => {
  await visit(ofSite('/clients?view=routes'));
  await page.getByRole('link', { name: 'orders-read' }).click();
  expect(Object.keys(await legend('Denials by reason'))).toEqual([
    KEY_UNKNOWN,
    'jti_replay',
    `missing_context (observed)`,
  ]);
  await figure('Denials by reason').getByRole('link', { name: KEY_UNKNOWN }).click();
  await page.getByText('the bundle has no key with this kid').waitFor();
  expect(Object.keys(await legend('Last hour, by reason'))).toContain('jti_replay');
  await page.getByRole('link', { name: 'Explain a request, step by step' }).click();
  await page.getByRole('heading', { level: 1, name: 'Explain a request' }).waitFor();
});

test('Targets shows who reported, and Set-up is complete', async () => {
  await visit(ofSite('/targets'));
  expect(Object.keys(await legend('Decisions a minute, by target'))).toEqual([
    'reported by edge-1',
    'reported by edge-2',
  ]);
  await visit(ofSite('/setup'));
  await step().getByText('done').waitFor();
});

test.each(Object.keys(LOOKS))('every chart is accessible and fits the screen: %s', async (look) => {
  const looked = await stage.operatorPage({ name: `ada-${look}`, role: 'admin', browser: LOOKS[look] ?? {} });
  const faults: string[] = [];
  const pages = {
    home: '/',
    route: ofSite('/routes/orders-read'),
    reason: ofSite(`/reasons/${encodeURIComponent(KEY_UNKNOWN)}`),
    denials: ofSite('/reasons'),
    targets: ofSite('/targets'),
  };
  for (const [name, path] of Object.entries(pages)) {
    await looked.goto(`${stage.url}${path}`);
    await looked.locator('figure canvas').first().waitFor();
    for (const violation of await stage.axeViolations(looked)) faults.push(`${name}: ${violation}`);
    for (const table of await looked.getByText('As a table').all()) await table.click();
    for (const violation of await stage.axeViolations(looked)) faults.push(`${name}, table: ${violation}`);
    if (await scrollsSideways(looked)) faults.push(`${name}: scrolls sideways`);
    for (const table of await looked.getByText('As a table').all()) await table.click();
    if (pictures !== undefined) {
      await looked.screenshot({ path: join(pictures, `${name}-${look}.png`), fullPage: true });
    }
  }
  await looked.context().close();
  expect(faults).toEqual([]);
});

/** Numbers by name. */
async function legend(title: string): Promise<Readonly<Record<string, number>>> {
  const entries = figure(title).getByRole('listitem');
  await entries.first().waitFor();
  const texts = await entries.allInnerTexts();
  return Object.fromEntries(
    texts.map((text) => {
      const end = text.lastIndexOf(':');
      return [text.slice(0, end).trim(), Number(text.slice(end + 1))];
    }),
  );
}

/** Writes what two targets would have reported in a day. */
async function fill(): Promise<void> {
  const { items } = await stage.control.get(`/v1/sites/${SITE_ID}/targets`);
  const targetIds = jsonObjects(items).map(({ target_id: id }) => String(id));
  const database = new LibsqlDatabase(join(stage.control.dataDirectory, DATABASE_FILE));
  const insert = database.prepare(
    `insert into decision_summary (span_seconds, start_seconds, target_id, site_id, allowed, denied, observed, dropped, summary)
      values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const now = Math.floor(Date.now() / 60_000) * 60;
  database.exec('begin');
  for (const [number, targetId] of targetIds.entries()) {
    const hours = new Map<number, DecisionCounts>();
    const put = (spanSeconds: number, startSeconds: number, counts: DecisionCounts) => {
      const place = { siteId: SITE_ID, targetId, spanSeconds, startSeconds };
      const { allowed, denied, dropped, observed, summary } = summaryRow(place, counts.summary());
      const values = [allowed, denied, observed, dropped, summary];
      insert.run(spanSeconds, startSeconds, targetId, SITE_ID, ...values);
    };
    for (let minute = 0; minute < DAY_MINUTES; minute++) {
      // No target reported around noon.
      if (minute > 700 && minute < 760) continue;
      const startSeconds = now - (minute + 1) * 60;
      const counts = new DecisionCounts();
      counts.merge(reported(minute, number));
      put(60, startSeconds, counts);
      const hour = startSeconds - (startSeconds % 3600);
      const sum = hours.get(hour) ?? new DecisionCounts();
      sum.merge(counts.summary());
      hours.set(hour, sum);
    }
    for (const [hour, counts] of hours) put(3600, hour, counts);
  }
  database.exec('commit');
  database.close();
}

function reported(minute: number, target: number) {
  const wave = Math.round(200 + 150 * Math.sin(minute / 90) + 20 * Math.sin(minute / 3)) + 40 * target;
  const counts: OutcomeCounts = {
    allowed: wave,
    denied: { [KEY_UNKNOWN]: Math.round(wave / 20), ...(minute % 17 === 0 ? { jti_replay: 30 } : {}) },
    observed: { missing_context: minute % 5 },
  };
  const empty = new DecisionCounts().summary();
  return {
    ...empty,
    routes: [{ route_id: 'orders-read', ...counts }],
    methods: { GET: wave },
    latency: empty.latency.with(2, wave),
  };
}
