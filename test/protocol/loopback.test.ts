import { expect, it } from '@jest/globals';
import { isLoopback } from '../../src/protocol/loopback.ts';

it.each(['localhost', '127.0.0.1', '127.255.3.4', '::1', '[::1]'])('%s is loopback', (host) => {
  expect(isLoopback(host)).toBe(true);
});

it.each([
  '',
  '0.0.0.0',
  '10.0.0.1',
  '::',
  '[::]',
  '::ffff:127.0.0.1',
  '127.1',
  '127.0.0.1.nip.io',
  '127.0.0.256',
  'localhost.example',
  'LOCALHOST',
])('%j is not', (host) => {
  expect(isLoopback(host)).toBe(false);
});
