/** The contents of the published files beside this folder. */

import { TABLE } from '../../support/cases/table.ts';
import { ALL_TEST_KEYS } from '../../support/fixtures/test-keys.ts';
import { bundleVectors } from './bundle-vectors.ts';
import { dpopVectors } from './dpop-vectors.ts';
import { type KeyVector, VECTOR_FORMAT } from './format.ts';
import { httpMessageVectors } from './http-message-vectors.ts';
import { RECEIPT_KEY, receiptVectors } from './receipt-vectors.ts';
import { replayVectors } from './replay-vectors.ts';
import { requestVectorOf } from './request-vectors.ts';
import { signingVectors } from './signing-vectors.ts';

/** Text by name; `targets.json` and `schema.json` are written by hand. */
export function vectorFiles(): ReadonlyMap<string, string> {
  const requests = TABLE.map(requestVectorOf);
  const withOutcome = (wanted: string) => requests.filter(({ expected }) => expected.outcome === wanted);
  return new Map([
    [
      'keys.json',
      fileOf('keys', 'TEST KEYS. Their private halves are public: trust none of them.', keyVectors()),
    ],
    ['bundles.json', fileOf('bundles', 'What requests are judged by.', bundleVectors())],
    [
      'http-message-signatures.json',
      fileOf(
        'http_messages',
        'From a derived key and a request to the headers of RFC 9421.',
        httpMessageVectors(),
      ),
    ],
    ['dpop.json', fileOf('dpop', 'From a passport and a request to the headers of RFC 9449.', dpopVectors())],
    ['signing.json', fileOf('signing', 'From keys and a request to the three headers.', signingVectors())],
    [
      'requests-allowed.json',
      fileOf('requests', 'One request each, which is allowed.', withOutcome('allowed')),
    ],
    ['requests-denied.json', fileOf('requests', 'One request with one fault each.', withOutcome('denied'))],
    ['receipts.json', receiptsFile()],
    ['replay.json', fileOf('replay', 'Requests one after the other, to one replay store.', replayVectors())],
  ]);
}

/** Without a schema: receipts have no place in requests. */
function receiptsFile(): string {
  const head = { format: VECTOR_FORMAT, kind: 'receipts', says: 'Revocation receipts, some with one fault.' };
  const key = RECEIPT_KEY.publicKey.jwk;
  return `${JSON.stringify({ ...head, license: 'Apache-2.0', key, receipts: receiptVectors() }, undefined, 1)}\n`;
}

function fileOf(kind: string, says: string, entries: readonly object[]): string {
  const head = { $schema: './schema.json', format: VECTOR_FORMAT, kind, says, license: 'Apache-2.0' };
  return `${JSON.stringify({ ...head, [kind]: entries }, undefined, 1)}\n`;
}

function keyVectors(): readonly KeyVector[] {
  return [...ALL_TEST_KEYS].map(([name, { privateKey, publicKey }]) => {
    const { d = '' } = privateKey.export({ format: 'jwk' });
    return { name, alg: publicKey.algorithm, jwk: { ...publicKey.jwk, d }, thumbprint: publicKey.thumbprint };
  });
}
