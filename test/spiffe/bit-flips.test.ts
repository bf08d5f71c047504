/** Every single-bit change of a chain of certificates, and every other character in a JWT-SVID, is refused. */
import { expect, test } from '@jest/globals';
import { verifyJwtSvid } from '../../src/spiffe/jwt-svid.ts';
import { verifyX509Svid } from '../../src/spiffe/x509-svid.ts';
import { bundlesOf, SpiffeAuthority } from '../support/fakes/spiffe-authority.ts';

const AUDIENCE = 'https://broker.example#jkt=thumbprint';
const authority = SpiffeAuthority.create('shop.example');
const bundles = bundlesOf(authority);

test('of a leaf and its intermediate', () => {
  const nowMs = Date.now();
  const { chainDer } = authority.issueIntermediate().issueSvid('/orders');
  const accepted: string[] = [];
  let mutants = 0;
  for (const [index, original] of chainDer.entries()) {
    for (let bit = 0; bit < original.length * 8; bit += 1) {
      const mutant = Buffer.from(original);
      mutant[bit >> 3] = (mutant[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const result = verifyX509Svid(chainDer.with(index, mutant), bundles, nowMs);
      mutants += 1;
      if (result.kind === 'svid') accepted.push(`certificate ${index}, bit ${bit}`);
    }
  }
  expect(accepted).toEqual([]);
  expect(mutants).toBeGreaterThan(5_000);
  expect(verifyX509Svid(chainDer, bundles, nowMs).kind).toBe('svid');
});

test('of a JWT-SVID', async () => {
  const nowMs = Date.now();
  const token = await authority.issueJwtSvid('spiffe://shop.example/orders', AUDIENCE);
  const accepted: number[] = [];
  for (let at = 0; at < token.length; at += 1) {
    for (const character of ['A', 'z', '_', '.', '=', ' ']) {
      if (token[at] === character) continue;
      const mutant = `${token.slice(0, at)}${character}${token.slice(at + 1)}`;
      const result = await verifyJwtSvid(mutant, { audience: AUDIENCE, bundles, nowMs });
      if (result.kind === 'svid') accepted.push(at);
    }
  }
  expect(accepted).toEqual([]);
  expect((await verifyJwtSvid(token, { audience: AUDIENCE, bundles, nowMs })).kind).toBe('svid');
});
