/**
 * Script and markup in every text that a workload or an operator controls: on every page, with every
 * dialogue open, nothing of it runs, becomes an element or leads anywhere, and no page gets wider than the screen.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import type { ControlClient } from '../../src/cli/ctl/client/control-client.ts';
import { jsonObjects } from '../../src/protocol/strict-json.ts';
import { ConsoleStage } from '../support/control/console-fixture.ts';
import { AUDIENCE, SITE_ID } from '../support/control/site-declaration.ts';
import { makeSigner } from '../support/fixtures/token-signer.ts';
import { everyPage, foreignFaults, linksOf, openDialogues, RAN, settled, visit } from './every-page.ts';

/** Visible ASCII, as identifiers are; 500 characters without a place to break the line. */
const NAME =
  `"><img/src=x/onerror=${RAN}=1><script>${RAN}=1</script>{{constructor.constructor('${RAN}=1')()}}'$(${RAN})'`.padEnd(
    500,
    'W',
  );
/** Display text, of up to 128 characters. */
const TEXT =
  `<img src=x onerror=${RAN}=1>"><script>${RAN}=1</script>{{constructor.constructor('${RAN}=1')()}} `.padEnd(
    128,
    'W',
  );
const URL_TEXT = `javascript:${RAN}=1//${NAME}`.slice(0, 500);
const OPERATOR = `<img src=x onerror=${RAN}=1>`;
const SITE = `/v1/sites/${SITE_ID}`;

let stage: ConsoleStage;
let page: Page;

beforeAll(async () => {
  stage = await ConsoleStage.start();
  await fill(stage.api);
  const browser = { viewport: { width: 360, height: 740 }, userAgent: NAME };
  page = await stage.operatorPage({ name: OPERATOR, role: 'admin', browser });
});
afterAll(() => stage.stop());

async function fill(api: ControlClient): Promise<void> {
  const [source] = await api.list(`${SITE}/sources`);
  const [environment] = await api.list('/v1/environments');
  const environmentPath = `/v1/environments/${String(environment?.environment_id)}`;
  await api.patch(environmentPath, { body: { name: TEXT }, etag: (await api.get(environmentPath)).etag });
  const { body: site, etag } = await api.get(SITE);
  await api.patch(SITE, { body: { display_name: TEXT }, etag });
  await api.create(`${SITE}/clients`, {
    body: {
      client_id: NAME,
      subject: URL_TEXT,
      context: { [NAME.slice(0, 60)]: NAME },
    },
  });
  await api.create(`${SITE}/routes`, {
    body: {
      route_id: NAME,
      definition: {
        method: 'GET',
        path_template: `/${NAME.replaceAll(/[{}]/g, '')}`,
        audience: URL_TEXT,
        freshness_class: 'realtime',
        resource: NAME,
      },
    },
  });
  await api.put(`${SITE}/routes/${encodeURIComponent(NAME)}/sources`, {
    body: {
      allowed_sources: [
        { issuer: URL_TEXT, trust_domain: 'x', subject_exact: NAME, required_key_binding: 'software' },
      ],
    },
  });
  await api.put(`${SITE}/clients/${encodeURIComponent(NAME)}/grants/${encodeURIComponent(NAME)}`, {
    body: { access: 'read' },
  });
  for (const state of ['active', 'rotated']) {
    await api.create(`${SITE}/targets`, { body: { name: `${state} ${TEXT}`.slice(0, 128) } });
  }
  await api.create(`${SITE}/sources`, {
    body: {
      kind: 'oidc_jwks',
      display_name: TEXT,
      issuer: `https://127.0.0.1/${NAME}`,
      jwks_uri: `https://127.0.0.1/${NAME}`,
      audience: NAME,
    },
  });
  // Control fetches the key set again for a token with a key that it does not know.
  stage.control.issuer.extraKeys = [{ ...makeSigner('ES256').jwk, kid: NAME }];
  stage.control.issuer.rotate();
  for (const [verified_subject, approval] of [
    [NAME, 'automatic'],
    [URL_TEXT, 'manual'],
  ] as const) {
    const { body: policy } = await api.create(`${SITE}/enrollment-policies`, {
      body: {
        display_name: TEXT,
        source_id: source?.source_id,
        source_revision: 1,
        client_id: NAME,
        approval,
        max_key_lifetime_seconds: 3600,
        verified_issuer: stage.control.issuer.issuer,
        verified_subject,
      },
    });
    await enroll(String(policy.reference), verified_subject);
    await enroll(String(policy.reference), verified_subject);
  }
  const [key] = await api.list(`${SITE}/derived-keys`);
  await api.act(`/v1/derived-keys/${String(key?.key_id)}/revoke`, { body: { reason: TEXT } });
  const [waiting] = await api.list(`${SITE}/enrollments?state=pending_approval`);
  await api.act(`/v1/enrollments/${String(waiting?.enrollment_id)}/deny`, { body: { reason: TEXT } });
  await api.act(`${SITE}/blocked-subjects`, { body: { issuer: URL_TEXT, subject: NAME.slice(1) } });
  await api.act(`${SITE}/blocked-callers`, { body: { issuer: site.issuer_url, subject: NAME } });
  for (const principal of [`group:${TEXT}`, `oidc:${URL_TEXT}|${TEXT}`]) {
    await api.create('/v1/role-grants', {
      body: { principal, role: 'viewer', scope: { kind: 'site', id: SITE_ID } },
    });
  }
  const scope = { kind: 'environment', id: environment?.environment_id };
  await api.create('/v1/access-tokens', { body: { name: TEXT, role: 'viewer', scope } });
}

