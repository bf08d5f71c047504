import { expect, it } from '@jest/globals';
import { nearestName } from '../../../src/process/http-service/nearest-name.ts';

const NAMES = ['client_id', 'subject', 'context', 'grants', 'access'];

it.each([
  ['acess', 'access'],
  ['Access', 'access'],
  ['grant', 'grants'],
  ['clientid', 'client_id'],
  ['sbuject', 'subject'],
  ['id', undefined],
  ['labels', undefined],
  ['access'.repeat(20), undefined],
])('%s: %s', (given, meant) => {
  expect(nearestName(given, NAMES)).toBe(meant);
});
