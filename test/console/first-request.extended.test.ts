/**
 * From an empty database to the first allowed request by clicks alone: an operator follows Home and Set-up, and runs what they
 * show, with a real verifier and Envoy, on PostgreSQL. The other tests of the console are on SQLite.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { ConsoleStage } from '../support/control/console-fixture.ts';
import { type Child, startChild } from '../support/harness/child.ts';
import { envoyVersions, type RunningEnvoy, startEnvoy } from '../support/harness/envoy.ts';
import { closeAtOnce, patient } from '../support/harness/envoy-config.ts';
import { freePort } from '../support/harness/free-port.ts';
import { TestPostgresServer } from '../support/harness/postgres-server.ts';
import { proofgateCommand } from '../support/harness/program.ts';
import { startUpstream, type Upstream } from '../support/harness/upstream.ts';
import { waitFor } from '../support/wait.ts';

const AUDIENCE = 'proofgate-shop';

let postgres: TestPostgresServer;
let upstream: Upstream;
let directory: string;
let envoy: RunningEnvoy;
let verifier: Child | undefined;
let stage: ConsoleStage;
let page: Page;

beforeAll(async () => {
  postgres = await TestPostgresServer.start();
  directory = await mkdtemp(join(tmpdir(), 'pg-first-request-'));
  upstream = await startUpstream();
  envoy = await startEnvoy(envoyVersions.at(-1) ?? '', {
    verifier: { kind: 'unix', path: join(directory, 'v.sock') },
    upstream: { host: upstream.host, port: upstream.port },
    edits: [closeAtOnce, ...patient],
  });
  const [command, ...args] = Object.values(proofgateCommand([])).flat();
  const words = [command, ...args].map((word) => `'${word}'`).join(' ');
  await program('proofgate', `exec ${words} "$@"`);
});
afterAll(async () => {
  await verifier?.stop();
  await envoy.stop();
  await upstream.stop();
  await stage.stop();
  await postgres.stop();
  await rm(directory, { recursive: true });
});

/** On the path of what a page shows. */
async function program(name: string, script: string): Promise<void> {
  await mkdir(join(directory, 'bin'), { recursive: true });
  await writeFile(join(directory, 'bin', name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
}

/** Runs in a shell in a folder of its own what a page showed. */
async function inShell(folder: string, script: string): Promise<Child> {
  const cwd = join(directory, folder);
  await mkdir(cwd, { recursive: true });
  const env = { PATH: `${join(directory, 'bin')}:${process.env.PATH}` };
  return startChild({ command: 'sh', args: ['-c', script], cwd, env });
}

async function succeeds(folder: string, script: string): Promise<Child> {
  const child = await inShell(folder, script);
  const { code } = await child.exited;
  if (code !== 0) throw new Error(`exit ${code}: ${[...child.stdoutLines, ...child.stderrLines].join('\n')}`);
  return child;
}

const dialog = () => page.getByRole('dialog');
const submit = (name: string) => dialog().getByRole('button', { name, exact: true }).click();
const step = (title: string): Locator =>
  page
    .getByRole('listitem')
    .filter({ has: page.getByRole('heading', { name: new RegExp(`^\\d+\\. ${title}$`) }) });
const badge = (title: string, state: string): Promise<void> =>
  step(title).getByText(state, { exact: true }).waitFor();
const fill = (label: string, value: string) => dialog().getByLabel(label).fill(value);

async function backToSetUp(): Promise<void> {
  await page.getByRole('navigation').getByRole('link', { name: 'Set-up' }).click();
  await page.getByRole('heading', { name: 'Set-up', level: 1 }).waitFor();
}

/** What the button puts into the clipboard. */
async function copied(within: Locator, name: string): Promise<string> {
  await within.getByRole('button', { name, exact: true }).click();
  await within.getByRole('button', { name: 'Copied' }).first().waitFor();
  return String(await page.evaluate('navigator.clipboard.readText()'));
}

async function createSite(): Promise<void> {
  await step('Site').getByRole('button', { name: 'Create site' }).click();
  await fill('Site ID', 'shop');
  await fill('Trust domain', 'shop.example');
  await fill('Origins', 'http://api.shop.example');
  await submit('Create site');
  await page.getByRole('heading', { name: 'Set-up', level: 1 }).waitFor();
}

async function createSource(): Promise<void> {
  const { issuer, jwksUri } = stage.control.issuer;
  await badge('Source', 'next');
  await step('Source').getByRole('link').click();
  await page.getByRole('button', { name: 'Create source' }).click();
  await fill('Name', 'production cluster');
  await fill('Issuer', issuer);
  await fill('URL of its key set', jwksUri);
  await fill('Audience', AUDIENCE);
  await submit('Create draft');
  await page.getByRole('button', { name: 'Validate', exact: true }).click();
  await page.getByRole('button', { name: 'Activate', exact: true }).click();
  await fill('Scope of the intended cluster', issuer.replace('https://', ''));
  await submit('Activate');
  await page.getByRole('button', { name: 'Suspend' }).waitFor();
  await backToSetUp();
  for (const title of ['Source', 'Source validated', 'Source active']) await badge(title, '✓ done');
}

async function createClientAndRoute(): Promise<void> {
  await step('Client').getByRole('button', { name: 'Create client' }).click();
  await fill('Client ID', 'billing');
  await submit('Create client');
  await badge('Client', '✓ done');
  await step('Route and grant').getByRole('button', { name: 'Create route' }).click();
  await fill('Route ID', 'orders-read');
  await fill('Path template', '/v1/orders/{order_id}');
  await dialog().getByLabel('Audience').first().fill('https://api.shop.example');
  await submit('Create route');
  await step('Route and grant').getByRole('link').click();
  await page.getByLabel('Access of billing to orders-read').selectOption('read');
  await page.getByRole('dialog').getByRole('button', { name: 'Grant read' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await backToSetUp();
  await badge('Route and grant', '✓ done');
}

async function createPolicy(): Promise<void> {
  await step('Policy').getByRole('link').click();
  await page.getByRole('button', { name: 'Create policy' }).click();
  await fill('Name', 'billing in prod');
  await fill('Subject', 'system:serviceaccount:prod:billing');
  await fill('Client', 'billing');
  await submit('Create');
  await page.getByRole('heading', { name: 'billing in prod', level: 1 }).waitFor();
  await backToSetUp();
  await badge('Policy', '✓ done');
}

async function startVerifier(): Promise<void> {
  await step('Target').getByRole('button', { name: 'Create target' }).click();
  await fill('Name', 'gateway');
  await submit('Create target');
  const script = await copied(dialog(), 'Copy commands');
  await submit('I have saved it');
  const port = await freePort();
  const ports = `--listen unix:${join(directory, 'v.sock')} --admin-listen 127.0.0.1:${port}`;
  // Without a shell around it, so that it can be stopped.
  verifier = await inShell('gateway', `${script.replace('proofgate verifier', 'exec $&')} ${ports}`);
  await badge('Target', '✓ done');
}

async function enroll(): Promise<void> {
  const subject = { namespace: 'prod', serviceAccount: 'billing', audience: AUDIENCE };
  // What a cluster answers, if it is asked for the right token.
  const asked = 'create token billing --namespace prod --audience proofgate-shop';
  const answer = `[ "$*" = '${asked}' ] && echo '${stage.control.issuer.token(subject)}'`;
  await program('kubectl', answer);
  await succeeds('workload', await copied(step('Enrollment'), 'Copy'));
  for (const title of ['Enrollment', 'Key', 'Propagated']) await badge(title, '✓ done');
}

test('from an empty Control to the first allowed request', async () => {
  stage = await ConsoleStage.start({ isEmpty: true, databaseUrl: await postgres.createDatabase() });
  page = await stage.adminPage({ permissions: ['clipboard-read', 'clipboard-write'] });
  await createSite();
  await createSource();
  await createClientAndRoute();
  await createPolicy();
  await startVerifier();
  await enroll();

  await badge('First allowed request', 'next');
  const command = await copied(step('First allowed request'), 'Copy');
  const sent = command.replace('GATEWAY:PORT', `${envoy.host}:${envoy.port}`);
  const answer = await waitFor('the verifier to accept requests', async () => {
    const { exited, stdoutLines } = await inShell('workload', `${sent} --include`);
    await exited;
    const isFenced = stdoutLines.some((line) => line.includes('"detail":"fenced"'));
    return isFenced ? undefined : stdoutLines;
  });
  expect(answer[0]).toMatch(/^HTTP\/1\.1 200 /);
  expect(upstream.requests).toHaveLength(1);
});
