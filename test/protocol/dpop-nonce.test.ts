import { randomBytes } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { createDpopNonces, DPOP_NONCE_KEY_BYTES, DPOP_NONCE_SECONDS } from '../../src/protocol/dpop-nonce.ts';

const NOW = 1_800_000_000;
const SKEW = 5;
const [current, previous, other] = [0, 1, 2].map(() => randomBytes(DPOP_NONCE_KEY_BYTES)) as [
  Buffer,
  Buffer,
  Buffer,
];
const nonces = createDpopNonces('prod:billing', [current, previous]);

it('accepts its nonces until they have ended, and no earlier than the skew', () => {
  const nonce = nonces.issue(NOW);
  expect(nonce).toMatch(/^[A-Za-z0-9_-]{30}$/);
  const at = (nowSeconds: number) => nonces.accepts(nonce, nowSeconds, SKEW);
  expect(
    [NOW - SKEW - 1, NOW - SKEW, NOW, NOW + DPOP_NONCE_SECONDS - 1, NOW + DPOP_NONCE_SECONDS].map(at),
  ).toEqual([false, true, true, true, false]);
});

it("accepts a nonce of the key before, and none of another key's or site's", () => {
  const ofKeys = (keys: [Buffer, ...Buffer[]], site = 'prod:billing') =>
    createDpopNonces(site, keys).issue(NOW);
  expect(nonces.accepts(ofKeys([previous]), NOW, SKEW)).toBe(true);
  expect(nonces.accepts(ofKeys([other]), NOW, SKEW)).toBe(false);
  expect(nonces.accepts(ofKeys([current], 'prod:shipping'), NOW, SKEW)).toBe(false);
});

it('accepts no changed nonce, whichever byte is changed', () => {
  const bytes = Buffer.from(nonces.issue(NOW), 'base64url');
  for (let i = 0; i < bytes.length; i++) {
    const changed = Buffer.from(bytes);
    changed.writeUInt8(changed.readUInt8(i) ^ 1, i);
    expect(nonces.accepts(changed.toString('base64url'), NOW, SKEW)).toBe(false);
  }
});

it.each(['', 'a', `${nonces.issue(NOW)}=`, `${nonces.issue(NOW)}AAAA`, 'a'.repeat(30)])(
  'accepts no %j',
  (nonce) => {
    expect(nonces.accepts(nonce, NOW, SKEW)).toBe(false);
  },
);
