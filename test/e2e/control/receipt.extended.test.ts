/** A revocation receipt of a real Control, verified by the command line as an auditor would: offline, with the answers of `ctl get`. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { runInProcess } from '../../support/cli/in-process.ts';
import { expectCliError } from '../../support/cli/run-cli.ts';
import { ControlStage } from '../../support/control/control-fixture.ts';
import { SITE_ID } from '../../support/control/site-declaration.ts';

let stage: ControlStage;
beforeAll(async () => {
  stage = await ControlStage.start();
});
afterAll(() => stage?.stop());

async function saved(name: string, content: unknown): Promise<string> {
  const file = join(stage.directory, name);
  await writeFile(file, JSON.stringify(content));
  return file;
}

const verify = (receipt: string, keys: string) =>
  runInProcess(['bundle', 'verify-receipt', receipt, '--receipt-key', keys]);

it('is verified with the keys that ctl gets, and with no others', async () => {
  const { keyId } = await stage.enroll('billing');
  await stage.ctl('revoke', keyId, '--reason', 'test');
  const answer = await stage.ctl('get', 'revocation-receipt', keyId);
  const receipt = await saved('receipt.json', answer);
  const keys = await saved('receipt-keys.json', await stage.ctl('get', 'receipt-keys', SITE_ID));

  const verified = await verify(receipt, keys);
  expect([verified.exitCode, verified.stderr]).toEqual([0, '']);
  expect(verified.stdout).toMatch(/^state +pending$/m);
  expect(verified.stdout).toContain(keyId);

  const [header, payload, signature] = String(answer.receipt).split('.');
  const content = JSON.parse(Buffer.from(String(payload), 'base64url').toString());
  const changed = Buffer.from(JSON.stringify({ ...content, state: 'effective' })).toString('base64url');
  const forged = await saved('forged.json', { receipt: `${header}.${changed}.${signature}` });
  expectCliError(await verify(forged, keys), 'receipt_signature_invalid', 3);

  const others = await saved('others.json', await stage.ctl('get', 'signing-keys', '--site', SITE_ID));
  expectCliError(await verify(receipt, others), 'receipt_key_unknown', 3);
});