async function enroll(policy: string, subject: string): Promise<void> {
  const { control } = stage;
  const file = join(control.directory, `token-${Math.random()}`);
  const cluster = {
    namespace: NAME,
    pod: { name: NAME, uid: URL_TEXT },
    node: { name: URL_TEXT },
    serviceaccount: { name: NAME },
  };
  const claims = { sub: subject, 'kubernetes.io': cluster };
  await writeFile(file, control.issuer.token({ audience: AUDIENCE, claims }), { mode: 0o600 });
  const { exitCode, stderr } = await control.run([
    ...['enroll', '--control-url', control.controlUrl, '--policy', policy, '--proof-file', file],
    ...['--private-key-out', control.newKeyFile(), '--wait-for-activation=false'],
  ]);
  if (exitCode !== 0 && !stderr.includes('approval')) throw new Error(`enroll: ${stderr}`);
}

test('the texts are there', async () => {
  await page.goto(`${stage.url}/sites/${SITE_ID}/keys`);
  await settled(page);
  expect(await page.getByText(NAME).count()).toBeGreaterThan(2);
  expect(await page.getByText(OPERATOR).count()).toBe(1);
  const [source] = await stage.api.list(`${SITE}/sources`);
  const { body } = await stage.api.get(`/v1/sources/${String(source?.source_id)}/keys`);
  expect(jsonObjects(body.keys).map(({ kid }) => kid)).toContain(NAME);
});

test('every page, with every dialogue', async () => {
  const views = [
    ...['/access?view=tokens', '/access?view=session'],
    ...['clients?view=routes', `clients?view=callers&route=${encodeURIComponent(NAME)}`].map(atSite),
    ...['blocked?view=callers', 'approvals?state=all', 'approvals?state=denied'].map(atSite),
  ];
  const pages = new Set([...(await everyPage(stage, page)).keys(), ...views]);
  for (const list of ['keys', 'policies', 'sources', 'approvals?state=all']) {
    await visit(page, `${stage.url}${atSite(list)}`);
    for (const link of await linksOf(page, 'tbody')) pages.add(link);
  }
  const faults: string[] = [];
  for (const path of pages) {
    await visit(page, `${stage.url}${path}`);
    faults.push(...(await foreignFaults(page, path)));
    for await (const name of openDialogues(page, path)) {
      const what = `${path}, ${name.slice(0, 60)}`;
      faults.push(...(await foreignFaults(page, what)));
      const commands = await page.getByRole('dialog').getByRole('button', { name: /^As / }).count();
      if (commands === 0 && !/^(?:As .*|Show)$/.test(name)) faults.push(`${what}: shows no command`);
    }
  }
  expect(faults).toEqual([]);
}, 600_000);

function atSite(path: string): string {
  return `/sites/${SITE_ID}/${path}`;
}
