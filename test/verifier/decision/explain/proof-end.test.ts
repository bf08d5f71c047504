/** Until when a captured request must not be shown to others: its HTTP message signature or DPoP proof could still be used. */
import { expect, it } from '@jest/globals';
import { MAX_SKEW_SECONDS } from '../../../../src/protocol/limits.ts';
import { proofEndSeconds } from '../../../../src/verifier/explain/proof-end.ts';

const ENDS = 1_800_000_060;
const OURS = `sig=("@method");created=${ENDS - 60};expires=${ENDS};tag="proofgate/shop-eu"`;

function endOf(headers: Readonly<Record<string, string>>): number | undefined {
  return proofEndSeconds({ attributes: { request: { http: { headers } } } });
}

it.each([
  ['a signature for a site', OURS, ENDS + MAX_SKEW_SECONDS],
  ['beside those of others', `cdn=("@path");expires=1, ${OURS}`, ENDS + MAX_SKEW_SECONDS],
  ['without an end', OURS.replace(/;expires=\d+/, ''), Number.POSITIVE_INFINITY],
  ['of others alone', OURS.replace('proofgate/', 'cdn/'), undefined],
] as const)('%s', (_, input, end) => {
  expect(endOf({ 'signature-input': input, signature: 'sig=:AA==:' })).toBe(end);
});

it('is undefined without Signature', () => expect(endOf({ 'signature-input': OURS })).toBeUndefined());

const dpop = (claims: string) => `e30.${Buffer.from(claims).toString('base64url')}.AA`;

it.each([
  ['a DPoP proof', dpop(`{"iat":${ENDS - 60}}`), ENDS + MAX_SKEW_SECONDS],
  ['one with an escape', dpop(`{"x":{"iat":1},"\\u0069at":${ENDS - 60}}`), ENDS + MAX_SKEW_SECONDS],
  ['one without a time', dpop('{}'), Number.POSITIVE_INFINITY],
  ['a damaged one', 'x', Number.POSITIVE_INFINITY],
])('%s', (_, value, end) => {
  expect(endOf({ dpop: value })).toBe(end);
});
