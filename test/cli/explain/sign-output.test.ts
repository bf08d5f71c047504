/** Tests `proofgate explain` with the output of `proofgate sign --format json`. */
import { readFile, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { runInProcess } from '../../support/cli/in-process.ts';
import { expectCliError } from '../../support/cli/run-cli.ts';
import type { RequestEdits, RequestPlan } from '../../support/fixtures/signed-request.ts';
import { ExplainStage, keys } from './explain-fixture.ts';

const NAMES: { readonly [name: string]: string } = {
  authorization: 'Authorization',
  'x-proofgate-passport': 'X-Proofgate-Passport',
  'x-proofgate-transcript': 'X-Proofgate-Transcript',
  'x-proofgate-signature': 'X-Proofgate-Signature',
};
const AT = ['--at', '2026-11-21T04:00:02Z'];

let stage: ExplainStage;
beforeAll(async () => {
  stage = await ExplainStage.open();
});
afterAll(() => stage.close());

/** What `sign --format json` prints for the request. */
function signOutput(plan: RequestPlan, edits: RequestEdits = {}): { readonly [name: string]: string } {
  const { headers } = stage.sign(plan, edits).wire;
  const credentials = headers.flatMap(({ name, value }) => {
    const printed = NAMES[name];
    return printed === undefined ? [] : [[printed, value]];
  });
  return Object.fromEntries(credentials);
}

describe('the output of sign', () => {
  it.each([
    ['without a body', { caller: 'billing', route: 'orders-read' }],
    ['with a body', { caller: 'broker', route: 'everything' }],
    ['with signed headers', { caller: 'broker', route: 'tenants' }],
  ] as const)('%s: would be allowed', async (_, plan) => {
    const { report, run } = await stage.report(signOutput(plan), ...AT);
    expect(run).toMatchObject({ exitCode: 0, stderr: '' });
    expect(report).toMatchObject({ decision: { outcome: 'allowed' }, request: { as_signed: true } });
    expect(report.transcript.every(({ equal }) => equal)).toBe(true);
  });

  it('shows a transcript that the bundle does not expect', async () => {
    const audience = (draft: { audience: string }) =>
      Object.assign(draft, { audience: 'https://other.example' });
    const output = signOutput({ caller: 'billing', route: 'orders-read' }, { transcript: audience });
    const { report } = await stage.report(output, ...AT);
    expect(report.decision).toMatchObject({ reason: 'request_binding_mismatch', detail: 'audience' });
  });

  it("with the application's Authorization signed, and the passport in a header of its own", async () => {
    const token = { name: 'authorization', value: 'Bearer of-the-application' };
    const { Authorization, ...output } = signOutput(
      { caller: 'billing', route: 'bearer' },
      { transcript: (draft) => draft.headers.push(token) },
    );
    const { report } = await stage.report(output, ...AT);
    expect(report).toMatchObject({ decision: { outcome: 'allowed' }, request: { as_signed: true } });
  });

  it('of the command itself', async () => {
    const key = stage.path('billing.pem');
    const pem = keys.billing.privateKey.export({ type: 'pkcs8', format: 'pem' });
    await writeFile(key, pem, { mode: 0o600 });
    const profile = stage.path('profile.yaml');
    await writeFile(profile, PROFILE);
    const url = 'https://api.shop.example/v1/orders/17?fields=id';
    const args = ['--key', key, '--profile-file', profile, '--out', stage.path('signed.json')];
    const signed = await runInProcess(['sign', 'GET', url, ...args, '--format', 'json']);
    expect(signed).toMatchObject({ exitCode: 0, stderr: '' });
    const { report } = await stage.report(await readFile(stage.path('signed.json'), 'utf8'));
    expect(report).toMatchObject({
      at_source: 'now',
      route: { route_id: 'orders-read' },
      request: { as_signed: true, method: 'GET', authority: 'api.shop.example' },
    });
    expect(report.transcript.filter(({ equal }) => !equal)).toEqual([]);
    expect(report.transcript.length).toBe(16);
  });

  it('with a transcript that is none, or a member that is no text', async () => {
    const output = signOutput({ caller: 'billing', route: 'orders-read' });
    expectCliError(await stage.explain({ ...output, 'X-Proofgate-Transcript': 'eA' }), 'request_invalid', 2);
    expectCliError(await stage.explain({ ...output, Authorization: 7 }), 'request_invalid', 2);
  });
});

const PROFILE = `auth_site: shop-eu-1
key_id: dk_billing
issuer: https://control.shop.example/sites/shop-eu-1
trust_domain: shop.example
subject: client:billing
key_binding: software
profiles:
  - route_id: orders-read
    method: GET
    path_template: /v1/orders/{order_id}
    audience: https://api.shop.example
    origins: ["https://api.shop.example"]
`;
