/** Every act that gives or takes access asks first, in one dialogue, which takes a reason for the audit trail. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { ConsoleStage } from '../support/control/console-fixture.ts';
import { SITE_ID } from '../support/control/site-declaration.ts';
import { visit } from './every-page.ts';

let stage: ConsoleStage;
let page: Page;
let sourcePath = '';
let policyPath = '';
let offPath = '';

beforeAll(async () => {
  stage = await ConsoleStage.start();
  page = await stage.adminPage();
  const site = `/v1/sites/${SITE_ID}`;
  const issuer = stage.control.issuer.issuer;
  await stage.api.create(`${site}/blocked-subjects`, { body: { issuer, subject: 'rogue' } });
  const own = String((await stage.api.get(site)).body.issuer_url);
  await stage.api.create(`${site}/blocked-callers`, { body: { issuer: own, subject: 'client:rogue' } });
  const scope = { kind: 'installation' };
  await stage.api.create('/v1/role-grants', { body: { principal: 'group:platform', role: 'viewer', scope } });
  await stage.api.create('/v1/access-tokens', { body: { name: 'ci', role: 'viewer', scope } });
  const [source] = await stage.control.list('sources');
  sourcePath = `/sources/${String(source?.source_id)}`;
  const [policy, other] = await stage.control.list('policies');
  policyPath = `/policies/${String(policy?.policy_id)}`;
  offPath = `/policies/${String(other?.policy_id)}`;
  await stage.api.act(`/v1/enrollment-policies/${String(other?.policy_id)}/deactivate`);
});
afterAll(() => stage.stop());

const ofSite = (path: string) => `/sites/${SITE_ID}${path}`;

const ACTS: readonly (readonly [act: string, button: string, path: () => string])[] = [
  ['a role grant', 'Grant a role', () => '/access'],
  ['the end of a role grant', 'Remove', () => '/access'],
  ['an access token', 'Create access token', () => '/access?view=tokens'],
  ['the end of an access token', 'Delete', () => '/access?view=tokens'],
  ['a block of a subject', 'Block a subject', () => ofSite('/blocked')],
  ['its end', 'Unblock', () => ofSite('/blocked')],
  ['a block of a caller', 'Block a caller', () => ofSite('/blocked?view=callers')],
  ['its end', 'Unblock', () => ofSite('/blocked?view=callers')],
  ['a policy', 'Create policy', () => ofSite('/policies')],
  ['a change of a policy', 'Edit', () => ofSite(policyPath)],
  ['a deactivation', 'Deactivate', () => ofSite(policyPath)],
  ['a reactivation', 'Reactivate', () => ofSite(offPath)],
  ['the end of a policy', 'Delete', () => ofSite(policyPath)],
  ['a suspension', 'Suspend', () => ofSite(sourcePath)],
  ['a retirement', 'Retire', () => ofSite(sourcePath)],
  ['a change of a client', 'Edit', () => ofSite('/clients')],
  ['the end of a client', 'Delete', () => ofSite('/clients')],
  ['a route', 'Create route', () => ofSite('/clients?view=routes')],
  ['a change of a route', 'Edit', () => ofSite('/clients?view=routes')],
  ['caller rules', 'Caller rules', () => ofSite('/clients?view=routes')],
  ['the end of a route', 'Delete', () => ofSite('/clients?view=routes')],
];

test.each(ACTS)('%s: %s', async (_, button, path) => {
  await visit(page, `${stage.url}${path()}`);
  await page.getByRole('button', { name: button, exact: true }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Reason, for the audit trail').fill('known');
  await dialog.getByRole('button', { name: /^As (command|site file)$/ }).click();
  await dialog.getByText('--reason known').waitFor();
  expect(await stage.axeViolations(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
});
