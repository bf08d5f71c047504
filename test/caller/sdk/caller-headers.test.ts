/** Tests which headers of a caller the Node SDK removes; the tests of the other SDKs read the same file. */
import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { isOfSigner } from '../../../src/caller/sdk/header-lines.ts';

const { credentials, others } = JSON.parse(
  readFileSync(new URL('caller-headers.json', import.meta.url), 'utf8'),
) as { readonly [kind: string]: readonly (readonly [name: string, value: string])[] };

it.each([
  ['removes', true, credentials],
  ['keeps', false, others],
] as const)('%s each', (_, isRemoved, headers) => {
  expect(headers?.filter((header) => isOfSigner(...header) !== isRemoved)).toEqual([]);
});
