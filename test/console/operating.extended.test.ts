/**
 * The console in operation: two operators at once, a target that is cut off while a key is revoked, a site of many keys.
 */
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { openSqliteStore } from '../../src/control/store/sqlite.ts';
import { generateSigningKey } from '../../src/protocol/signing.ts';
import { ConsoleStage, confirm } from '../support/control/console-fixture.ts';
import { SITE_ID } from '../support/control/site-declaration.ts';
import { keyRow, mutateSite } from '../support/control/store-rows.ts';
import { freePort } from '../support/harness/free-port.ts';
import { type Service, startProofgate } from '../support/harness/sidecar.ts';

const TARGETS = ['edge-1', 'edge-2'];
/** 20 pages. */
const KEYS = 2_000;

let stage: ConsoleStage;
const verifiers = new Map<string, Service>();

beforeAll(async () => {
  stage = await ConsoleStage.start({ targets: TARGETS });
  await mkdir(pins());
  await stage.control.ctl('signing-keys', '--site', SITE_ID, '--out-dir', pins());
  for (const target of TARGETS) verifiers.set(target, await startVerifier(target));
});
afterAll(async () => {
  for (const verifier of verifiers.values()) await verifier.stop();
  await stage.stop();
});

const pins = () => join(stage.control.directory, 'pins');

/** That follows Control as the target. */
async function startVerifier(target: string): Promise<Service> {
  const { directory, controlUrl } = stage.control;
  const files = await readdir(pins());
  const keys = files.flatMap((file) => [
    file.startsWith('bundle') ? '--bundle-key' : '--freshness-key',
    join(pins(), file),
  ]);
  const state = join(directory, `state-${target}`);
  await mkdir(state);
  const admin = `127.0.0.1:${await freePort()}`;
  return startProofgate(
    [
      ...['verifier', '--auth-site', SITE_ID, '--replay', 'memory', '--state-dir', state, ...keys],
      ...['--listen', `unix:${join(directory, `${target}.sock`)}`, '--admin-listen', admin],
      ...['--control-url', controlUrl, '--control-token-file', join(directory, `${target}.token`)],
    ],
    { readyUrl: `http://${admin}/readyz` },
  );
}

async function open(page: Page, path: string, title: string): Promise<void> {
  await page.goto(`${stage.url}/sites/${SITE_ID}/${path}`);
  await page.getByRole('heading', { name: title, level: 1 }).waitFor();
}

test('two operators approve at once: one key, and each learns the state', async () => {
  await stage.control.tryEnroll('reviewed', { flags: ['--wait-for-activation=false'] });
  const operators = [
    await stage.operatorPage({ name: 'ada', role: 'approver' }),
    await stage.operatorPage({ name: 'grace', role: 'approver' }),
  ];
  const watcher = await stage.operatorPage({ name: 'vera', role: 'viewer' });
  for (const page of [...operators, watcher]) {
    await open(page, 'approvals', 'Approvals');
    await page.getByText('1 shown').waitFor();
  }
  for (const page of operators) {
    await page.getByLabel('Select all').check();
    await page.getByRole('button', { name: 'Approve' }).click();
  }
  await Promise.all(operators.map((page) => confirm(page, 'Approve')));
  // The watcher's page refreshes by itself.
  for (const page of [...operators, watcher]) await page.getByText('No workload waits').waitFor();
  await Promise.any(operators.map((page) => page.getByRole('alert').waitFor()));
  expect(await stage.control.list('keys')).toHaveLength(1);
  const told = await Promise.all(operators.map((page) => page.getByRole('alert').allTextContents()));
  expect(told.flat()).toEqual([expect.stringMatching(/It is now issued by /)]);
  for (const page of [...operators, watcher]) await page.context().close();
});

test('a key is revoked while a target is cut off: the pages show who has it and who has not', async () => {
  const page = await stage.adminPage();
  const { keyId } = await stage.control.enroll('billing');
  verifiers.get('edge-2')?.signal('SIGSTOP');
  await open(page, `keys/${keyId}`, 'billing');
  await page.getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('dialog').getByLabel('Reason').fill('lost');
  await confirm(page, 'Revoke');
  await page
    .getByRole('link', { name: 'See which targets (verifiers with one token) have the newest revision' })
    .click();
  const state = (target: string, value: string) =>
    page.getByRole('row').filter({ hasText: target }).getByText(value, { exact: true }).waitFor();
  await state('edge-1', 'current');
  await state('edge-2', 'behind');
  await page.getByText('1 of 2').waitFor();
  verifiers.get('edge-2')?.signal('SIGCONT');
  await state('edge-2', 'current');
  await page.context().close();
});

test(`${KEYS} keys: the page opens, finds one by its subject, and pages`, async () => {
  await stage.control.stopControl();
  const { dataDirectory } = stage.control;
  const store = await openSqliteStore({ dataDirectory, nowMs: Date.now });
  const expiresAtSeconds = Math.floor(Date.now() / 1000) + 3600;
  await mutateSite(store, SITE_ID, async (tx) => {
    for (let number = 1; number <= KEYS; number += 1) {
      const { publicKey } = generateSigningKey('Ed25519');
      await tx.keys.add(
        keyRow(SITE_ID, {
          publicJwk: JSON.stringify(publicKey.jwk),
          thumbprint: publicKey.thumbprint,
          expiresAtSeconds,
          verifiedSubject: `system:serviceaccount:prod:worker-${number}`,
        }),
      );
    }
  });
  await store.close();
  await stage.control.startControl();

  const page = await stage.adminPage();
  await open(page, 'keys', 'Keys');
  await page.getByText('100 on this page').waitFor();
  const first = await page.locator('tbody a').first().textContent();
  await page.getByRole('button', { name: 'Next page' }).click();
  await page.getByRole('button', { name: 'First page' }).waitFor();
  await page.locator('tbody').getByText(String(first)).waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'First page' }).click();
  await page.locator('tbody').getByText(String(first)).waitFor();
  await page.getByLabel('Subject contains').fill(`worker-${KEYS}`);
  await page.getByText('1 shown').waitFor();
  await page.locator('tbody').getByText(`worker-${KEYS}`).waitFor();
  await page.context().close();
});
