/** The published vectors hold: whoever reproduces them agrees with this code. */
import { createPrivateKey, type JsonWebKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { type SigningKey, signingKeyOf } from '../../src/protocol/signing.ts';
import { parseStrictJson } from '../../src/protocol/strict-json.ts';
import { expectVectorToHold, type RequestVector } from './request-vectors.ts';

const TEXT = readFileSync(new URL('../vectors/transcript-v1/requests.json', import.meta.url), 'utf8');
const VECTORS: {
  readonly keys: { readonly [name: string]: JsonWebKey };
  readonly requests: readonly RequestVector[];
} = JSON.parse(TEXT);

const KEYS: ReadonlyMap<string, SigningKey> = new Map(
  Object.entries(VECTORS.keys).map(([name, key]) => [
    name,
    signingKeyOf(createPrivateKey({ key, format: 'jwk' })),
  ]),
);

function keyNamed(name: string): SigningKey {
  const key = KEYS.get(name);
  if (key === undefined) throw new Error(`no key ${name}`);
  return key;
}

/** A member that nobody reads would be a rule that nobody checks. */
const MEMBERS = [
  ...['name', 'passport_key', 'holder_key', 'passport_header', 'passport_claims', 'passport', 'transcript'],
  ...['signature', 'auth_site', 'route', 'request'],
];

describe('request vectors', () => {
  it('name no member twice', () => {
    expect(parseStrictJson(TEXT)).toEqual(VECTORS);
  });

  it.each(VECTORS.requests.map((vector) => [vector.name, vector] as const))('%s', (_, vector) => {
    expect(Object.keys(vector)).toEqual(MEMBERS);
    expectVectorToHold(vector, keyNamed(vector.passport_key), keyNamed(vector.holder_key));
  });
});
