import { inspect } from 'node:util';
import { expect, it } from '@jest/globals';
import { Redacted } from '../../src/protocol/redacted.ts';

it('shows a secret only to those who ask for it', () => {
  const secret = new Redacted('s3cret');
  expect(secret.reveal()).toBe('s3cret');
  expect([String(secret), JSON.stringify({ secret }), inspect({ secret })]).toEqual([
    '[redacted]',
    '{"secret":"[redacted]"}',
    '{ secret: [redacted] }',
  ]);
});
