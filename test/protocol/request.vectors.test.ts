/** Tests the published signatures and transcripts against this code, so that other implementations agree with it. */
import { createPrivateKey } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { type SigningKey, signingKeyOf } from '../../src/protocol/signing.ts';
import { KEYS, SIGNING } from '../support/protocol/published-vectors.ts';
import { expectVectorToHold } from './request-vectors.ts';

const keys: ReadonlyMap<string, SigningKey> = new Map(
  KEYS.map(({ jwk, name }) => [name, signingKeyOf(createPrivateKey({ key: jwk, format: 'jwk' }))]),
);

function keyNamed(name: string): SigningKey {
  const key = keys.get(name);
  if (key === undefined) throw new Error(`no key ${name}`);
  return key;
}

describe('published keys', () => {
  it.each(KEYS.map((key) => [key.name, key] as const))('%s', (name, { alg, jwk, thumbprint }) => {
    const { publicKey } = keyNamed(name);
    const { d: _, ...publicJwk } = jwk;
    expect([publicKey.algorithm, publicKey.thumbprint, publicKey.jwk]).toEqual([alg, thumbprint, publicJwk]);
  });
});

describe('signing vectors', () => {
  it.each(SIGNING.map((vector) => [vector.name, vector] as const))('%s', (_, vector) => {
    expectVectorToHold(vector, keyNamed(vector.passport_key), keyNamed(vector.holder_key));
  });
});
