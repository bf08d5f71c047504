/** Tests reading Node.js's raw header lines. */
import { expect, it } from '@jest/globals';
import { requestHeadersOf } from '../../../src/process/http-proxy/raw-headers.ts';

const headers = requestHeadersOf(['X-One', ' a, b\t', 'x-two', '1', 'X-Two', '2', 'x-empty', '']);

it.each([
  ['x-one', { kind: 'single', value: 'a, b' }],
  ['x-two', { kind: 'ambiguous' }],
  ['x-empty', { kind: 'single', value: '' }],
  ['x-three', { kind: 'absent' }],
])('%s', (name, found) => {
  expect(headers.lookup(name)).toEqual(found);
});

it('gives names as received', () => {
  expect(headers.names()).toEqual(['X-One', 'x-two', 'X-Two', 'x-empty']);
});
