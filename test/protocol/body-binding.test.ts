/** Tests what a proof binds of the body, for signers and verifiers. */
import { createHash } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { contentSha256 } from '../../src/protocol/body-binding.ts';

const NONE = new Uint8Array(0);
const bytes = Buffer.from('{}');
const sha256 = (body: Uint8Array) => createHash('sha256').update(body).digest('base64url');

it.each(['POST', 'PUT', 'PATCH'])('binds the empty body of %s', (method) => {
  expect(contentSha256(method, 'bound', NONE)).toBe(sha256(NONE));
});

it.each(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'post'])('binds no empty body of %s', (method) => {
  expect(contentSha256(method, 'bound', NONE)).toBe('-');
});

it.each(['GET', 'DELETE', 'POST'])('binds any other body of %s', (method) => {
  expect(contentSha256(method, 'bound', bytes)).toBe(sha256(bytes));
});

it.each(['GET', 'POST'])('binds no body of %s where the route says so', (method) => {
  expect(contentSha256(method, 'unbound', bytes)).toBe('-');
  expect(contentSha256(method, 'unbound', NONE)).toBe('-');
});
