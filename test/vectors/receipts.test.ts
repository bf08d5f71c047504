/** Tests the published revocation receipts with our verifier, and with one in Python that was written from the page. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { verifyReceipt } from '../../src/bundle/format/revocation-receipt.ts';
import { importPublicJwk } from '../../src/protocol/import-public-key.ts';
import { textOf } from '../support/protocol/published-vectors.ts';
import type { ReceiptVector } from './make/receipt-vectors.ts';

interface ReceiptFile {
  readonly key: object;
  readonly receipts: readonly ReceiptVector[];
}
const { key: jwk, receipts }: ReceiptFile = JSON.parse(textOf('receipts.json'));

it.each(receipts)('$name: $expected', ({ expected, no_use_from, receipt }) => {
  const key = importPublicJwk(jwk);
  const verified = verifyReceipt(receipt, key === undefined ? [] : [key]);
  if (verified.kind === 'invalid') return expect(verified.fault).toBe(expected);
  expect(verified.receipt.state).toBe(expected);
  if (no_use_from !== undefined) expect(verified.receipt.no_use_from).toBe(no_use_from);
});

const hasPython = spawnSync('python3', ['-c', 'import cryptography']).status === 0;
const PROGRAM = fileURLToPath(new URL('../interop/python/verify_receipt.py', import.meta.url));

(hasPython ? describe : describe.skip)('in Python', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'proofgate-receipts-'));
    writeFileSync(join(folder, 'key.jwk.json'), JSON.stringify(jwk));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it.each(receipts)('$name: $expected', ({ expected, no_use_from, receipt }) => {
    const args = ['-B', PROGRAM, join(folder, 'key.jwk.json')];
    const { status, stdout, stderr } = spawnSync('python3', args, { input: receipt, encoding: 'utf8' });
    const said = stdout.trim();
    const code = { effective: 0, pending: 3 }[expected as string] ?? 1;
    expect([status, stderr]).toEqual([code, '']);
    if (code === 0) expect(said).toBe(`effective ${no_use_from}`);
    // The same fault as ours.
    if (code === 1) expect(FAULTS[said]).toBe(expected);
  });
});

const FAULTS: Readonly<Record<string, string>> = {
  'invalid: malformed': 'receipt_malformed',
  'invalid: type': 'receipt_type',
  'invalid: key': 'receipt_key_unknown',
  'invalid: signature': 'receipt_signature_invalid',
  'invalid: inconsistent': 'receipt_inconsistent',
};
