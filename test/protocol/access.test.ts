import { expect, it } from '@jest/globals';
import { accessOfMethod, grantCovers } from '../../src/protocol/access.ts';

it.each([
  [undefined, 'read', false],
  [undefined, 'write', false],
  ['read', 'read', true],
  ['read', 'write', false],
  ['write', 'read', true],
  ['write', 'write', true],
] as const)('a grant of %s for a route that needs %s: %s', (granted, needed, covers) => {
  expect(grantCovers(granted, needed)).toBe(covers);
});

it.each([
  ['GET', 'read'],
  ['HEAD', 'read'],
  ['OPTIONS', 'read'],
  ['POST', 'write'],
  ['DELETE', 'write'],
  ['get', 'write'],
  ['PROPFIND', 'write'],
] as const)('%s needs %s', (method, access) => {
  expect(accessOfMethod(method)).toBe(access);
});
