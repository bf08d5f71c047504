/** The caller's view when the verifier did not deny the request, but its answer was missing or invalid. */
import { expect } from '@jest/globals';
import { headerValues, type WireResponse } from '../../../src/tools/conformance/wire/exchange.ts';

/**
 * `no_answer`: none, or none that Envoy accepts; `invalid_answer`: not valid HTTP; `no_decision`: an allow without a decision.
 */
export type FailedCheck = 'no_answer' | 'invalid_answer' | 'no_decision';

export function expectFailedCheck(response: WireResponse, detail: FailedCheck): void {
  expect(response.status).toBe(503);
  expect(JSON.parse(response.body.toString('utf8'))).toStrictEqual({
    type: 'urn:proofgate:denial:verifier_unavailable',
    title: 'The verifier cannot decide now',
    status: 503,
    reason: 'verifier_unavailable',
    detail,
    request_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
  });
  const values = (name: string) => headerValues(response.headers, name);
  expect(values('content-type')).toEqual(['application/problem+json']);
  expect(values('x-proofgate-reason')).toEqual(['verifier_unavailable']);
  expect(values('x-proofgate-decision-id')).toEqual([]);
  expect(values('cache-control')).toEqual(['no-store']);
  expect(values('retry-after')).toEqual(['1']);
}
